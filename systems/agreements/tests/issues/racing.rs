//! Several people at once.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use keyward_agreements::{Annotation, By, Error, Issue, Severity, State, What};
use keyward_engine::{Code, Coded, Engine, Store};
use keyward_locks::{Mode, Options};
use keyward_memory::Memory;
use keyward_stores::{Place, on_every_engine};
use keyward_testkit::{Faults, FaultyEngine, Rates, Replay, Test, VirtualClock, seeds};
use tokio::task::JoinSet;

use crate::fixture::{Process, ada, moment, source, told, went};

on_every_engine!(
    of_two_who_move_an_issue_at_once_one_is_told,
    of_two_who_make_the_same_move_at_once_one_is_told,
    annotating_and_classifying_at_once_lose_nothing,
    of_two_who_replace_the_annotations_at_once_one_is_told,
    one_who_gives_up_leaves_the_line_and_changes_nothing,
);

/// Two people who saw the issue as it was, and wait while somebody else has its lock.
async fn two_moves(place: &Place, to: [State; 2]) -> (Issue, Vec<Error>) {
    let (one, other) = (Process::on(place).await, Process::on(place).await);
    let id = one.create("Notice").await.id;
    let guard = one.lock(&format!("issues:{id}"), Mode::Exclusive).await;
    let mut moves = JoinSet::new();
    for (process, who, to) in [(&one, "bob", to[0]), (&other, "eve", to[1])] {
        let issues = process.issues.clone();
        moves.spawn(async move { issues.transition(id, to, &By::new(who)).await });
    }
    one.until_waiting(2).await;
    guard.release().await.unwrap();
    let errors = moves.join_all().await.into_iter().filter_map(Result::err).collect();
    (one.issues.get(id).await.unwrap().issue, errors)
}

async fn of_two_who_move_an_issue_at_once_one_is_told(place: Place) {
    // The table has a way from each to the other.
    let (issue, errors) = two_moves(&place, [State::Active, State::Blocked]).await;
    assert_eq!(told(&issue), [What::Created, went(State::Pending, issue.state)]);
    let [Error::Moved { message }] = &errors[..] else { panic!("{errors:?}") };
    let winner = &issue.history[1].who;
    let told =
        format!("{winner} moved it from pending to {} at 2026-01-01T00:00:00.000000Z", issue.state);
    assert_eq!(*message, told);
}

async fn of_two_who_make_the_same_move_at_once_one_is_told(place: Place) {
    let (issue, errors) = two_moves(&place, [State::Active, State::Active]).await;
    assert_eq!(told(&issue), [What::Created, went(State::Pending, State::Active)]);
    assert!(matches!(&errors[..], [Error::Moved { .. }]), "{errors:?}");
}

async fn annotating_and_classifying_at_once_lose_nothing(place: Place) {
    let processes = [Process::on(&place).await, Process::on(&place).await];
    let id = processes[0].create("Notice").await.id;
    let mut changes = JoinSet::new();
    for n in 0..6 {
        let issues = processes[n % 2].issues.clone();
        changes.spawn(async move {
            let text = Annotation::Append(format!("note {n}"));
            issues.annotate(id, text, &ada()).await.map(drop)
        });
    }
    let issues = processes[1].issues.clone();
    changes.spawn(async move { issues.classify(id, Severity::High, &ada()).await.map(drop) });
    let issues = processes[0].issues.clone();
    changes.spawn(async move { issues.transition(id, State::Active, &ada()).await.map(drop) });
    for changed in changes.join_all().await {
        changed.unwrap();
    }
    let issue = processes[0].issues.get(id).await.unwrap().issue;
    for n in 0..6 {
        assert_eq!(issue.annotations.matches(&format!("note {n}")).count(), 1);
    }
    assert_eq!((issue.severity, issue.state), (Severity::High, State::Active));
    assert_eq!(issue.history.len(), 9);
}

async fn of_two_who_replace_the_annotations_at_once_one_is_told(place: Place) {
    let process = Process::on(&place).await;
    let id = process.create("Notice").await.id;
    let guard = process.lock(&format!("issues:{id}"), Mode::Exclusive).await;
    let mut changes = JoinSet::new();
    for n in 0..2 {
        let issues = process.issues.clone();
        let text = Annotation::Replace(format!("text {n}"));
        changes.spawn(async move { issues.annotate(id, text, &ada()).await });
    }
    process.until_waiting(2).await;
    guard.release().await.unwrap();
    let answers = changes.join_all().await;
    let lost: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert!(matches!(&lost[..], [Error::Moved { .. }]), "{lost:?}");
    assert_eq!(process.issues.get(id).await.unwrap().issue.history.len(), 2);
}

async fn one_who_gives_up_leaves_the_line_and_changes_nothing(place: Place) {
    let process = Process::on(&place).await;
    let id = process.create("Notice").await.id;
    let guard = process.lock("issues", Mode::Exclusive).await;
    let issues = process.issues.clone();
    let waiting = tokio::spawn(async move { issues.transition(id, State::Active, &ada()).await });
    process.until_waiting(1).await;
    // One who gives up leaves the line.
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    process.root.settled().await;
    assert!(process.root.list().await.unwrap().waiters.is_empty());
    guard.release().await.unwrap();
    assert_eq!(process.issues.get(id).await.unwrap().issue.state, State::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_bounded() {
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::default(), VirtualClock::new()));
    let process = Process::new(Store::from_arc(memory), VirtualClock::new(), Options::default());
    let id = process.create("Notice").await.id;
    let guard = process.lock("issues", Mode::Exclusive).await;
    let refused = process.issues.transition(id, State::Active, &ada()).await.unwrap_err();
    assert_eq!(refused.code(), Code::TimedOut);
    assert!(refused.retryable());
    guard.release().await.unwrap();
    process.issues.transition(id, State::Active, &ada()).await.unwrap();
}

/// What one of many people did to the issue, and what they were told.
async fn person(process: Process, n: u64, seed: u64) -> Vec<(String, bool)> {
    let mut rng = Rng::with_seed(seed ^ (n << 32));
    let id = process.issues.all().await.unwrap()[0].id;
    let mut done = Vec::new();
    for turn in 0..6 {
        let (issues, by) = (&process.issues, By::new(format!("person {n}")));
        let (what, answer) = match rng.u8(0..5) {
            0 => {
                let to = State::ALL[rng.usize(0..4)];
                (format!("move to {to}"), issues.transition(id, to, &by).await.map(drop))
            }
            1 => {
                let to = Severity::try_from(rng.u8(1..=3)).unwrap();
                (format!("classify as {to}"), issues.classify(id, to, &by).await.map(drop))
            }
            2 => {
                let newer = Some(moment(10));
                let marked = issues.mark_stale(&source("s"), newer, &by.who).await;
                ("mark".to_owned(), marked.map(drop))
            }
            _ => {
                let note = format!("[note {n} {turn}]");
                let annotated =
                    issues.annotate(id, Annotation::Append(note.clone()), &by).await.map(drop);
                (note, annotated)
            }
        };
        if let Err(error) = &answer {
            let is_told = matches!(error, Error::Moved { .. } | Error::Transition { .. });
            assert!(is_told, "{what}: {error}");
        }
        done.push((what, answer.is_ok()));
    }
    done
}

/// Everything that was answered is there once, whatever came in between.
#[test]
fn what_many_people_do_to_one_issue_is_there_once() {
    const PATH: &str = "issues::racing::what_many_people_do_to_one_issue_is_there_once";
    for seed in seeds(25, 1_000) {
        let mut replay = Replay::new(Test { package: "keyward-agreements", path: PATH }, seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let clock = VirtualClock::new();
            let memory = Arc::new(Memory::with(keyward_memory::Options::default(), clock));
            let delay_max = Duration::from_millis(50);
            let rates = Rates { delay: 0.6, delay_max, ..Rates::default() };
            let engine = FaultyEngine::new(memory, Faults::seeded(seed, rates));
            let process = |n: u64| {
                let options = Options { seed: Some(seed * 10 + n), ..Options::default() };
                Process::new(Store::new(engine.clone()), clock, options)
            };
            let id = process(0).create_about("Notice", "s", 5).await.id;
            let mut people = JoinSet::new();
            for n in 1..5 {
                people.spawn(person(process(n), n, seed));
            }
            let done: Vec<_> = people.join_all().await.into_iter().flatten().collect();
            for (what, is_done) in &done {
                replay.step(format!("{what}: {is_done}"));
            }
            let issue = process(5).issues.get(id).await.unwrap().issue;
            check(&issue, &done);
        });
    }
}

fn check(issue: &Issue, done: &[(String, bool)]) {
    let count =
        |is: &dyn Fn(&What) -> bool| issue.history.iter().filter(|it| is(&it.change)).count();
    let answered =
        |begin: &'static str| done.iter().filter(move |(what, ok)| *ok && what.starts_with(begin));
    for (note, _) in answered("[note") {
        assert_eq!(issue.annotations.matches(note.as_str()).count(), 1, "{note}");
    }
    assert_eq!(count(&|it| *it == What::Annotated), answered("[note").count());
    let moves = count(&|it| matches!(it, What::Transition { .. }));
    assert_eq!(moves, answered("move").count());
    let is_marked = answered("mark").count() > 0;
    assert_eq!(issue.stale, is_marked);
    assert_eq!(count(&|it| matches!(it, What::Stale { .. })), usize::from(is_marked));
    // The moves are a way through the table.
    let mut state = State::Pending;
    for event in &issue.history {
        if let What::Transition { from, to } = event.change {
            assert!(from == state && from.next().contains(&to), "{event}");
            state = to;
        }
    }
    assert_eq!(issue.state, state);
    assert_eq!(issue.resolved_at.is_some(), state == State::Resolved);
}
