//! A newer version takes the place of an older one, and the registry's rows.

use keyward_engine::{Code, Coded};
use keyward_key::Key;
use keyward_queue::{Ended, Enqueued, Failure, Message, Options, Places, Queue};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, claim_ids, json, message, one, options};

on_every_engine!(
    a_newer_version_replaces_an_older_one_wherever_it_is,
    a_queue_keeps_its_rows_where_it_is_told_and_as_it_is_told,
);

fn version(version: &str) -> Message {
    message(&format!("\"{version}\"")).id("p").version(version).replacing()
}

async fn a_newer_version_replaces_an_older_one_wherever_it_is(place: Place) {
    let fixture = Fixture::new(place).await;
    let Fixture { queue, .. } = &fixture;
    let replaced = Enqueued::Replaced { id: "p".into() };
    assert_eq!(queue.enqueue(version("1")).await.unwrap(), Enqueued::Added { id: "p".into() });
    assert_eq!(queue.enqueue(version("1")).await.unwrap(), Enqueued::Duplicate { id: "p".into() });
    // In line.
    assert_eq!(queue.enqueue(version("2")).await.unwrap(), replaced);
    let second = one(queue).await;
    assert_eq!(second.version(), Some("2"));
    // In somebody's hands.
    assert_eq!(queue.enqueue(version("3")).await.unwrap(), replaced);
    assert_eq!(second.beat().await.unwrap(), Ended::Refused);
    assert_eq!(second.complete(None).await.unwrap(), Ended::Refused);
    let third = one(queue).await;
    assert_eq!((third.version(), third.number()), (Some("3"), 1));
    third.fail(Failure::new("x")).await.unwrap();
    // Backing off.
    assert_eq!(queue.enqueue(version("4")).await.unwrap(), replaced);
    let fourth = one(queue).await;
    assert_eq!((fourth.version(), fourth.retry_count()), (Some("4"), 0));
    fourth.fail(Failure::permanent("x")).await.unwrap();
    // Dead.
    assert_eq!(queue.enqueue(version("4")).await.unwrap(), Enqueued::Duplicate { id: "p".into() });
    assert_eq!(queue.enqueue(version("5")).await.unwrap(), replaced);
    assert!(fixture.keys("dead-letter").await.is_empty());
    let fifth = one(queue).await;
    assert_eq!(fifth.complete(None).await.unwrap(), Ended::Accepted);
    // Done, and wanted once more.
    assert_eq!(queue.enqueue(version("5")).await.unwrap(), Enqueued::Added { id: "p".into() });
    assert_eq!(claim_ids(queue, 9).await, ["p"]);
    assert_eq!(fixture.keys("system:queue:q:due").await.len(), 1);
}

async fn a_queue_keeps_its_rows_where_it_is_told_and_as_it_is_told(place: Place) {
    let fixture = Fixture::new(place).await;
    let key = |text: &str| Key::parse(text).unwrap();
    let places = Places::new(key("queue"), key("dead-letter"), &key("system:queue")).spread();
    let options = Options { places: Some(places), ..options() };
    let queue =
        Queue::new(fixture.store.clone(), "policies", fixture.place.clock().clone(), options)
            .unwrap();
    let row = r#"{"policyName":"학칙","sha":"abc","operation":"add"}"#;
    let message = Message::new(json(row)).id("학칙").version("abc").replacing();
    queue.enqueue(message).await.unwrap();
    let stored = fixture.store.get(&key("queue:학칙")).await.unwrap().unwrap();
    let stored: serde_json::Value = serde_json::from_str(stored.value.as_str()).unwrap();
    assert_eq!(stored["policyName"], "학칙");
    assert_eq!(stored["retryCount"], 0);
    assert_eq!(stored["errorMessage"], serde_json::Value::Null);
    assert!(stored["createdAt"].is_string());
    let attempt = one(&queue).await;
    assert_eq!(attempt.payload().as_str(), row);
    attempt.fail(Failure::permanent("no such file")).await.unwrap();
    assert_eq!(fixture.keys("dead-letter").await, ["dead-letter:학칙"]);
    let refused = queue.enqueue(Message::new(json("[1]"))).await.unwrap_err();
    assert_eq!(refused.code(), Code::BadMessage);
}
