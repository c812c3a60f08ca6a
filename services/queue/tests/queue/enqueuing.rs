//! Putting messages in.

use std::time::Duration;

use keyward_engine::{Code, Coded, Commit, Expect, Put};
use keyward_key::Key;
use keyward_queue::{Ended, Enqueued, Queue};
use keyward_stores::{Place, on_databases, on_every_engine};

use crate::fixture::{Fixture, claim_ids, json, message, one};

on_every_engine!(
    messages_come_in_the_order_in_which_they_were_enqueued,
    the_same_message_again_is_a_duplicate_at_every_stage,
    an_id_with_other_content_is_refused,
    a_delayed_message_is_not_claimed_before_its_time,
    a_message_is_enqueued_with_other_data_or_not_at_all,
    a_row_is_readable_json,
    a_batch_is_enqueued_whole_or_not_at_all,
);
on_databases!(a_message_is_enqueued_with_other_data_or_not_at_all);

async fn messages_come_in_the_order_in_which_they_were_enqueued(place: Place) {
    let fixture = Fixture::new(place).await;
    let batch = (0..50).map(|n| message(&n.to_string())).collect();
    let mut ids: Vec<String> = Vec::new();
    for fate in fixture.queue.enqueue_all(batch).await.unwrap() {
        assert!(matches!(fate, Enqueued::Added { .. }));
        ids.push(fate.id().to_owned());
    }
    fixture.place.clock().advance(Duration::from_millis(1));
    ids.push(fixture.enqueue("50").await);
    assert_eq!(claim_ids(&fixture.queue, 20).await, ids[..20]);
    assert_eq!(claim_ids(&fixture.other(), 100).await, ids[20..]);
    assert!(claim_ids(&fixture.queue, 100).await.is_empty());
}

async fn the_same_message_again_is_a_duplicate_at_every_stage(place: Place) {
    let Fixture { queue, .. } = &Fixture::new(place).await;
    let enqueue = async || queue.enqueue(message("1").id("a:1").version("v")).await.unwrap();
    assert_eq!(enqueue().await, Enqueued::Added { id: "a:1".into() });
    assert_eq!(enqueue().await, Enqueued::Duplicate { id: "a:1".into() });
    let attempt = one(queue).await;
    assert_eq!(enqueue().await, Enqueued::Duplicate { id: "a:1".into() });
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Accepted);
    // Completed lately.
    assert_eq!(enqueue().await, Enqueued::Duplicate { id: "a:1".into() });
    assert!(claim_ids(queue, 9).await.is_empty());
    // Another content is another message.
    let other = queue.enqueue(message("2").id("a:1").version("v")).await.unwrap();
    assert_eq!(other, Enqueued::Added { id: "a:1".into() });
    let twins = vec![message("5").id("t"), message("5").id("t")];
    let fates = queue.enqueue_all(twins).await.unwrap();
    assert!(matches!(fates[..], [Enqueued::Added { .. }, Enqueued::Duplicate { .. }]));
}

async fn an_id_with_other_content_is_refused(place: Place) {
    let Fixture { queue, .. } = &Fixture::new(place).await;
    queue.enqueue(message("1").id("a")).await.unwrap();
    for other in [message("2").id("a"), message("1").id("a").version("v")] {
        let refused = queue.enqueue(other).await.unwrap_err();
        assert_eq!(refused.code(), Code::IdTaken);
    }
    for id in [String::new(), "x".repeat(501)] {
        assert_eq!(queue.enqueue(message("1").id(id)).await.unwrap_err().code(), Code::BadMessage);
    }
    assert_eq!(one(queue).await.payload().as_str(), "1");
}

async fn a_delayed_message_is_not_claimed_before_its_time(place: Place) {
    let fixture = Fixture::new(place).await;
    let hour = Duration::from_secs(3_600);
    fixture.queue.enqueue(message("1").id("late").delay(hour)).await.unwrap();
    fixture.queue.enqueue(message("2").id("now")).await.unwrap();
    let claims = fixture.queue.claim(9).await.unwrap();
    assert_eq!(claims.attempts.len(), 1);
    assert_eq!(claims.attempts[0].id(), "now");
    assert!(claims.next_due.is_some());
    fixture.place.clock().advance(hour - Duration::from_millis(1));
    assert_eq!(fixture.queue.stats().await.unwrap().delayed.count, 1);
    claims.attempts[0].complete(None).await.unwrap();
    assert!(claim_ids(&fixture.queue, 9).await.is_empty());
    fixture.place.clock().advance(Duration::from_millis(1));
    assert_eq!(claim_ids(&fixture.queue, 9).await, ["late"]);
}

async fn a_message_is_enqueued_with_other_data_or_not_at_all(place: Place) {
    let Fixture { queue, store, .. } = &Fixture::new(place).await;
    let order = Key::parse("order:1").unwrap();
    let commit = |value: &str| Commit::new().put(order.clone(), Put::new(json(value)));
    let refused = commit("1").check(order.clone(), Expect::Version(1.into()));
    let (refused, _) = queue.enqueue_in(refused, vec![message("1")]).await.unwrap();
    assert!(!store.commit(refused).await.unwrap().is_applied());
    assert!(claim_ids(queue, 9).await.is_empty());
    assert_eq!(queue.stats().await.unwrap().ready.count, 0);

    let keyed = || vec![message("1").id("o1"), message("2")];
    let (both, fates) = queue.enqueue_in(commit("1"), keyed()).await.unwrap();
    assert!(store.commit(both).await.unwrap().is_applied());
    assert_eq!(fates[0], Enqueued::Added { id: "o1".into() });
    assert_eq!(queue.stats().await.unwrap().ready.count, 2);
    let (again, fates) = queue.enqueue_in(commit("2"), vec![message("1").id("o1")]).await.unwrap();
    assert_eq!(fates, [Enqueued::Duplicate { id: "o1".into() }]);
    assert!(store.commit(again).await.unwrap().is_applied());
    assert_eq!(queue.stats().await.unwrap().ready.count, 2);
}

async fn a_row_is_readable_json(place: Place) {
    let fixture = Fixture::new(place).await;
    let id = fixture.queue.enqueue(message(r#"{"n":1.50}"#).id("x:1")).await.unwrap();
    assert_eq!(id.id(), "x:1");
    let key = Key::parse("queue:q:x%3A1").unwrap();
    let row = fixture.store.get(&key).await.unwrap().unwrap();
    assert_eq!(
        row.value.as_str(),
        r#"{"payload":{"n":1.50},"state":"ready","retryCount":0,"createdAt":"2026-01-01T00:00:00.000000Z","errorMessage":null,"keyed":true}"#
    );
    assert_eq!(fixture.keys("system").await, ["system:queue:q:ready:001767225600000:x%3A1"]);
    let attempt = fixture.claim_one().await;
    assert_eq!(attempt.payload().as_str(), r#"{"n":1.50}"#);
    assert_eq!(
        fixture.keys("system").await,
        ["system:queue:q:claim:x%3A1", "system:queue:q:due:001767225600400:x%3A1"]
    );
    attempt.complete(None).await.unwrap();
    assert_eq!(fixture.keys("system").await, ["system:queue:q:claim:x%3A1"]);
    assert!(fixture.keys("queue").await.is_empty());
}

async fn a_batch_is_enqueued_whole_or_not_at_all(place: Place) {
    let Fixture { queue, .. } = &Fixture::new(place).await;
    queue.enqueue(message("1").id("a")).await.unwrap();
    let batch = vec![message("1"), message("2").id("a"), message("3")];
    assert_eq!(queue.enqueue_all(batch).await.unwrap_err().code(), Code::IdTaken);
    assert_eq!(queue.stats().await.unwrap().ready.count, 1);
    let too_many = vec![message("1"); Queue::ENQUEUE_MAX + 1];
    assert_eq!(queue.enqueue_all(too_many).await.unwrap_err().code(), Code::BadMessage);
    let most = vec![message("1"); Queue::ENQUEUE_MAX];
    assert_eq!(queue.enqueue_all(most).await.unwrap().len(), Queue::ENQUEUE_MAX);
}
