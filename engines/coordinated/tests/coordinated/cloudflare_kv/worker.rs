//! A Worker beside the store: plain requests, no word of Keyward.

use std::sync::Arc;

use keyward_engine::{Commit, Expect, Put, Store, Tier};
use keyward_testkit::TestClock;

use super::server::{LAG, Namespace, address};
use crate::setup::{GRACE, json, key, put, value};

const POLICY: &str = r#"{"policyName":"학칙","title":"한국교원대학교 학칙","status":"active","lastUpdated":"2025-10-20T16:00:00Z","sha":"3f786850e387550fdab836ed7e6dc881de23001b","path":"policies/학칙.md"}"#;

#[tokio::test]
async fn a_worker_reads_exactly_what_was_committed_and_no_bookkeeping() {
    let (namespace, clock) = (Arc::new(Namespace::late()), TestClock::new());
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(super::open(&namespace, address(), directory.path(), &clock).await);
    let store = Store::from_arc(engine.clone());
    assert_eq!(store.capabilities().tier(), Tier::Atomic);
    let queued = r#"{"policyName":"학칙","operation":"add","retryCount":0}"#;
    let commit = Commit::new()
        .check(key("policy:학칙"), Expect::Absent)
        .put(key("policy:학칙"), put(POLICY).with_metadata(json(r#"{"by":"sync"}"#)))
        .put(key("queue:학칙"), put(queued))
        .put(key("index:by-status:active:policy:학칙"), put("null"))
        .put(key("lock:sync"), put("1"));
    assert!(store.commit(commit).await.unwrap().is_applied());
    let sha = "\"def456\"";
    store.put(key("metadata:sync:lastCommit"), put(sha)).await.unwrap();

    // Read at once through the store, and by the Worker a minute later.
    assert_eq!(value(&store, &key("policy:학칙")).await.as_deref(), Some(POLICY));
    assert_eq!(namespace.names(), Vec::<String>::new(), "the namespace is late");
    clock.advance(LAG);
    namespace.tell(&clock);
    assert_eq!(namespace.names(), ["metadata:sync:lastCommit", "policy:학칙"]);
    let name = "policy:%ED%95%99%EC%B9%99";
    assert_eq!(namespace.value(name).as_deref(), Some(POLICY));
    assert_eq!(value(&store, &key("queue:학칙")).await.as_deref(), Some(queued));
    assert_eq!(namespace.value("metadata:sync:lastCommit").as_deref(), Some(sha));
    let metadata = namespace.plain("GET", &format!("/metadata/{name}"), "").result();
    assert_eq!(metadata, serde_json::json!({ "by": "sync" }));

    // Settled, the namespace alone has the values.
    for _ in 0..2 {
        clock.advance(GRACE + LAG);
        engine.settle().await.unwrap();
    }
    assert_eq!(engine.settle().await.unwrap().waiting, 0);
    let entry = store.get(&key("policy:학칙")).await.unwrap().unwrap();
    assert_eq!(entry.value.as_str(), POLICY);
    assert_eq!(entry.metadata, Some(json(r#"{"by":"sync"}"#)));

    store.delete(key("policy:학칙")).await.unwrap();
    clock.advance(LAG);
    namespace.tell(&clock);
    assert_eq!(namespace.value(name), None);
}

#[tokio::test]
async fn what_a_worker_writes_and_deletes_is_taken_over() {
    let (namespace, clock) = (Arc::new(Namespace::late()), TestClock::new());
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(super::open(&namespace, address(), directory.path(), &clock).await);
    let store = Store::from_arc(engine.clone());
    let (changed, gone) = (key("sync:changed"), key("sync:gone"));
    let both = Commit::new().put(changed.clone(), put("1")).put(gone.clone(), put("1"));
    assert!(store.commit(both).await.unwrap().is_applied());
    clock.advance(GRACE + LAG);
    assert_eq!(engine.settle().await.unwrap().waiting, 0);
    let before = store.get(&changed).await.unwrap().unwrap();

    namespace.write("sync:changed", "{ \"by\": \"worker\" }");
    namespace.plain("DELETE", "/values/sync:gone", "");
    clock.advance(LAG);
    let after = store.get(&changed).await.unwrap().unwrap();
    assert_eq!(after.value.as_str(), r#"{"by":"worker"}"#);
    assert_ne!(after.version, before.version);
    assert_eq!(value(&store, &gone).await, None);
    let stale = Commit::new()
        .check(changed.clone(), Expect::Version(before.version))
        .put(changed, Put::new(json("2")));
    assert!(!store.commit(stale).await.unwrap().is_applied());
}
