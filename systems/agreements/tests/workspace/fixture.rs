//! A workspace on uploads, with a model that answers by rule.

use std::sync::Arc;
use std::time::Duration;

use keyward_agreements::source::{UploadOptions, Uploads};
use keyward_agreements::{
    BodyFormat, Course, Document, Extractor, Options, PageId, SourceId, Workspace,
};
use keyward_engine::{Clock, Store};
use keyward_extract::{Language, Limits};
use keyward_models::{Models, Options as ModelOptions, Provider, Request, Scripted, framed};
use keyward_queue::{Retry, WorkerOptions};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub const POLICY: &str = "# Study leave\n\nEvery doctoral candidate may take a leave of one year. \
     The leave has to be requested from the faculty before the term begins, in writing.\n\n\
     ## Fees\n\nFees are paid to the university at which the candidate is enrolled.\n";

pub fn page(id: &str) -> PageId {
    PageId::new(id).unwrap()
}

pub fn source(id: &str) -> SourceId {
    SourceId::new(id).unwrap()
}

pub fn language(code: &str) -> Language {
    Language::parse(code).unwrap()
}

/// Translates by putting the language before every text, and finds nothing.
pub fn translator() -> Scripted {
    Scripted::new(|request| Ok(translated(request).unwrap_or_else(|| found(&[]))))
}

/// What a translator answers, if it is asked to translate.
pub fn translated(request: &Request) -> Option<String> {
    let into = request.prompt.strip_prefix("Translate into ")?.split_once('.')?.0.to_owned();
    let text = *framed(&request.prompt).get(1)?;
    Some(
        json!({ "title": format!("{into} title"), "markdown": format!("{text}\n\n{into}.") })
            .to_string(),
    )
}

/// What an analyst answers.
pub fn found(issues: &[serde_json::Value]) -> String {
    json!({ "issues": issues }).to_string()
}

pub fn options() -> Options {
    Options {
        lease: Duration::from_secs(1),
        wait_max: Duration::from_secs(120),
        retry: Retry { backoff_min: Duration::from_millis(10), ..Retry::default() },
        ..Options::default()
    }
}

pub fn models(provider: impl Provider + 'static) -> Option<Arc<Models>> {
    Some(Arc::new(Models::new(provider, ModelOptions::default(), 7)))
}

pub struct Desk {
    pub workspace: Workspace,
    pub uploads: Arc<Uploads>,
}

impl Desk {
    pub fn new(store: Store, clock: impl Clock + Clone, models: Option<Arc<Models>>) -> Self {
        Self::with(store, clock, models, options())
    }

    pub fn with(
        store: Store,
        clock: impl Clock + Clone,
        models: Option<Arc<Models>>,
        options: Options,
    ) -> Self {
        let uploads = Uploads::new(store.clone(), clock.clone(), UploadOptions::default()).unwrap();
        let uploads = Arc::new(uploads);
        let extractor = Extractor::InProcess(Limits::default());
        let workspace =
            Workspace::new(store, clock, uploads.clone(), extractor, models, options).unwrap();
        Self { workspace, uploads }
    }

    /// A page with one policy, `leave`.
    pub async fn with_page(self, id: &str) -> Self {
        self.put_page(id).await;
        self.attach(id, "leave", POLICY).await;
        self
    }

    pub async fn put_page(&self, id: &str) {
        let body = "# Joint doctorate\n\nThe partners agree on a joint doctorate.";
        let id = page(id);
        let put = self.uploads.put_page(&id, "Joint doctorate", body, BodyFormat::Markdown);
        put.await.unwrap();
    }

    pub async fn attach(&self, id: &str, policy: &str, text: &str) {
        let (id, name, policy) = (page(id), format!("{policy}.md"), source(policy));
        let attach = self.uploads.attach(&id, &policy, &name, None, text.as_bytes());
        attach.await.unwrap();
    }

    pub async fn policy(&self, id: &str, code: Option<&str>) -> Document {
        let language = code.map(language);
        let course = Course::untold();
        self.workspace.policy(&page(id), &source("leave"), language, &course).await.unwrap()
    }

    /// Works off tasks, until what comes back is used.
    pub fn work(&self) -> (oneshot::Sender<()>, JoinHandle<()>) {
        let (stop, stopped) = oneshot::channel();
        let workspace = self.workspace.clone();
        let working = tokio::spawn(async move {
            let options = WorkerOptions { concurrency: 4, ..WorkerOptions::default() };
            let until = async move {
                let _ = stopped.await;
            };
            workspace.work(options, until).await.unwrap();
        });
        (stop, working)
    }
}
