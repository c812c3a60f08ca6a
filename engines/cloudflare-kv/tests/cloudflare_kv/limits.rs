//! Limits that are Workers KV's own, from both sides.

use std::time::Duration;

use keyward_cloudflare_kv::CloudflareKv;
use keyward_engine::{Clock, ErrorKind, Expiry, Json, Put, Store};
use keyward_key::Key;
use keyward_testkit::TestClock;

use crate::server::{Namespace, address};

fn one() -> Put {
    Put::new(Json::from_integer(1))
}

async fn store(namespace: &Namespace, clock: TestClock) -> Store {
    Store::new(CloudflareKv::open_with(namespace.options(address()), clock).await.unwrap())
}

#[tokio::test]
async fn a_name_is_at_most_512_bytes_long_with_its_escapes() {
    let namespace = Namespace::prompt();
    let store = store(&namespace, TestClock::new()).await;
    let with_colons = |colons: usize, rest: usize| {
        Key::from_segments([format!("{}{}", ":".repeat(colons), "x".repeat(rest))]).unwrap()
    };
    let longest = with_colons(100, 212);
    store.put(longest.clone(), one()).await.unwrap();
    assert!(store.get(&longest).await.unwrap().is_some());
    let longer = with_colons(100, 213);
    for error in [
        store.put(longer.clone(), one()).await.unwrap_err(),
        store.get(&longer).await.unwrap_err(),
        store.delete(longer).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("513 bytes"), "{error}");
    }
}

#[tokio::test]
async fn names_that_workers_kv_refuses_are_keys_all_the_same() {
    let namespace = Namespace::prompt();
    let store = store(&namespace, TestClock::new()).await;
    for name in [".", "..", "%2E", "%2E."] {
        let key = Key::from_segments([name]).unwrap();
        store.put(key.clone(), Put::new(Json::from_value(name).unwrap())).await.unwrap();
    }
    for name in [".", "..", "%2E", "%2E."] {
        let key = Key::from_segments([name]).unwrap();
        let entry = store.get(&key).await.unwrap().unwrap();
        assert_eq!(entry.value, Json::from_value(name).unwrap());
    }
}

#[tokio::test]
async fn metadata_that_cannot_be_kept_as_an_object_has_less_room() {
    let namespace = Namespace::prompt();
    let clock = TestClock::new();
    let store = store(&namespace, clock.clone()).await;
    let slot = Key::parse("slot").unwrap();
    let object = |number: &str, bytes: usize| {
        let frame = format!(r#"{{"n":{number},"x":""}}"#).len();
        let text = format!(r#"{{"n":{number},"x":"{}"}}"#, "x".repeat(bytes - frame));
        Json::parse(text).unwrap()
    };
    for metadata in [object("1.5", 1_024), object("1.50", 900)] {
        store.put(slot.clone(), one().with_metadata(metadata.clone())).await.unwrap();
        assert_eq!(store.get(&slot).await.unwrap().unwrap().metadata, Some(metadata));
    }
    let soon = Expiry::At(clock.now() + Duration::from_secs(10));
    for put in [
        one().with_metadata(object("1.50", 1_024)),
        one().with_metadata(object("1.5", 1_024)).expiring(soon),
    ] {
        let error = store.put(slot.clone(), put).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
        assert!(error.advice().unwrap().contains("1.50"));
    }
}
