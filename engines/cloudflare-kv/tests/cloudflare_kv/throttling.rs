//! Servers that ask to slow down.

use std::sync::Arc;
use std::time::Duration;

use keyward_cloudflare_kv::CloudflareKv;
use keyward_engine::{ErrorKind, Json, Put, Store};
use keyward_key::Key;
use keyward_testkit::TestClock;
use tokio::time::Instant;

use crate::server::{Namespace, address};

async fn store(namespace: &Namespace, budget: Duration) -> Store {
    let mut options = namespace.options(address());
    options.http.retry_budget = budget;
    Store::new(CloudflareKv::open_with(options, TestClock::new()).await.unwrap())
}

#[tokio::test]
async fn a_request_that_is_refused_is_sent_again_when_the_server_says() {
    let namespace = Arc::new(Namespace::prompt());
    let store = store(&namespace, Duration::from_secs(10)).await;
    let slot = Key::parse("slot").unwrap();
    namespace.control(serde_json::json!({ "refuse": 1, "retryAfter": 1 }));
    let started = Instant::now();
    store.put(slot.clone(), Put::new(Json::from_integer(1))).await.unwrap();
    assert!(
        started.elapsed() >= Duration::from_secs(1),
        "sent again after {:?}",
        started.elapsed()
    );
    namespace.control(serde_json::json!({ "refuse": 3, "retryAfter": 0 }));
    assert!(store.get(&slot).await.unwrap().is_some());
}

#[tokio::test]
async fn when_the_time_is_used_up_nothing_was_done() {
    let namespace = Arc::new(Namespace::prompt());
    let store = store(&namespace, Duration::from_millis(300)).await;
    let slot = Key::parse("slot").unwrap();
    namespace.control(serde_json::json!({ "refuse": 1_000 }));
    let write = store.put(slot.clone(), Put::new(Json::from_integer(1))).await.unwrap_err();
    let read = store.get(&slot).await.unwrap_err();
    for error in [write, read] {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("429"), "{error}");
    }
    namespace.control(serde_json::json!({ "refuse": 0 }));
    assert_eq!(store.get(&slot).await.unwrap(), None);
}
