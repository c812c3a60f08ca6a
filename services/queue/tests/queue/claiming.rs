//! Taking messages, keeping them, and losing them.

use std::collections::BTreeSet;
use std::time::Duration;

use keyward_engine::{Commit, Put, Store};
use keyward_key::Key;
use keyward_queue::{Ended, Failure, Options, Queue};
use keyward_stores::{Place, on_databases, on_engines, on_every_engine};

use crate::fixture::{Fixture, LEASE, claim_ids, json, message, one, options};

on_every_engine!(
    a_dead_worker_is_taken_over_from_and_cannot_finish,
    racing_claims_never_give_a_message_twice,
    a_message_that_is_given_back_stands_where_it_stood,
    data_is_fenced_by_the_attempt,
    entries_of_rows_that_somebody_deleted_are_forgotten,
);
on_databases!(racing_claims_never_give_a_message_twice, data_is_fenced_by_the_attempt);

// PostgreSQL goes by its own clock, which no test can move.
on_engines!(
    memory_by_its_clock: Memory, embedded_by_its_clock: Embedded;
    signs_of_life_keep_a_message,
    leased_messages_do_not_hold_up_what_is_ready,
);

async fn a_dead_worker_is_taken_over_from_and_cannot_finish(place: Place) {
    let fixture = Fixture::new(place).await;
    fixture.enqueue("1").await;
    let dead = fixture.claim_one().await;
    let other = fixture.other();
    let attempt = fixture.claim_in_time(&other).await;
    assert_eq!((dead.number(), attempt.number()), (1, 2));
    assert_eq!(attempt.retry_count(), 1);
    assert_eq!(attempt.history()[0].by, "test");
    assert!(attempt.history()[0].error.contains("no sign of life"));
    assert_eq!(dead.beat().await.unwrap(), Ended::Refused);
    assert_eq!(dead.complete(None).await.unwrap(), Ended::Refused);
    assert_eq!(dead.fail(Failure::new("no")).await.unwrap(), Ended::Refused);
    assert_eq!(dead.give_back().await.unwrap(), Ended::Refused);
    assert_eq!(attempt.beat().await.unwrap(), Ended::Accepted);
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Accepted);
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Refused);
    assert_eq!(other.metrics().taken_over.get(), 1);
    assert_eq!(fixture.queue.metrics().refused.get(), 2);
}

async fn racing_claims_never_give_a_message_twice(place: Place) {
    const MESSAGES: usize = 300;
    let fixture = Fixture::new(place).await;
    // As many together as every engine takes in a commit.
    for first in (0..MESSAGES).step_by(20) {
        let batch = (first..first + 20).map(|n| message(&n.to_string())).collect();
        fixture.queue.enqueue_all(batch).await.unwrap();
    }
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let store = fixture.store.clone();
        let clock = fixture.place.clock().clone();
        workers.spawn(async move {
            let options = Options { lease: Duration::from_secs(600), ..options() };
            let queue = Queue::new(store, "q", clock, options).unwrap();
            let mut mine = Vec::new();
            loop {
                let claims = queue.claim(1 + worker % 3).await.unwrap();
                if claims.attempts.is_empty() && !claims.contended {
                    return mine;
                }
                for attempt in claims.attempts {
                    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Accepted);
                    mine.push(attempt.payload().to_string());
                }
            }
        });
    }
    let mut all = Vec::new();
    while let Some(mine) = workers.join_next().await {
        all.extend(mine.unwrap());
    }
    assert_eq!(all.len(), MESSAGES);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), MESSAGES);
}

async fn a_message_that_is_given_back_stands_where_it_stood(place: Place) {
    let fixture = Fixture::new(place).await;
    let first = fixture.enqueue("1").await;
    fixture.place.clock().advance(Duration::from_millis(5));
    let second = fixture.enqueue("2").await;
    let attempt = fixture.claim_one().await;
    assert_eq!(attempt.id(), first);
    assert_eq!(attempt.give_back().await.unwrap(), Ended::Accepted);
    let claims = fixture.queue.claim(2).await.unwrap();
    let ids: Vec<&str> = claims.attempts.iter().map(keyward_queue::Attempt::id).collect();
    assert_eq!(ids, [&first, &second]);
    assert_eq!(claims.attempts[0].number(), 1);
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Refused);
}

async fn data_is_fenced_by_the_attempt(place: Place) {
    let fixture = Fixture::new(place).await;
    fixture.enqueue("1").await;
    let dead = fixture.claim_one().await;
    let alive = fixture.claim_in_time(&fixture.other()).await;
    let write = |attempt: &keyward_queue::Attempt| {
        let put = Put::new(json("1"));
        let commit = Commit::new().put(Key::parse("result").unwrap(), put);
        Commit { checks: vec![attempt.fence()], ..commit }
    };
    assert!(!fixture.store.commit(write(&dead)).await.unwrap().is_applied());
    assert!(fixture.store.commit(write(&alive)).await.unwrap().is_applied());
}

async fn entries_of_rows_that_somebody_deleted_are_forgotten(place: Place) {
    let fixture = Fixture::new(place).await;
    for n in 0..40 {
        fixture.queue.enqueue(message("1").id(format!("gone{n:02}"))).await.unwrap();
        let key = Key::from_segments(["queue", "q", &format!("gone{n:02}")]).unwrap();
        fixture.store.delete(key).await.unwrap();
    }
    fixture.place.clock().advance(Duration::from_millis(1));
    fixture.enqueue("2").await;
    let mut found = Vec::new();
    for _ in 0..3 {
        found.extend(claim_ids(&fixture.queue, 1).await);
    }
    assert_eq!(found.len(), 1);
    assert_eq!(fixture.queue.stats().await.unwrap().ready.count, 0);
}

async fn signs_of_life_keep_a_message(place: Place) {
    let fixture = Fixture::new(place).await;
    fixture.enqueue("1").await;
    let attempt = fixture.claim_one().await;
    for _ in 0..10 {
        fixture.place.clock().advance(LEASE * 3 / 4);
        assert_eq!(attempt.beat().await.unwrap(), Ended::Accepted);
        assert!(claim_ids(&fixture.other(), 1).await.is_empty());
    }
    fixture.place.clock().advance(LEASE);
    let other = one(&fixture.other()).await;
    assert_eq!(other.number(), 2);
    assert_eq!(attempt.beat().await.unwrap(), Ended::Refused);
}

/// A hundred long-running messages keep their places at the head of `due`; a ready one, and one that
/// failed behind them, are found all the same.
async fn leased_messages_do_not_hold_up_what_is_ready(place: Place) {
    let fixture = Fixture::new(place).await;
    let Fixture { queue, .. } = &fixture;
    queue.enqueue_all((0..200).map(|n| message(&n.to_string())).collect()).await.unwrap();
    let held = queue.claim(200).await.unwrap().attempts;
    assert_eq!(held.len(), 200);
    let beat = async || {
        for attempt in &held {
            assert_eq!(attempt.beat().await.unwrap(), Ended::Accepted);
        }
    };
    fixture.place.clock().advance(LEASE / 2);
    beat().await;
    fixture.enqueue("500").await;
    let failing = one(queue).await;
    failing.fail(Failure::new("once")).await.unwrap();
    // Now the hints of all that is leased are past, and before the one that failed.
    for _ in 0..4 {
        fixture.place.clock().advance(LEASE / 2);
        beat().await;
    }
    let last = fixture.enqueue("501").await;
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        ids.extend(claim_ids(queue, 1).await);
    }
    assert_eq!(ids, BTreeSet::from([failing.id().to_owned(), last]));
}

#[tokio::test]
async fn a_claim_by_a_clock_that_is_ahead_takes_nothing_that_is_held() {
    let clock = keyward_testkit::TestClock::new();
    let ahead = keyward_testkit::TestClock::new();
    ahead.advance(Duration::from_secs(600));
    let memory = keyward_memory::Memory::with(keyward_memory::Options::default(), clock.clone());
    let store = Store::new(memory);
    let queue = Queue::new(store.clone(), "q", clock, options()).unwrap();
    let other = Queue::new(store, "q", ahead, options()).unwrap();
    queue.enqueue(message("1")).await.unwrap();
    let attempt = one(&queue).await;
    assert!(claim_ids(&other, 9).await.is_empty());
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Accepted);
}
