//! Where there can be no queue.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded, Json, ScanOrder, Store};
use keyward_memory::Memory;
use keyward_queue::{Jobs, Message, Options, Queue};
use keyward_stores::{Kind, Place, on_engines};
use keyward_testkit::{Faults, FaultyEngine};

on_engines!(
    recoverable: Recoverable, advisory: Advisory, couchdb: CouchDb, forge_entity: ForgeEntity;
    a_queue_is_refused_with_its_reason,
);

async fn a_queue_is_refused_with_its_reason(place: Place) {
    let store = place.store().await;
    let engine = format!("{} engine has the ", store.capabilities().engine);
    let tier = store.capabilities().tier().to_string();
    let refusals = [
        Queue::new(store.clone(), "q", place.clock().clone(), Options::default()).err(),
        Jobs::new(store, place.clock().clone(), Options::default()).err(),
    ];
    for refused in refusals.map(Option::unwrap) {
        assert_eq!(refused.code(), Code::Unsupported);
        let told = refused.to_string();
        assert!(told.contains(&engine) && told.contains(&tier), "{told}");
        assert!(!refused.retryable() && refused.hint().contains("atomic"));
    }
}

#[tokio::test]
async fn a_queue_without_an_order_of_keys_is_refused() {
    let place = Place::new(Kind::Memory);
    let engine = FaultyEngine::new(Arc::new(Memory::new()), Faults::none())
        .acting_as(|capabilities| capabilities.scan_order = ScanOrder::Unordered);
    let refused =
        Queue::new(Store::new(engine), "q", place.clock().clone(), Options::default()).unwrap_err();
    assert_eq!(refused.code(), Code::Unsupported);
    assert!(refused.to_string().contains("order of keys"), "{refused}");
}

#[tokio::test]
async fn a_lease_that_the_engine_cannot_keep_and_a_name_that_is_none_are_refused() {
    let place = Place::new(Kind::Memory);
    let store = place.store().await;
    let options = Options { lease: Duration::ZERO, ..Options::default() };
    let refused = Queue::new(store.clone(), "q", place.clock().clone(), options).unwrap_err();
    assert_eq!(refused.code(), Code::Unsupported);
    for name in [String::new(), "q".repeat(201)] {
        let refused = Queue::new(store.clone(), &name, place.clock().clone(), Options::default());
        assert_eq!(refused.unwrap_err().code(), Code::BadMessage);
    }
}

#[tokio::test]
async fn a_holder_whose_name_would_fill_every_row_is_refused() {
    let place = Place::new(Kind::Memory);
    let store = place.store().await;
    let queue = |holder: String| {
        let options = Options { holder, ..Options::default() };
        Queue::new(store.clone(), "q", place.clock().clone(), options)
    };
    let refused = queue("h".repeat(Options::HOLDER_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(refused.code(), Code::BadMessage);
    assert!(refused.to_string().contains("128 bytes, not 129"), "{refused}");
    // The longest fits into a row that is as large as can be enqueued, however it is escaped.
    let queue = queue("\u{1}".repeat(Options::HOLDER_BYTES_MAX)).unwrap();
    let mut bytes = store.limits().value_bytes_max - 1_100;
    loop {
        let payload = Json::parse(format!("\"{}\"", "x".repeat(bytes))).unwrap();
        match queue.enqueue(Message::new(payload)).await {
            Ok(_) => break,
            Err(_) => bytes -= 8,
        }
    }
    assert_eq!(queue.claim(1).await.unwrap().attempts.len(), 1);
}
