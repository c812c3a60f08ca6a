//! A crash, a failure or a lost answer at every call that a change makes.

use std::sync::Arc;
use std::time::Duration;

use keyward_agreements::{Annotation, Change, Issue, NewIssue, Result, Severity, State, What};
use keyward_engine::{Coded, Engine, Store};
use keyward_locks::{Mode, Options};
use keyward_memory::Memory;
use keyward_testkit::{Fault, Faults, FaultyEngine, VirtualClock, When};

use crate::fixture::{Process, ada, bob, moment, reference, source};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Classify,
    Annotate,
    Move,
    Archive,
    MarkStale,
    Apply,
}

const ALL: [Operation; 7] = [
    Operation::Create,
    Operation::Classify,
    Operation::Annotate,
    Operation::Move,
    Operation::Archive,
    Operation::MarkStale,
    Operation::Apply,
];

fn process(engine: &FaultyEngine, seed: u64) -> Process {
    let options = Options { seed: Some(seed), ..Options::default() };
    Process::new(Store::new(engine.clone()), VirtualClock::new(), options)
}

async fn act(process: &Process, operation: Operation, known: &Issue) -> Result<()> {
    let (issues, id) = (&process.issues, known.id);
    match operation {
        Operation::Create => {
            issues.create(NewIssue::new("New", Severity::Low), &bob()).await.map(drop)
        }
        Operation::Classify => issues.classify(id, Severity::High, &bob()).await.map(drop),
        Operation::Annotate => {
            issues.annotate(id, Annotation::Append("note".to_owned()), &bob()).await.map(drop)
        }
        Operation::Move => issues.transition(id, State::Resolved, &bob()).await.map(drop),
        Operation::Archive => issues.archive(id, true, &bob()).await.map(drop),
        Operation::MarkStale => {
            issues.mark_stale(&source("s"), Some(moment(9)), "bob").await.map(drop)
        }
        Operation::Apply => {
            let path = keyward_locks::LockPath::parse("issues").unwrap();
            let request = keyward_locks::Request::default().ttl(Duration::from_secs(20));
            let guard = process.root.acquire(&[path], Mode::Exclusive, &request).await?;
            let changes = vec![
                Change::Create(NewIssue::new("New", Severity::Low)),
                Change::Refresh { issue: id, description: vec![reference("s", 9)] },
            ];
            let applied = issues.apply_findings(&guard, changes, &bob()).await;
            // What cannot be given back ends with its lease.
            let _ = guard.release().await;
            applied.map(drop)
        }
    }
}

/// What an operation left: nothing, or all of it once.
fn is_done(operation: Operation, all: &[Issue], before: &Issue, told: &str) -> bool {
    let known = all.iter().find(|issue| issue.id == before.id).unwrap();
    let new: Vec<&Issue> = all.iter().filter(|issue| issue.id != before.id).collect();
    let changed = &known.history[before.history.len()..];
    let makes = matches!(operation, Operation::Create | Operation::Apply);
    if new.is_empty() && changed.is_empty() {
        assert_eq!(known, before, "{told}");
        return false;
    }
    assert_eq!(new.len(), usize::from(makes), "{told}");
    assert!(new.iter().all(|it| it.title == "New" && it.history.len() == 1), "{told}");
    assert_eq!(changed.len(), usize::from(operation != Operation::Create), "{told}");
    assert!(changed.iter().all(|event| event.who == "bob"), "{told}");
    match operation {
        Operation::Create => assert_eq!(known, before, "{told}"),
        Operation::Classify => assert_eq!(known.severity, Severity::High, "{told}"),
        Operation::Annotate => assert_eq!(known.annotations, "note", "{told}"),
        Operation::Move => {
            assert!(known.state == State::Resolved && known.resolved_at.is_some(), "{told}");
        }
        Operation::Archive => assert!(known.archived, "{told}"),
        Operation::MarkStale => assert!(known.stale, "{told}"),
        Operation::Apply => {
            assert!(!known.stale && changed[0].change == What::Refreshed, "{told}");
        }
    }
    true
}

/// Does an operation with a fault at one call, and says whether that happened.
async fn run(operation: Operation, at: u64, fault: Fault) -> bool {
    let told = format!("{operation:?} {at} {fault:?}");
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::default(), VirtualClock::new()));
    let healthy = process(&FaultyEngine::new(memory.clone(), Faults::none()), 1);
    let mut known = healthy.create_about("Known", "s", 5).await;
    if operation == Operation::Apply {
        healthy.issues.mark_stale(&source("s"), None, "ada").await.unwrap();
        known = healthy.issues.get(known.id).await.unwrap().issue;
    }

    let engine = FaultyEngine::new(memory, Faults::script([(at, fault)]));
    let answered = act(&process(&engine, 2), operation, &known).await;
    let happened = engine.calls() > at;
    let crashed = engine.is_crashed();
    // The process dies in any case.
    engine.kill();
    let all = healthy.issues.all().await.unwrap();
    let done = is_done(operation, &all, &known, &told);
    match &answered {
        Ok(()) => assert!(done, "{told}"),
        // Whatever was written is known to be, unless the process died.
        Err(error) if !crashed => assert!(error.retryable() && !done, "{told}: {error}"),
        Err(_) => {}
    }
    // What was late finds that others went on.
    let landed = engine.land().await;
    assert!(landed.iter().all(|it| it.as_ref().is_ok_and(|it| !it.is_applied())), "{told}");
    assert_eq!(healthy.issues.all().await.unwrap(), all, "{told}");
    // Nobody is kept from going on by one who is dead. What is archived is brought back first.
    let issues = &healthy.issues;
    issues.archive(known.id, false, &ada()).await.unwrap_or_else(|error| panic!("{told}: {error}"));
    let note = Annotation::Append("after".to_owned());
    issues.annotate(known.id, note, &ada()).await.unwrap_or_else(|error| panic!("{told}: {error}"));
    happened
}

async fn everywhere(fault: Fault) {
    for operation in ALL {
        let mut at = 0;
        while run(operation, at, fault).await {
            at += 1;
        }
        assert!(at > 2, "{operation:?} makes calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_any_call_leaves_all_or_nothing() {
    everywhere(Fault::Crash(When::Before)).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_call_leaves_all_or_nothing() {
    everywhere(Fault::Crash(When::After)).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_what_arrived_is_found_out() {
    everywhere(Fault::Unanswered(When::After)).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_what_never_arrived_is_found_out() {
    everywhere(Fault::Unanswered(When::Before)).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_told_and_nothing_is_done() {
    everywhere(Fault::Fail).await;
}

#[tokio::test(start_paused = true)]
async fn what_lands_late_is_refused() {
    everywhere(Fault::Late(Duration::MAX)).await;
}
