//! Conflicts that replication left.

use keyward_engine::{Documents, ErrorKind};
use keyward_key::{KeyRange, Prefix};
use serde_json::json;

use crate::server::{Fresh, key, put};

#[tokio::test(flavor = "multi_thread")]
async fn conflicting_revisions_are_reported_with_what_to_do() {
    let fresh = Fresh::new();
    let store = fresh.store().await;
    store.put(key("in:a"), put("1")).await.unwrap();
    store.put(key("out:a"), put("1")).await.unwrap();
    store.verify(&KeyRange::all()).await.unwrap();
    // Another database took other writes of the same key, and was replicated into this one.
    let (one, other) = (format!("1-{:032x}", 1), format!("1-{:032x}", 2));
    let entry = |rev: &str, value: &str| json!({"_id": "keyward!in!b", "_rev": rev, "keyward": 1, "value": value});
    fresh.replicate(&json!([entry(&one, "1"), entry(&other, "2")]));
    assert_eq!(store.get(&key("in:b")).await.unwrap().unwrap().value.as_str(), "2");

    let error = store.verify(&KeyRange::all()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    for part in
        ["1 document with conflicting revisions", "\"keyward!in!b\"", &one, &other, &fresh.name]
    {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert!(error.advice().unwrap().contains("DELETE /DATABASE/ID?rev=REV"));
    store.verify(&KeyRange::under(&Prefix::parse("out").unwrap())).await.unwrap();

    // What the advice says mends it.
    let (status, answer) = fresh.request("DELETE", &format!("/keyward!in!b?rev={one}"), "");
    assert_eq!(status, 200, "{answer}");
    store.verify(&KeyRange::all()).await.unwrap();
    assert_eq!(store.get(&key("in:b")).await.unwrap().unwrap().value.as_str(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_conflicts_are_counted_and_some_are_named() {
    let fresh = Fresh::new();
    let store = fresh.store().await;
    let documents: Vec<_> = (0..250)
        .flat_map(|n| {
            [1, 2].map(|rev| {
                let rev = format!("1-{rev:032x}");
                json!({"_id": format!("keyward!k{n:03}"), "_rev": rev, "keyward": 1, "value": "1"})
            })
        })
        .collect();
    fresh.replicate(&json!(documents));
    let error = store.verify(&KeyRange::all()).await.unwrap_err();
    assert!(error.message().contains("250 documents with conflicting revisions"), "{error}");
    assert!(error.message().ends_with("and 240 more"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_of_documents_that_another_program_lays_out_are_reported() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    documents.prepare(true).await.unwrap();
    fresh.write("/u:n:aw==", &json!({"value": 1}));
    documents.verify().await.unwrap();
    let (one, other) = (format!("1-{:032x}", 1), format!("1-{:032x}", 2));
    let document = |rev: &str| json!({"_id": "u:n:Yg==", "_rev": rev, "value": rev});
    fresh.replicate(&json!([document(&one), document(&other)]));
    let error = documents.verify().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    for part in ["1 document with conflicting revisions", "\"u:n:Yg==\"", &one, &other] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
}
