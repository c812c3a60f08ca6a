//! Where there can be no queue.

use std::time::Duration;

use keyward_queue::{Jobs, Options, Queue};
use keyward_stores::{Kind, Place, on_engines};

on_engines!(recoverable: Recoverable, advisory: Advisory; a_queue_is_refused_with_its_reason);

async fn a_queue_is_refused_with_its_reason(place: Place) {
    let tier = match place.kind() {
        Kind::Recoverable => "recoverable",
        _ => "advisory",
    };
    let store = place.store().await;
    let refusals = [
        Queue::new(store.clone(), "q", place.clock().clone(), Options::default()).err(),
        Jobs::new(store, place.clock().clone(), Options::default()).err(),
    ];
    for refused in refusals.map(Option::unwrap) {
        assert_eq!(refused.code(), "unsupported");
        let told = refused.to_string();
        assert!(told.contains("memory engine has the ") && told.contains(tier), "{told}");
        assert!(!refused.retryable() && refused.hint().contains("atomic"));
    }
}

#[tokio::test]
async fn a_lease_that_the_engine_cannot_keep_and_a_name_that_is_none_are_refused() {
    let place = Place::new(Kind::Memory);
    let store = place.store().await;
    let options = Options { lease: Duration::ZERO, ..Options::default() };
    let refused = Queue::new(store.clone(), "q", place.clock().clone(), options).unwrap_err();
    assert_eq!(refused.code(), "unsupported");
    for name in [String::new(), "q".repeat(201)] {
        let refused = Queue::new(store.clone(), &name, place.clock().clone(), Options::default());
        assert_eq!(refused.unwrap_err().code(), "bad-message");
    }
}
