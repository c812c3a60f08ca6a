//! Messages that a process cannot take do not keep it from those behind them.

use std::time::Duration;

use keyward_engine::{Clock, Code, Coded, Limits, Put, Store};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_queue::{Ended, Failure, Message, Options, Places, Queue, Worker, WorkerOptions};
use keyward_testkit::TestClock;

use crate::fixture::{claim_ids, json, message, options};

fn store(clock: &TestClock) -> Store {
    Store::new(Memory::with(keyward_memory::Options::default(), clock.clone()))
}

fn queue(store: &Store, clock: &TestClock) -> Queue {
    Queue::new(store.clone(), "q", clock.clone(), options()).unwrap()
}

/// The same store for a process that writes no value larger than this.
fn limited(store: &Store, value_bytes_max: usize) -> Store {
    store.clone().with_limits(Limits { value_bytes_max, ..*store.limits() })
}

fn text(bytes: usize) -> Message {
    message(&format!("\"{}\"", "x".repeat(bytes)))
}

#[tokio::test]
async fn whatever_can_be_enqueued_can_be_claimed_and_fail() {
    let clock = TestClock::new();
    let store = limited(&store(&clock), 8_000);
    let queue = queue(&store, &clock);
    let mut size = 8_000;
    while let Err(refused) = queue.enqueue(text(size).id("large")).await {
        assert_eq!(refused.code(), Code::LimitExceeded);
        size -= 1;
    }
    assert!(size > 6_000, "{size}");
    for _ in 0..options().retry.attempts_max {
        clock.advance(Duration::from_secs(3_600));
        let attempt = queue.claim(1).await.unwrap().attempts.pop().unwrap();
        assert_eq!(attempt.fail(Failure::new("e".repeat(4_000))).await.unwrap(), Ended::Accepted);
    }
    let dead = queue.dead_letter("large").await.unwrap().unwrap();
    assert_eq!((dead.retry_count, dead.payload.len()), (3, size + 2));
    assert!(dead.reason.starts_with('e'), "{:?}", dead.reason);
}

/// Forty rows that this process cannot write, more than a claim looks at.
#[tokio::test(start_paused = true)]
async fn a_worker_passes_over_messages_that_are_too_large_for_its_store() {
    let clock = TestClock::new();
    let store = store(&clock);
    let all = queue(&store, &clock);
    for n in 0..40 {
        all.enqueue(text(2_000).id(format!("large{n:02}"))).await.unwrap();
    }
    clock.advance(Duration::from_millis(1));
    all.enqueue(message("1").id("small")).await.unwrap();
    let own = queue(&limited(&store, 2_000), &clock);
    let stop = tokio::time::sleep(Duration::from_secs(60));
    let worker = Worker::new(own.clone(), WorkerOptions::default());
    let report = worker.run(|_| async { Ok(None) }, stop).await.unwrap();
    assert_eq!(report.completed, 1);
    assert!(all.message("small").await.unwrap().is_none());
    assert!(own.metrics().passed_over.get() >= 40);
    assert_eq!(all.claim(99).await.unwrap().attempts.len(), 40);
}

#[tokio::test]
async fn a_reader_of_another_layout_leaves_messages_to_others() {
    let clock = TestClock::new();
    let store = store(&clock);
    let places = Places::of("q").unwrap().spread();
    let spread = Options { places: Some(places), ..options() };
    let spread = Queue::new(store.clone(), "q", clock.clone(), spread).unwrap();
    spread.enqueue(message(r#"{"a":1}"#).id("m")).await.unwrap();
    let nested = queue(&store, &clock);
    assert!(claim_ids(&nested, 9).await.is_empty());
    assert_eq!(nested.metrics().passed_over.get(), 1);
    assert_eq!(claim_ids(&spread, 9).await, ["m"]);
}

#[tokio::test]
async fn a_message_behind_many_damaged_ones_is_claimed() {
    let clock = TestClock::new();
    let store = store(&clock);
    let queue = queue(&store, &clock);
    for n in 0..100 {
        let id = format!("{n:02}");
        queue.enqueue(message("1").id(&*id)).await.unwrap();
        let key = Key::from_segments(["queue", "q", &id]).unwrap();
        store.put(key, Put::new(json("\"damaged\""))).await.unwrap();
    }
    clock.advance(Duration::from_millis(1));
    queue.enqueue(message("2").id("whole")).await.unwrap();
    assert_eq!(claim_ids(&queue, 1).await, ["whole"]);
    // Nothing is left but the damaged ones: a worker may rest until the lease should end.
    let next_due = queue.claim(1).await.unwrap().next_due.unwrap();
    assert!(next_due > clock.now(), "{next_due}");
}

#[tokio::test]
async fn a_message_that_is_due_is_seen_behind_others_that_are_long_in_hand() {
    let clock = TestClock::new();
    let store = store(&clock);
    let queue = queue(&store, &clock);
    let messages = (0..40).map(|n| message("1").id(format!("{n:02}"))).collect();
    queue.enqueue_all(messages).await.unwrap();
    let held = queue.claim(40).await.unwrap().attempts;
    assert_eq!(held.len(), 40);
    for _ in 0..4 {
        clock.advance(options().lease / 2);
        for attempt in &held {
            assert_eq!(attempt.beat().await.unwrap(), Ended::Accepted);
        }
    }
    let delay = Duration::from_millis(10);
    queue.enqueue(message("2").id("due").delay(delay)).await.unwrap();
    clock.advance(delay);
    assert_eq!(claim_ids(&queue, 1).await, ["due"]);
    // What is left is held: a worker may rest until the lease of the last one should end.
    let next_due = queue.claim(1).await.unwrap().next_due.unwrap();
    assert!(next_due > clock.now(), "{next_due}");
}
