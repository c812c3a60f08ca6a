//! Commits that are not answered, and land later than what was done about it.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Commit, Put, Store};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_queue::{Ended, Enqueued, Failure, Message, Options, Queue, Worker, WorkerOptions};
use keyward_testkit::{Call, Fault, Faults, FaultyEngine, TestClock, VirtualClock, When};
use tokio::sync::Notify;

use crate::fixture::{claim_ids, json, message, one, options};

/// A commit that is not answered, and lands when it is let.
const LATE: Fault = Fault::Late(Duration::MAX);

/// The commit of an enqueuing is slow, so another is sent; the message ends; then the first lands.
async fn lands_after_the_end(message: Message, is_keyed: bool, completes: bool) {
    let clock = TestClock::new();
    let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
    // Where an id is given it is looked for first.
    let script = Faults::script([(u64::from(is_keyed), LATE)]);
    let engine = FaultyEngine::new(Arc::new(memory), script);
    let queue = Queue::new(Store::new(engine.clone()), "q", clock, options()).unwrap();
    queue.enqueue(message).await.unwrap();
    let attempt = one(&queue).await;
    let ended = match completes {
        true => attempt.complete(None).await,
        false => attempt.fail(Failure::permanent("no")).await,
    };
    assert_eq!(ended.unwrap(), Ended::Accepted);
    let landed = engine.land().await;
    assert!(matches!(&landed[..], [Ok(outcome)] if !outcome.is_applied()), "{landed:?}");
    assert!(claim_ids(&queue, 9).await.is_empty());
}

#[tokio::test]
async fn a_message_whose_enqueuing_was_slow_completes_once() {
    lands_after_the_end(message("1"), false, true).await;
}

#[tokio::test]
async fn a_message_with_an_id_whose_enqueuing_was_slow_completes_once() {
    lands_after_the_end(message("1").id("a"), true, true).await;
}

#[tokio::test]
async fn a_dead_letter_whose_enqueuing_was_slow_stays_one() {
    lands_after_the_end(message("1"), false, false).await;
    lands_after_the_end(message("1").id("a"), true, false).await;
}

fn in_memory() -> (Store, Queue) {
    let clock = TestClock::new();
    let store = Store::new(Memory::with(keyward_memory::Options::default(), clock.clone()));
    let queue = Queue::new(store.clone(), "q", clock, options()).unwrap();
    (store, queue)
}

#[tokio::test]
async fn a_late_commit_does_not_double_a_completed_message() {
    let (store, queue) = in_memory();
    let message = || message("1").id("a");
    let (late, _) = queue.enqueue_in(Commit::new(), vec![message()]).await.unwrap();
    queue.enqueue(message()).await.unwrap();
    assert_eq!(one(&queue).await.complete(None).await.unwrap(), Ended::Accepted);
    assert!(matches!(queue.enqueue(message()).await.unwrap(), Enqueued::Duplicate { .. }));
    assert!(!store.commit(late).await.unwrap().is_applied());
    assert!(claim_ids(&queue, 9).await.is_empty());
}

#[tokio::test]
async fn a_commit_sent_again_does_not_double_a_completed_message() {
    let (store, queue) = in_memory();
    let data = Commit::new().put(Key::parse("data").unwrap(), Put::new(json("1")));
    let (commit, _) = queue.enqueue_in(data, vec![message("1")]).await.unwrap();
    assert!(store.commit(commit.clone()).await.unwrap().is_applied());
    one(&queue).await.complete(None).await.unwrap();
    assert!(!store.commit(commit).await.unwrap().is_applied());
}

const TOGETHER: usize = 4;

/// A worker claims messages in one commit, and completes them in one; with faults. Gives the engine,
/// and the numbers of its calls that are commits.
async fn complete_together(faults: Faults) -> (FaultyEngine, Vec<u64>) {
    let clock = VirtualClock::new();
    let memory = Memory::with(keyward_memory::Options::default(), clock);
    let engine = FaultyEngine::new(Arc::new(memory), faults);
    let options = || Options { seed: Some(1), lease: Duration::from_secs(600), ..options() };
    let sure = Queue::new(Store::from_arc(engine.inner()), "q", clock, options()).unwrap();
    sure.enqueue_all(vec![message("1"); TOGETHER]).await.unwrap();
    let queue = Queue::new(Store::new(engine.clone()), "q", clock, options()).unwrap();
    let (all, begun) = (Arc::new(tokio::sync::Barrier::new(TOGETHER)), Arc::new(Notify::new()));
    let told = begun.clone();
    let handler = move |_| {
        let (all, told) = (all.clone(), told.clone());
        async move {
            all.wait().await;
            told.notify_one();
            Ok(None)
        }
    };
    let options = WorkerOptions { concurrency: TOGETHER, ..WorkerOptions::default() };
    let worker = Worker::new(queue.clone(), options);
    let report = worker.run(handler, begun.notified()).await.unwrap();
    assert_eq!(report.completed, TOGETHER as u64, "{report:?} {:?}", engine.trace());
    assert_eq!((report.refused, report.unknown, report.given_back), (0, 0, 0));
    assert_eq!(queue.metrics().completed.get(), TOGETHER as u64);
    let stats = sure.stats().await.unwrap();
    assert_eq!((stats.ready.count, stats.claimed.count, stats.delayed.count), (0, 0, 0));
    let calls = engine.trace().into_iter().enumerate();
    let commits = calls.filter(|(_, (call, _))| *call == Call::Commit);
    (engine.clone(), commits.map(|(at, _)| at as u64).collect())
}

#[tokio::test(start_paused = true)]
async fn completions_in_one_commit_whose_answer_is_lost_are_found_out_about() {
    let (_, commits) = complete_together(Faults::none()).await;
    let [_claim, completion] = commits[..] else { panic!("{commits:?}") };
    let unanswered = Fault::Unanswered;
    for (fault, lands) in
        [(unanswered(When::Before), None), (unanswered(When::After), None), (LATE, Some(false))]
    {
        let (engine, commits) = complete_together(Faults::script([(completion, fault)])).await;
        // Each asks for itself what became of it.
        assert_eq!(commits.len(), 2 + TOGETHER, "{fault:?} {:?}", engine.trace());
        let landed: Vec<bool> =
            engine.land().await.into_iter().map(|landed| landed.unwrap().is_applied()).collect();
        assert_eq!(landed, Vec::from_iter(lands), "{fault:?}");
    }
}
