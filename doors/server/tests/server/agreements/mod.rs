//! Agreements over HTTP: a workspace of uploads and one of a folder, and a model that answers by rule.

mod attack;
mod background;
mod documents;
mod issues;
mod locks;
mod pages;
mod starting;
mod tasks;

use std::sync::{Arc, Mutex};

use keyward::Data;
use keyward::models::{Asked, Models, Options, Provider, Request, Scripted};
use keyward::schema::Schema;
use keyward_server::{Config, WorkspaceConfig};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::fixture::{Running, answered, configured, told};

/// The workspace of uploads, and the page that it has.
pub const INBOX: &str = "/v1/agreements/inbox";
pub const PAGE: &str = "/v1/agreements/inbox/pages/nda";
/// The workspace of a folder, and the page that it has.
pub const SHELF: &str = "/v1/agreements/shelf";

/// The text of the policy that is attached to pages.
pub const POLICY: &str = "# Leave\n\nEverybody who works here has thirty days of leave in every \
                          year, and nobody has to say why they take it.\n";

/// The same in French.
pub const TRANSLATION: &str = "# Congé\n\nChaque personne qui travaille ici a trente jours de congé par \
                               an, et n'a pas à dire pourquoi elle les prend.";

/// A model that answers by rule, when it is let.
#[derive(Clone)]
pub struct Model {
    scripted: Scripted,
    gate: Arc<Semaphore>,
    translation: Arc<Mutex<String>>,
}

impl Model {
    /// One that answers at once.
    pub fn new() -> Self {
        let model = Self::held();
        model.gate.add_permits(1_000);
        model
    }

    /// One that answers when it is let.
    pub fn held() -> Self {
        let translation = Arc::new(Mutex::new(TRANSLATION.to_owned()));
        let told = translation.clone();
        let scripted = Scripted::new(move |request| answer(request, &told.lock().unwrap()));
        Self { scripted, gate: Arc::new(Semaphore::new(0)), translation }
    }

    /// From now on this is what it takes for a translation.
    pub fn translate_as(&self, translation: &str) {
        translation.clone_into(&mut self.translation.lock().unwrap());
    }

    /// Lets it answer once more.
    pub fn let_answer(&self) {
        self.gate.add_permits(1);
    }

    pub fn calls(&self) -> u64 {
        self.scripted.calls()
    }
}

impl Provider for Model {
    fn name(&self) -> &str {
        self.scripted.name()
    }

    fn model(&self) -> &str {
        self.scripted.model()
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Asked<'a> {
        Box::pin(async move {
            self.gate.acquire().await.unwrap().forget();
            self.scripted.ask(request).await
        })
    }
}

/// A translation, or an issue with an excerpt of the policy.
fn answer(request: &Request, translation: &str) -> keyward::models::Result<String> {
    let schema = request.schema.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok(match schema.contains("markdown") {
        true => json!({ "title": "Congé", "markdown": translation }),
        false => json!({ "issues": [{
            "title": "Leave is not the same",
            "severity": 3,
            "description": [
                { "text": "The page says twenty.", "excerpt": null },
                { "text": null, "excerpt": "thirty days of leave" },
            ],
            "known": null,
        }] }),
    }
    .to_string())
}

/// A server with both workspaces.
pub struct Served {
    pub server: Running,
    pub folder: TempDir,
    pub model: Model,
}

/// A workspace of a store that has its name.
pub fn workspace(name: &str, pages: Value, model: Option<&Model>) -> WorkspaceConfig {
    let settings = json!({ "store": name, "pages": pages });
    let models = model.map(|model| Models::new(model.clone(), Options::default(), 7));
    WorkspaceConfig {
        name: name.to_owned(),
        settings: serde_json::from_value(settings).unwrap(),
        models: models.map(Arc::new),
        sandbox: None,
    }
}

/// The stores of both workspaces, and one for the server.
pub fn stores() -> Data {
    let schema = "[stores.main]\nurl = \"memory:\"\n[stores.inbox]\nurl = \"memory:\"\n\
                  [stores.shelf]\nurl = \"memory:\"\n";
    Data::new(Schema::parse(schema, "schema.toml").unwrap())
}

impl Served {
    pub async fn new() -> Self {
        Self::with(Model::new()).await
    }

    pub async fn with(model: Model) -> Self {
        Self::start(model.clone(), Some(&model), configured()).await
    }

    /// One whose workspaces have no model.
    pub async fn without_model() -> Self {
        Self::start(Model::new(), None, configured()).await
    }

    pub async fn start(model: Model, asked: Option<&Model>, config: Config) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("lease")).unwrap();
        std::fs::write(folder.path().join("lease/page.md"), "# Lease\n\nTwenty days.\n").unwrap();
        std::fs::write(folder.path().join("lease/leave.md"), POLICY).unwrap();
        let agreements = vec![
            workspace("inbox", json!({ "uploads": true }), asked),
            workspace("shelf", json!({ "folder": folder.path() }), asked),
        ];
        let data = stores();
        let server = Running::start(&Config { agreements, ..config }, &data).await;
        let served = Self { server, folder, model };
        answered(200, served.server.put(PAGE, r##"{"title":"NDA","body":"# NDA"}"##)).await;
        answered(200, served.attach("leave", POLICY)).await;
        served
    }

    /// Attaches a policy in Markdown to the page of the uploads.
    pub fn attach(&self, source: &str, text: &str) -> RequestBuilder {
        let at = format!("{PAGE}/attachments/{source}?name={source}.md");
        let request = self.server.request(Method::PUT, &at);
        request.header("content-type", "text/markdown").body(text.to_owned())
    }

    /// Has a policy made that is at a path.
    pub fn make(&self, at: &str) -> RequestBuilder {
        self.server.request(Method::POST, at)
    }

    /// Makes an issue on the page of the uploads.
    pub async fn issue(&self, title: &str, severity: u8) -> Value {
        let body = json!({ "title": title, "severity": severity });
        told(201, self.server.post(&format!("{PAGE}/issues"), &body.to_string())).await
    }

    /// A change of an issue.
    pub fn change(&self, issue: &Value, body: Value) -> RequestBuilder {
        let at = format!("{PAGE}/issues/{}", issue["id"].as_str().unwrap());
        self.server.sent(Method::PATCH, &at, &body.to_string())
    }

    /// The job of an answer, when it has ended.
    pub async fn ended(&self, job: &Value) -> Value {
        let at = format!("{INBOX}/jobs/{}", job["id"].as_str().unwrap());
        loop {
            let job = told(200, self.server.get(&at)).await;
            if !job["finished"].is_null() {
                return job;
            }
        }
    }

    /// Has the page of the uploads analysed, and waits for the end.
    pub async fn analyze(&self) -> Value {
        let job = told(202, self.server.post(&format!("{PAGE}/analysis"), "{}")).await;
        self.ended(&job).await
    }
}
