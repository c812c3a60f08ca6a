//! One document that is made again, and the others that stay.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use keyward_agreements::source::{Source, Uploads};
use keyward_agreements::{
    By, Course, Document, Extractor, NewIssue, Page, PageId, PageSummary, Part, Reference, Result,
    Severity, SourceId, Task, Workspace,
};
use keyward_engine::{BoxFuture, Code, Coded, SystemClock};
use keyward_extract::Limits;
use keyward_key::Key;
use keyward_models::{Asked, Error, Provider, Request, Scripted};
use keyward_stores::{Place, on_every_engine};
use tokio::sync::Semaphore;

use crate::fixture::{Desk, language, models, options, page, source, translated};

on_every_engine!(
    a_translation_is_made_again_and_the_others_are_kept,
    a_redo_that_fails_leaves_what_is_there,
    all_who_redo_at_the_same_time_cause_one_translation,
    an_original_made_again_keeps_its_translations_unless_its_text_changes,
    a_redo_of_what_was_never_made_makes_it,
);

async fn redo(workspace: &Workspace, code: Option<&str>) -> Result<Document> {
    let (page, policy, course) = (page("p1"), source("leave"), Course::untold());
    workspace.redo_policy(&page, &policy, code.map(language), &course).await
}

/// A translator that numbers its answers.
fn numbering() -> Scripted {
    let number = AtomicUsize::new(1);
    Scripted::new(move |request| {
        let answer = translated(request).unwrap();
        Ok(answer.replace(" title", &format!(" title {}", number.fetch_add(1, Ordering::Relaxed))))
    })
}

async fn a_translation_is_made_again_and_the_others_are_kept(place: Place) {
    let scripted = numbering();
    let desk = Desk::new(place.store().await, place.clock().clone(), models(scripted.clone()));
    let desk = desk.with_page("p1").await;
    let (french, german) =
        (desk.policy("p1", Some("fr")).await, desk.policy("p1", Some("de")).await);
    let original = desk.policy("p1", None).await;
    assert_eq!(
        (french.title.as_str(), german.title.as_str()),
        ("French title 1", "German title 2")
    );
    let again = redo(&desk.workspace, Some("fr")).await.unwrap();
    assert_eq!(again.title, "French title 3");
    assert_eq!(desk.policy("p1", Some("fr")).await, again);
    assert_eq!(desk.policy("p1", Some("de")).await, german);
    assert_eq!(desk.policy("p1", None).await, original);
    assert_eq!(scripted.calls(), 3);
    // As a task as well; an order of before says nothing of it.
    let told: Task =
        serde_json::from_str(r#"{"task":"policy","page":"p1","source":"leave"}"#).unwrap();
    assert!(matches!(told, Task::Policy { redo: false, .. }));
    let (id, policy) = (page("p1"), source("leave"));
    let task =
        Task::Policy { page: id, source: policy, language: Some(language("de")), redo: true };
    let done = desk.workspace.perform(&task, "ada", &Course::untold()).await.unwrap();
    assert_eq!(done["title"], "German title 4");
    assert_eq!(desk.policy("p1", Some("fr")).await, again);
}

async fn a_redo_that_fails_leaves_what_is_there(place: Place) {
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = broken.clone();
    let scripted = Scripted::new(move |request| match is_broken.load(Ordering::Relaxed) {
        true => Err(Error::Declined { why: "not today".to_owned() }),
        false => Ok(translated(request).unwrap()),
    });
    let desk = Desk::new(place.store().await, place.clock().clone(), models(scripted));
    let desk = desk.with_page("p1").await;
    let french = desk.policy("p1", Some("fr")).await;
    broken.store(true, Ordering::Relaxed);
    let failed = redo(&desk.workspace, Some("fr")).await.unwrap_err();
    assert_eq!(failed.code(), Code::ModelDeclined, "{failed}");
    assert_eq!(desk.policy("p1", Some("fr")).await, french);
    broken.store(false, Ordering::Relaxed);
    let again = redo(&desk.workspace, Some("fr")).await.unwrap();
    assert_eq!(again.content, french.content);
}

async fn a_redo_of_what_was_never_made_makes_it(place: Place) {
    let scripted = numbering();
    let desk = Desk::new(place.store().await, place.clock().clone(), models(scripted.clone()));
    let desk = desk.with_page("p1").await;
    let french = redo(&desk.workspace, Some("fr")).await.unwrap();
    assert_eq!(desk.policy("p1", Some("fr")).await, french);
    assert_eq!(scripted.calls(), 1);
}

/// A model that answers when it is let.
#[derive(Clone)]
struct Held(Scripted, Arc<Semaphore>);

impl Provider for Held {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn model(&self) -> &str {
        self.0.model()
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Asked<'a> {
        Box::pin(async {
            self.1.acquire().await.unwrap().forget();
            self.0.ask(request).await
        })
    }
}

async fn all_who_redo_at_the_same_time_cause_one_translation(place: Place) {
    const CALLERS: usize = 4;
    let held = Held(numbering(), Arc::new(Semaphore::new(1)));
    // Two processes, with two callers each.
    let desks = [
        Desk::new(place.store().await, SystemClock, models(held.clone())),
        Desk::new(place.store().await, SystemClock, models(held.clone())),
    ];
    let [first, second] = desks;
    let first = first.with_page("p1").await;
    let before = first.policy("p1", Some("fr")).await;
    let redoing: Vec<_> = (0..CALLERS)
        .map(|n| {
            let workspace = if n % 2 == 0 { &first.workspace } else { &second.workspace };
            let workspace = workspace.clone();
            tokio::spawn(async move { redo(&workspace, Some("fr")).await.unwrap() })
        })
        .collect();
    let root = first.workspace.locks().root(Key::parse("p1").unwrap()).unwrap();
    while root.list().await.unwrap().waiters.len() < CALLERS - 1 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // What is there is given out meanwhile.
    assert_eq!(second.policy("p1", Some("fr")).await, before);
    held.1.add_permits(CALLERS);
    for one in redoing {
        assert_eq!(one.await.unwrap().title, "French title 2");
    }
    assert_eq!(held.0.calls(), 2, "one before, and one for all of them");
}

/// Uploads of which one attachment reads as the test says, although nothing tells that it has changed: as when
/// a newer version reads files better.
struct Rewritten(Arc<Uploads>, Mutex<Option<&'static str>>, AtomicUsize);

impl Source for Rewritten {
    fn identity(&self) -> String {
        self.0.identity()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PageSummary>>> {
        self.0.list()
    }

    fn page<'a>(&'a self, page: &'a PageId) -> BoxFuture<'a, Result<Option<Page>>> {
        self.0.page(page)
    }

    fn read<'a>(
        &'a self,
        page: &'a PageId,
        source: &'a SourceId,
    ) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async {
            self.2.fetch_add(1, Ordering::Relaxed);
            let rewritten = *self.1.lock().unwrap();
            match rewritten {
                Some(text) => Ok(Some(Bytes::from_static(text.as_bytes()))),
                None => self.0.read(page, source).await,
            }
        })
    }
}

async fn an_original_made_again_keeps_its_translations_unless_its_text_changes(place: Place) {
    let scripted = numbering();
    let store = place.store().await;
    let desk = Desk::new(store.clone(), place.clock().clone(), None).with_page("p1").await;
    let pages = Arc::new(Rewritten(desk.uploads.clone(), Mutex::new(None), AtomicUsize::new(0)));
    let extractor = Extractor::InProcess(Limits::default());
    let (clock, asked) = (place.clock().clone(), models(scripted.clone()));
    let workspace =
        Workspace::new(store, clock, pages.clone(), extractor, asked, options()).unwrap();
    let (id, policy, course) = (page("p1"), source("leave"), Course::untold());
    let get = async |code: Option<&str>| {
        workspace.policy(&id, &policy, code.map(language), &course).await.unwrap()
    };
    let (original, french) = (get(None).await, get(Some("fr")).await);
    let issues = workspace.issues().of(&id).unwrap();
    let reference = Reference::new(
        policy.clone(),
        original.title.clone(),
        "a leave of one year",
        original.modified,
        &original.content,
    );
    let new = NewIssue::new("How long?", Severity::High).describe(vec![Part::Reference(reference)]);
    let issue = issues.create(new, &By::new("ada")).await.unwrap().issue.id;

    // Read again, and the same: by its own language, too.
    for code in [None, Some("en")] {
        assert_eq!(redo(&workspace, code).await.unwrap(), original);
    }
    assert_eq!(pages.2.load(Ordering::Relaxed), 3);
    assert_eq!(get(Some("fr")).await, french);
    assert!(!issues.get(issue).await.unwrap().issue.stale);
    assert_eq!(scripted.calls(), 1);

    *pages.1.lock().unwrap() =
        Some("# Study leave\n\nEvery candidate may take a leave of two years.");
    let changed = redo(&workspace, None).await.unwrap();
    assert!(changed.content.contains("two years"), "{}", changed.content);
    assert_eq!(get(None).await, changed);
    assert!(issues.get(issue).await.unwrap().issue.stale);
    assert_eq!(workspace.cached_policy(&id, &policy, Some(language("fr"))).await.unwrap(), None);
    let listed = workspace.listed_policies(&id).await.unwrap();
    assert!(listed[&policy].translations.is_empty(), "{listed:?}");
    assert!(get(Some("fr")).await.content.contains("two years"));
}
