//! What a Worker or a script reads, and what it wrote before.

use std::sync::Arc;
use std::time::Duration;

use keyward_cloudflare_kv::CloudflareKv;
use keyward_engine::{Clock, Expiry, Json, Put, Store};
use keyward_key::Key;
use keyward_testkit::TestClock;

use crate::server::{Namespace, address};

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

async fn store(namespace: &Namespace, clock: TestClock) -> Store {
    Store::new(CloudflareKv::open_with(namespace.options(address()), clock).await.unwrap())
}

#[tokio::test]
async fn a_worker_reads_the_value_byte_for_byte_and_the_metadata_as_its_own() {
    let namespace = Namespace::prompt();
    let store = store(&namespace, TestClock::new()).await;
    let text = r#"{"policyName":"학칙","sha":"abc","n":1.50,"big":12345678901234567890123}"#;
    let described = Put::new(json(text)).with_metadata(json(r#"{"source":"git","size":12}"#));
    store.put(Key::parse("policy:학칙").unwrap(), described).await.unwrap();
    store.put(Key::parse("sync:foo").unwrap(), Put::new(json("\"abc\""))).await.unwrap();

    assert_eq!(namespace.names(), ["policy:학칙", "sync:foo"]);
    let name = "policy:%ED%95%99%EC%B9%99";
    assert_eq!(namespace.value(name).as_deref(), Some(text));
    assert_eq!(namespace.value("sync:foo").as_deref(), Some("\"abc\""));
    let metadata = namespace.plain("GET", &format!("/metadata/{name}"), "").result();
    assert_eq!(metadata, serde_json::json!({ "source": "git", "size": 12 }));
    let metadata = namespace.plain("GET", "/metadata/sync:foo", "").result();
    assert_eq!(metadata, serde_json::Value::Null, "nothing of ours");
}

#[tokio::test]
async fn a_worker_sees_the_end_of_an_entry_and_nothing_else_of_it() {
    let namespace = Namespace::prompt();
    let clock = TestClock::new();
    let store = store(&namespace, clock.clone()).await;
    let slot = Key::parse("slot").unwrap();
    let life = Expiry::After(Duration::from_secs(3_600));
    store.put(slot.clone(), Put::new(json("1")).expiring(life)).await.unwrap();
    let end = clock.now().as_second() + 3_600;
    let listed = namespace.plain("GET", "/keys", "").result();
    assert_eq!(listed, serde_json::json!([{ "name": "slot", "expiration": end }]));

    // Nearer than Workers KV takes: the pair stays longer there, and the entry does not.
    let soon = clock.now() + Duration::from_secs(10);
    store.put(slot.clone(), Put::new(json("2")).expiring(Expiry::At(soon))).await.unwrap();
    assert_eq!(store.get(&slot).await.unwrap().unwrap().expires, Some(soon));
    clock.advance_to(soon);
    assert_eq!(store.get(&slot).await.unwrap(), None);
    assert_eq!(store.stats().await.unwrap().entries, 0);
    assert_eq!(namespace.value("slot").as_deref(), Some("2"));
    namespace.control(serde_json::json!({ "now": soon.as_millisecond() + 120_000 }));
    assert_eq!(namespace.value("slot"), None);
}

#[tokio::test]
async fn writes_that_were_dropped_on_the_way_hold_up_nobody() {
    let namespace = Arc::new(Namespace::prompt());
    let store = store(&namespace, TestClock::new()).await;
    let put = |n: usize| {
        let key = Key::parse(&format!("row:{n}")).unwrap();
        let store = store.clone();
        async move { store.put(key, Put::new(Json::from_integer(n as i64))).await }
    };
    // However late this test goes on, the server has not yet answered the first request well.
    namespace.control(serde_json::json!({ "refuse": 1, "retryAfter": 1 }));
    // The one that sends for all is dropped while it sends.
    let mut first = Box::pin(put(0));
    let others: Vec<_> = (1..20).map(|n| tokio::spawn(put(n))).collect();
    let meanwhile = async {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = &mut first => panic!("it waits for the server"),
        () = meanwhile => {}
    }
    drop(first);
    for other in others {
        other.await.unwrap().unwrap();
    }
    let missing = (1..20).filter(|n| namespace.value(&format!("row:{n}")).is_none()).count();
    assert_eq!(missing, 0, "acknowledged and not there");
}
