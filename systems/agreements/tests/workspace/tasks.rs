//! Tasks as jobs: submitted, watched, cancelled, failed for good.

use std::time::Duration;

use futures_util::StreamExt;
use keyward_agreements::source::Source as _;
use keyward_agreements::{Activity, By, Course, NewIssue, Severity, State, Task};
use keyward_models::{Answer, Asked, Provider, Request};
use keyward_queue::{Cancelled, Status};
use keyward_stores::{Place, on_every_engine};
use tokio::sync::Notify;

use crate::fixture::{Desk, language, models, options, page, source, translator};

on_every_engine!(
    a_job_tells_what_it_is_doing_and_then_its_result,
    a_cancelled_job_stops_and_gives_its_locks_back,
    hostile_files_end_in_a_trace_that_says_why,
    a_finished_job_goes_after_its_retention,
    a_change_that_a_job_made_before_it_was_taken_over_is_not_made_again,
);

fn translate() -> Task {
    Task::Policy {
        page: page("p1"),
        source: source("leave"),
        language: Some(language("fr")),
        redo: false,
    }
}

async fn a_job_tells_what_it_is_doing_and_then_its_result(place: Place) {
    let desk = Desk::new(place.store().await, place.clock().clone(), models(translator()));
    let desk = desk.with_page("p1").await;
    let submitted = desk.workspace.submit(translate(), "ada", None).await.unwrap();
    let mut watched = desk.workspace.jobs().watch(submitted.id());
    let mut statuses = vec![watched.next().await.unwrap().unwrap()];
    let (stop, working) = desk.work();
    statuses.extend(watched.map(Result::unwrap).collect::<Vec<_>>().await);
    let names: Vec<&str> = statuses
        .iter()
        .filter_map(|status| match status {
            Status::Activity(activity) => Some(activity.name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names.first(), Some(&"scheduling"), "{names:?}");
    let known =
        |name: &&str| *name == "running" || Activity::ALL.iter().any(|it| it.as_str() == *name);
    assert!(names.iter().all(known), "{names:?}");
    let Some(Status::Result(result)) = statuses.last() else { panic!("{statuses:?}") };
    let result: serde_json::Value = serde_json::from_str(result.as_str()).unwrap();
    assert_eq!((&result["source"], &result["language"]), (&"leave".into(), &"fr".into()));
    // Reading it twice gives the same.
    let jobs = desk.workspace.jobs();
    let read = jobs.status(submitted.id()).await.unwrap();
    assert_eq!(jobs.status(submitted.id()).await.unwrap(), read);
    drop(stop);
    working.await.unwrap();
}

/// Says when it is asked, and never answers.
struct Silent(std::sync::Arc<Notify>);

impl Provider for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn model(&self) -> &str {
        "silent"
    }

    fn ask<'a>(&'a self, _: &'a Request) -> Asked<'a> {
        Box::pin(async {
            self.0.notify_one();
            std::future::pending::<Result<Answer, _>>().await
        })
    }
}

async fn a_cancelled_job_stops_and_gives_its_locks_back(place: Place) {
    let asked = std::sync::Arc::new(Notify::new());
    let provider = Silent(asked.clone());
    let desk = Desk::new(place.store().await, place.clock().clone(), models(provider));
    let desk = desk.with_page("p1").await;
    let submitted = desk.workspace.submit(translate(), "ada", None).await.unwrap();
    let (stop, working) = desk.work();
    asked.notified().await;
    let cancelled = desk.workspace.jobs().cancel(submitted.id(), "bob").await.unwrap();
    assert_eq!(cancelled, Cancelled::Done);
    // Only once nobody holds a lock below it can the page be had whole.
    desk.workspace.clear(&page("p1"), &Course::untold()).await.unwrap();
    let status = desk.workspace.jobs().status(submitted.id()).await.unwrap().unwrap();
    assert!(matches!(&status, Status::Trace(trace) if trace.kind == "cancelled"), "{status:?}");
    drop(stop);
    working.await.unwrap();
}

async fn hostile_files_end_in_a_trace_that_says_why(place: Place) {
    let desk = Desk::new(place.store().await, place.clock().clone(), None);
    desk.put_page("p1").await;
    let id = page("p1");
    let files: [(&str, &[u8], &str); 4] = [
        ("empty.pdf", b"", "empty-file"),
        ("broken.docx", b"PK\x03\x04 and no more", ""),
        ("picture.pdf", b"\x89PNG\r\n\x1a\n0000", "contradicting-type"),
        ("cut.pdf", b"%PDF-1.7\n1 0 obj\n<<", ""),
    ];
    for (name, bytes, _) in files {
        desk.uploads.attach(&id, &source(name), name, None, bytes).await.unwrap();
    }
    assert_eq!(desk.uploads.page(&id).await.unwrap().unwrap().attachments.len(), 4);
    let (stop, working) = desk.work();
    for (name, _, code) in files {
        let task =
            Task::Policy { page: id.clone(), source: source(name), language: None, redo: false };
        let submitted = desk.workspace.submit(task, "ada", None).await.unwrap();
        let statuses: Vec<_> = desk.workspace.jobs().watch(submitted.id()).collect().await;
        let last = statuses.last().unwrap().as_ref().unwrap();
        let Status::Trace(trace) = last else { panic!("{name}: {last:?}") };
        assert_eq!((trace.kind.as_str(), trace.attempts), ("failed", 1), "{name}: {trace:?}");
        assert!(trace.message.starts_with(code), "{name}: {}", trace.message);
    }
    drop(stop);
    working.await.unwrap();
}

async fn a_finished_job_goes_after_its_retention(place: Place) {
    let options = keyward_agreements::Options { retention: Duration::from_secs(1), ..options() };
    let (store, clock) = (place.store().await, place.clock().clone());
    let desk = Desk::with(store, clock, models(translator()), options).with_page("p1").await;
    let submitted = desk.workspace.submit(translate(), "ada", None).await.unwrap();
    let (stop, working) = desk.work();
    let jobs = desk.workspace.jobs();
    let last = jobs.watch(submitted.id()).map(Result::unwrap).collect::<Vec<_>>().await.pop();
    assert!(matches!(last, Some(Status::Result(_))), "{last:?}");
    place.clock().advance(Duration::from_secs(2));
    // PostgreSQL goes by its own clock.
    while jobs.get(submitted.id()).await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stop);
    working.await.unwrap();
}

async fn a_change_that_a_job_made_before_it_was_taken_over_is_not_made_again(place: Place) {
    let desk = Desk::new(place.store().await, place.clock().clone(), None).with_page("p1").await;
    let issues = desk.workspace.issues().of(&page("p1")).unwrap();
    let new = NewIssue::new("An issue", Severity::Low);
    let issue = issues.create(new, &By::new("ada")).await.unwrap().issue.id;
    // What the first worker did, before it was killed: the event of a job has an id of its own.
    let task = Task::Transition { page: page("p1"), issue, to: State::Resolved, why: None };
    let submitted = desk.workspace.submit(task, "ada", None).await.unwrap();
    let (stop, working) = desk.work();
    let jobs = desk.workspace.jobs();
    let _: Vec<_> = jobs.watch(submitted.id()).collect().await;
    let event = issues.get(issue).await.unwrap().issue.history.last().unwrap().id;
    issues.transition(issue, State::Active, &By::new("bob")).await.unwrap();
    let again = By { event: Some(event), ..By::new("ada") };
    let kept = issues.transition(issue, State::Resolved, &again).await.unwrap().issue;
    assert_eq!((kept.state, kept.history.len()), (State::Active, 3));
    drop(stop);
    working.await.unwrap();
}
