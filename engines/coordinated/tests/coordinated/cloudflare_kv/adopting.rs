//! A namespace that the original Worker filled.

use std::sync::Arc;

use keyward_engine::{Engine, Scan, Store};
use keyward_key::KeyRange;
use keyward_testkit::{HttpProxy, TestClock};

use super::server::{LAG, Namespace, address};
use crate::setup::{GRACE, key, value};

/// Values as that Worker wrote them: of both versions of the format, and a hash that is no JSON.
fn written() -> Vec<(String, String)> {
    let mut pairs = vec![
        (
            "metadata:sync:lastCommit".to_owned(),
            "3f786850e387550fdab836ed7e6dc881de23001b".to_owned(),
        ),
        (
            "policy:구 규정".to_owned(),
            r#"{"title":"구 규정","fileNo":"868","status":"active"}"#.to_owned(),
        ),
        ("policy:50% 할인".to_owned(), r#"{"policyName":"50% 할인","sha":"abc"}"#.to_owned()),
    ];
    pairs.extend((0..1_200).map(|n| {
        (
            format!("policy:규정 {n:04}"),
            format!(r#"{{ "policyName": "규정 {n:04}", "sha": "{n:040x}" }}"#),
        )
    }));
    pairs.sort();
    pairs
}

fn fill(namespace: &Namespace, pairs: &[(String, String)]) {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| serde_json::json!({ "key": name, "value": value }))
        .collect();
    let answer = namespace.plain("PUT", "/bulk", serde_json::to_vec(&pairs).unwrap());
    assert_eq!(answer.status, 200);
}

/// Requests that change something. Reading many entries is a POST.
fn writes(proxy: &HttpProxy) -> Vec<String> {
    let log = proxy.log().into_iter();
    log.filter(|line| !line.starts_with("GET ") && !line.contains("/bulk/get")).collect()
}

#[tokio::test]
async fn a_namespace_is_adopted_by_an_empty_coordinator_without_a_write() {
    let (namespace, clock) = (Arc::new(Namespace::late()), TestClock::new());
    let pairs = written();
    fill(&namespace, &pairs);
    clock.advance(LAG);
    let directory = tempfile::tempdir().unwrap();
    let proxy = HttpProxy::start(address()).await;
    let (engine, requests) =
        proxy.count(super::open(&namespace, proxy.address(), directory.path(), &clock)).await;
    assert_eq!(requests, 3, "whether it is there, and two pages of names");
    let engine = Arc::new(engine);
    let store = Store::from_arc(engine.clone());
    assert_eq!(store.stats().await.unwrap().entries, pairs.len() as u64);

    let mut scan = Scan::new(KeyRange::all()).limit(500);
    let mut rows = Vec::new();
    loop {
        let page = store.scan(&scan).await.unwrap();
        rows.extend(page.rows);
        scan.after = page.next;
        if scan.after.is_none() {
            break;
        }
    }
    assert_eq!(rows.len(), pairs.len());
    let hash = value(&store, &key("metadata:sync:lastCommit")).await;
    assert_eq!(hash.as_deref(), Some("\"3f786850e387550fdab836ed7e6dc881de23001b\""));
    let half = value(&store, &key("policy:50%25 할인")).await;
    assert_eq!(half.as_deref(), Some(r#"{"policyName":"50% 할인","sha":"abc"}"#));

    for _ in 0..2 {
        clock.advance(GRACE + LAG);
        engine.settle().await.unwrap();
    }
    assert_eq!(engine.settle().await.unwrap().waiting, 0);
    drop((store, engine));
    let again = super::open(&namespace, proxy.address(), directory.path(), &clock).await;
    assert_eq!(again.stats().await.unwrap().entries, pairs.len() as u64);
    assert_eq!(writes(&proxy), Vec::<String>::new());
    for (name, text) in pairs.iter().step_by(100) {
        let name: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        assert_eq!(namespace.value(&name).as_ref(), Some(text), "as it was, byte for byte");
    }
}
