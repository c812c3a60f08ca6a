//! Each fault, as a caller sees it and as the store is left.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{
    Commit, Engine, ErrorKind, Event, Expect, Json, Outcome, Put, Result, Scan, Store, WatchSupport,
};
use keyward_key::{Key, KeyRange};
use keyward_memory::{Memory, Options};
use keyward_testkit::{Call, Fault, Faults, FaultyEngine, Rates, TestClock, When};
use tokio::time::Instant;

fn faulty(faults: Faults) -> FaultyEngine {
    let memory = Memory::with(Options::default(), TestClock::new());
    FaultyEngine::new(Arc::new(memory), faults)
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn number(n: i64) -> Put {
    Put::new(Json::from_integer(n))
}

/// What a key holds in truth.
async fn truth(engine: &FaultyEngine, text: &str) -> Option<i64> {
    let entry = Store::from_arc(engine.inner()).get(&key(text)).await.unwrap();
    entry.and_then(|entry| entry.value.as_integer())
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(error) => error.kind(),
    }
}

#[tokio::test]
async fn without_faults_calls_go_through_and_are_counted() {
    let engine = faulty(Faults::none());
    let store = Store::new(engine.clone());
    store.put(key("a"), number(1)).await.unwrap();
    assert!(store.get(&key("a")).await.unwrap().is_some());
    assert_eq!(store.scan(&Scan::new(KeyRange::all())).await.unwrap().rows.len(), 1);
    let calls = [Call::Commit, Call::Get, Call::Scan].map(|call| (call, Fault::None));
    assert_eq!(engine.trace(), calls);
    assert_eq!(engine.calls(), 3);
}

#[tokio::test]
async fn a_failed_call_did_nothing() {
    let fail = |call| (call, Fault::Fail);
    let engine = faulty(Faults::script([fail(0), fail(1), fail(2)]));
    let store = Store::new(engine.clone());
    assert_eq!(kind(store.put(key("a"), number(1)).await), ErrorKind::Unavailable);
    assert_eq!(kind(store.get(&key("a")).await), ErrorKind::Unavailable);
    assert_eq!(kind(store.scan(&Scan::new(KeyRange::all())).await), ErrorKind::Unavailable);
    assert_eq!(truth(&engine, "a").await, None);
    assert!(store.put(key("a"), number(1)).await.is_ok(), "the next one works");
}

#[tokio::test]
async fn an_unanswered_commit_may_or_may_not_be_applied() {
    for (when, left) in [(When::Before, None), (When::After, Some(1))] {
        let engine = faulty(Faults::script([(0, Fault::Unanswered(when))]));
        let store = Store::new(engine.clone());
        assert_eq!(kind(store.put(key("a"), number(1)).await), ErrorKind::OutcomeUnknown);
        assert_eq!(truth(&engine, "a").await, left, "{when:?}");
        assert!(!engine.is_crashed());
        let entry = store.get(&key("a")).await.unwrap();
        assert_eq!(entry.is_some(), left.is_some(), "reading tells which");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_commit_lands_after_what_others_do_and_after_its_process() {
    let second = Duration::from_secs(1);
    let engine = faulty(Faults::script([(0, Fault::Late(second))]));
    let store = Store::new(engine.clone());
    assert_eq!(kind(store.put(key("a"), number(1)).await), ErrorKind::OutcomeUnknown);
    store.put(key("a"), number(2)).await.unwrap();
    engine.kill();
    assert_eq!(truth(&engine, "a").await, Some(2));
    tokio::time::sleep(second).await;
    tokio::task::yield_now().await;
    assert_eq!(truth(&engine, "a").await, Some(1));
    assert!(engine.land().await.is_empty(), "it has landed");
}

#[tokio::test]
async fn a_late_commit_lands_when_it_is_let_and_a_late_read_has_just_failed() {
    let late = Fault::Late(Duration::MAX);
    let engine = faulty(Faults::script([(0, late), (1, late)]));
    let store = Store::new(engine.clone());
    let absent = Commit::new().check(key("a"), Expect::Absent).put(key("a"), number(1));
    assert_eq!(kind(store.commit(absent).await), ErrorKind::OutcomeUnknown);
    assert_eq!(kind(store.get(&key("a")).await), ErrorKind::Unavailable);
    store.put(key("a"), number(2)).await.unwrap();
    let landed = engine.revive().land().await;
    assert!(matches!(landed[..], [Ok(Outcome::Conflicted { .. })]), "{landed:?}");
    assert_eq!(truth(&engine, "a").await, Some(2));
}

#[tokio::test]
async fn an_unanswered_read_has_just_failed() {
    for when in [When::Before, When::After] {
        let engine = faulty(Faults::script([(0, Fault::Unanswered(when))]));
        let store = Store::new(engine);
        assert_eq!(kind(store.get(&key("a")).await), ErrorKind::Unavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_comes_before_or_after_the_effect() {
    let second = Duration::from_secs(1);
    for (when, half_way) in [(When::Before, None), (When::After, Some(1))] {
        let engine = faulty(Faults::script([(0, Fault::Delay(when, second))]));
        let store = Store::new(engine.clone());
        let began = Instant::now();
        let put = tokio::spawn(async move { store.put(key("a"), number(1)).await });
        tokio::time::sleep(second / 2).await;
        assert_eq!(truth(&engine, "a").await, half_way, "{when:?}");
        put.await.unwrap().unwrap();
        assert_eq!(began.elapsed(), second);
        assert_eq!(truth(&engine, "a").await, Some(1));
    }
}

#[tokio::test]
async fn a_yield_lets_another_task_go_first() {
    let engine = faulty(Faults::script([(0, Fault::Yield(When::Before, 3))]));
    let (first, second) = (Store::new(engine.clone()), Store::new(engine.clone()));
    let (one, two) = tokio::join!(first.put(key("a"), number(1)), second.put(key("a"), number(2)));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(truth(&engine, "a").await, Some(1), "the first call came last");
}

#[tokio::test]
async fn a_crashed_handle_stays_dead_until_another_is_made() {
    for (when, left, said) in [
        (When::Before, None, ErrorKind::Unavailable),
        (When::After, Some(1), ErrorKind::OutcomeUnknown),
    ] {
        let engine = faulty(Faults::crash_at(1, when));
        let store = Store::new(engine.clone());
        assert_eq!(store.get(&key("a")).await.unwrap(), None);
        assert_eq!(kind(store.put(key("a"), number(1)).await), said, "{when:?}");
        assert!(engine.is_crashed());

        for _ in 0..2 {
            let dead = store.put(key("b"), number(2)).await.unwrap_err();
            assert_eq!((dead.kind(), dead.message()), (ErrorKind::Unavailable, "crashed"));
            assert_eq!(kind(store.get(&key("a")).await), ErrorKind::Unavailable);
            assert_eq!(kind(store.scan(&Scan::new(KeyRange::all())).await), ErrorKind::Unavailable);
            assert_eq!(kind(store.stats().await), ErrorKind::Unavailable);
        }
        assert_eq!(truth(&engine, "a").await, left, "{when:?}");
        assert_eq!(truth(&engine, "b").await, None);
        assert_eq!(engine.calls(), 2, "the dead call nobody");

        let revived = engine.revive();
        assert!(!revived.is_crashed() && engine.is_crashed());
        let store = Store::new(revived);
        store.put(key("b"), number(2)).await.unwrap();
        assert_eq!(engine.calls(), 3, "the count goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_reaches_calls_that_are_under_way() {
    let second = Duration::from_secs(1);
    let engine = faulty(Faults::script([
        (0, Fault::Delay(When::Before, second)),
        (1, Fault::Delay(When::After, second)),
        (2, Fault::Crash(When::Before)),
    ]));
    let puts = ["a", "b", "c"].map(|text| {
        let store = Store::new(engine.clone());
        async move { kind(store.put(key(text), number(1)).await) }
    });
    let [a, b, c] = puts;
    let said = tokio::join!(a, b, c);
    assert_eq!(said.0, ErrorKind::Unavailable, "it never arrived");
    assert_eq!(said.1, ErrorKind::OutcomeUnknown, "its answer found nobody");
    assert_eq!(said.2, ErrorKind::Unavailable);
    assert_eq!(truth(&engine, "a").await, None);
    assert_eq!(truth(&engine, "b").await, Some(1));
}

#[tokio::test]
async fn a_watch_passes_until_the_crash() {
    let engine = faulty(Faults::crash_at(1, When::Before));
    let store = Store::new(engine.clone());
    let mut watch = store.watch(KeyRange::all(), None);
    assert!(matches!(watch.next().await, Some(Ok(Event::Reached(_)))));
    store.put(key("a"), number(1)).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(Event::Changed { .. }))));

    // One that waits is woken by the crash.
    let waiting = tokio::spawn(async move { (watch.next().await, watch.next().await) });
    tokio::task::yield_now().await;
    assert_eq!(kind(store.get(&key("a")).await), ErrorKind::Unavailable);
    let (last, after) = waiting.await.unwrap();
    assert_eq!(kind(last.unwrap()), ErrorKind::Unavailable);
    assert!(after.is_none());

    let mut dead = store.watch(KeyRange::all(), None);
    assert_eq!(kind(dead.next().await.unwrap()), ErrorKind::Unavailable);
    let mut alive = engine.revive().watch(KeyRange::all(), None);
    assert!(matches!(alive.next().await, Some(Ok(Event::Reached(_)))));
}

/// Some tasks that add to counters with retries, on an engine that fails by a seed.
async fn increments(seed: u64) -> (Vec<(Call, Fault)>, Vec<String>, Vec<Option<i64>>) {
    let engine = faulty(Faults::seeded(seed, Rates::some()));
    let tasks = (0..3).map(|task| {
        let engine = engine.clone();
        async move {
            let mut handle = engine.revive();
            let mut said = Vec::new();
            for n in 0..40 {
                if handle.is_crashed() {
                    handle = engine.revive();
                }
                let store = Store::new(handle.clone());
                let counter = key(&format!("counter:{}", n % 4));
                let step = async {
                    let entry = store.get(&counter).await?;
                    let (expect, next) = match entry {
                        None => (Expect::Absent, 1),
                        Some(entry) => {
                            let next = entry.value.as_integer().unwrap() + 1;
                            (Expect::Version(entry.version), next)
                        }
                    };
                    let commit = Commit::new().check(counter.clone(), expect);
                    store.commit(commit.put(counter.clone(), number(next))).await
                };
                said.push(format!("{task} {n} {:?}", step.await));
            }
            said
        }
    });
    let said = futures_util::future::join_all(tasks).await.concat();
    let mut left = Vec::new();
    for n in 0..4 {
        left.push(truth(&engine, &format!("counter:{n}")).await);
    }
    (engine.trace(), said, left)
}

#[tokio::test(start_paused = true)]
async fn two_runs_of_one_seed_are_identical() {
    let mut kinds = std::collections::HashSet::new();
    for seed in 0..20 {
        let (first, second) = (increments(seed).await, increments(seed).await);
        assert_eq!(first, second, "seed {seed}");
        kinds.extend(first.0.into_iter().map(|(_, fault)| std::mem::discriminant(&fault)));
    }
    assert_eq!(kinds.len(), 6, "every kind of fault happened");
    assert_ne!(increments(1).await.0, increments(2).await.0, "seeds differ");
}

/// Moves a number from one key to another in two commits, with a note in between, so that whoever
/// comes next can finish.
async fn transfer(store: &Store) -> Result<()> {
    let (from, to, note) = (key("from"), key("to"), key("note"));
    if store.get(&note).await?.is_none() {
        let Some(entry) = store.get(&from).await? else {
            return Ok(());
        };
        let begin = Commit::new()
            .check(from.clone(), Expect::Version(entry.version.clone()))
            .put(note.clone(), Put::new(entry.value))
            .delete(from);
        match store.commit(begin).await? {
            Outcome::Applied { .. } => {}
            Outcome::Conflicted { .. } => return Ok(()),
        }
    }
    let Some(noted) = store.get(&note).await? else {
        return Ok(());
    };
    let finish = Commit::new()
        .check(note.clone(), Expect::Version(noted.version))
        .put(to, Put::new(noted.value))
        .delete(note);
    store.commit(finish).await.map(drop)
}

#[tokio::test]
async fn a_protocol_is_tried_with_a_crash_at_every_call() {
    async fn prepared(faults: Faults) -> FaultyEngine {
        let engine = faulty(faults);
        let inside = Store::from_arc(engine.inner());
        inside.put(key("from"), number(7)).await.unwrap();
        engine
    }
    let engine = prepared(Faults::none()).await;
    transfer(&Store::new(engine.clone())).await.unwrap();
    let calls = engine.calls();
    assert_eq!(calls, 5);

    for call in 0..calls {
        for when in [When::Before, When::After] {
            let engine = prepared(Faults::crash_at(call, when)).await;
            transfer(&Store::new(engine.clone())).await.unwrap_err();
            assert!(engine.is_crashed());
            transfer(&Store::new(engine.revive())).await.unwrap();
            assert_eq!(truth(&engine, "to").await, Some(7), "{when:?} call {call}");
            assert_eq!(truth(&engine, "from").await, None);
            assert_eq!(truth(&engine, "note").await, None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_handle_does_nothing_until_it_goes_on() {
    let engine = faulty(Faults::none());
    let store = Store::new(engine.clone());
    let mut events = store.watch(KeyRange::all(), None);
    assert!(matches!(events.next().await, Some(Ok(Event::Reached(_)))));
    engine.pause();
    let put = tokio::spawn({
        let store = store.clone();
        async move { store.put(key("a"), number(1)).await }
    });
    Store::from_arc(engine.inner()).put(key("b"), number(2)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(truth(&engine, "a").await, None);
    assert!(tokio::time::timeout(Duration::from_secs(60), events.next()).await.is_err());
    engine.resume();
    put.await.unwrap().unwrap();
    assert_eq!(truth(&engine, "a").await, Some(1));
    assert!(matches!(events.next().await, Some(Ok(Event::Changed { .. }))));
}

#[tokio::test]
async fn a_handle_can_act_as_another_kind_of_engine() {
    let engine = faulty(Faults::none())
        .acting_as(|capabilities| capabilities.watch = WatchSupport::Unsupported);
    assert_eq!(engine.revive().capabilities().watch, WatchSupport::Unsupported);
    let first = Store::new(engine).watch(KeyRange::all(), None).next().await;
    assert_eq!(first.unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
}
