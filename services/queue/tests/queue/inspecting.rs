//! Looking at queues, pausing them, dropping messages.

use std::time::Duration;

use jiff::SignedDuration;
use keyward_queue::{Ended, Failure, Listing, Queue, State, queue_names};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, claim_ids, message, one, options};

on_every_engine!(
    nothing_is_claimed_while_a_queue_is_paused,
    stats_count_what_there_is,
    messages_are_listed_page_by_page_and_peeked_at_in_order,
    a_dropped_message_is_gone_also_from_its_workers_hands,
    queues_are_found_by_what_they_have,
);

async fn nothing_is_claimed_while_a_queue_is_paused(place: Place) {
    let Fixture { queue, place, store } = &Fixture::new(place).await;
    queue.enqueue(message("1")).await.unwrap();
    queue.enqueue(message("2")).await.unwrap();
    let attempt = one(queue).await;
    queue.pause("upgrade of the printer").await.unwrap();
    let other = Queue::new(store.clone(), "q", place.clock().clone(), options()).unwrap();
    let claims = other.claim(9).await.unwrap();
    assert!(claims.paused && claims.attempts.is_empty());
    assert_eq!(queue.stats().await.unwrap().paused.as_deref(), Some("upgrade of the printer"));
    // What was begun goes on, and more can come.
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Accepted);
    queue.enqueue(message("3")).await.unwrap();
    queue.resume().await.unwrap();
    assert_eq!(queue.paused().await.unwrap(), None);
    assert_eq!(claim_ids(&other, 9).await.len(), 2);
}

async fn stats_count_what_there_is(place: Place) {
    let fixture = Fixture::new(place).await;
    let Fixture { queue, .. } = &fixture;
    assert_eq!(queue.stats().await.unwrap().oldest, None);
    for _ in 0..6 {
        fixture.enqueue("1").await;
    }
    queue.enqueue(message("1").delay(Duration::from_secs(60))).await.unwrap();
    let held = queue.claim(3).await.unwrap().attempts;
    held[0].fail(Failure::new("later")).await.unwrap();
    held[1].fail(Failure::permanent("never")).await.unwrap();
    fixture.place.clock().advance(Duration::from_millis(70));
    let stats = queue.stats().await.unwrap();
    let counts = [stats.ready, stats.delayed, stats.claimed, stats.dead].map(|count| count.count);
    assert_eq!(counts, [3, 2, 1, 1]);
    assert_eq!(stats.oldest, Some(SignedDuration::from_millis(70)));
    assert!(!stats.ready.more && !stats.dead.more);
}

async fn messages_are_listed_page_by_page_and_peeked_at_in_order(place: Place) {
    let Fixture { queue, place, .. } = &Fixture::new(place).await;
    for n in (0..25).rev() {
        queue.enqueue(message(&n.to_string()).id(format!("m{n:02}"))).await.unwrap();
        place.clock().advance(Duration::from_millis(1));
    }
    let first = one(queue).await;
    assert_eq!(first.id(), "m24");
    let mut listing = Listing { limit: 10, ..Listing::default() };
    let mut seen = Vec::new();
    loop {
        let page = queue.list(&listing).await.unwrap();
        let Some(last) = page.last() else { break };
        listing.after = Some(last.id.clone());
        seen.extend(page.into_iter().map(|message| message.id));
    }
    assert_eq!(seen, (0..25).map(|n| format!("m{n:02}")).collect::<Vec<_>>());
    let claimed = Listing { state: Some(State::Claimed), ..Listing::default() };
    let claimed = queue.list(&claimed).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].id.as_str(), claimed[0].holder.as_deref()), ("m24", Some("test")));
    let next: Vec<String> = queue.peek(3).await.unwrap().into_iter().map(|m| m.id).collect();
    assert_eq!(next, ["m23", "m22", "m21"]);
}

async fn a_dropped_message_is_gone_also_from_its_workers_hands(place: Place) {
    let fixture = Fixture::new(place).await;
    let id = fixture.enqueue("1").await;
    let attempt = fixture.claim_one().await;
    assert!(fixture.queue.drop_message(&id).await.unwrap());
    assert!(!fixture.queue.drop_message(&id).await.unwrap());
    assert_eq!(attempt.beat().await.unwrap(), Ended::Refused);
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Refused);
    assert!(fixture.keys("").await.is_empty());
}

async fn queues_are_found_by_what_they_have(place: Place) {
    let fixture = Fixture::new(place).await;
    assert!(queue_names(&fixture.store, 100).await.unwrap().is_empty());
    for name in ["a:b", "mails", "z"] {
        let clock = fixture.place.clock().clone();
        let queue = Queue::new(fixture.store.clone(), name, clock, options()).unwrap();
        queue.enqueue(message("1")).await.unwrap();
        if name == "z" {
            one(&queue).await.fail(Failure::permanent("x")).await.unwrap();
        }
    }
    assert_eq!(queue_names(&fixture.store, 100).await.unwrap(), ["a:b", "mails", "z"]);
}
