//! What each operation costs: how many requests are sent.

use std::time::Duration;

use keyward_couchdb::{CouchDb, CouchDbDocuments};
use keyward_engine::{Commit, DocumentList, Documents, Expect, Expiry, Json, Scan, Store};
use keyward_key::KeyRange;
use keyward_testkit::{HttpProxy, TestClock};

use crate::server::{Fresh, address, key, put};

#[tokio::test(flavor = "multi_thread")]
async fn reads_and_commits_with_a_check_are_one_request() {
    let fresh = Fresh::new();
    let proxy = HttpProxy::start(address()).await;
    let clock = TestClock::new();
    let engine = CouchDb::open_with(fresh.options_through(proxy.address()), clock.clone());
    let store = Store::new(engine.await.unwrap());
    let keys: Vec<_> = (0..100).map(|n| key(&format!("row:{n:03}"))).collect();
    for key in &keys {
        let create = Commit::new().check(key.clone(), Expect::Absent).put(key.clone(), put("1"));
        let (outcome, requests) = proxy.count(store.commit(create)).await;
        assert!(outcome.unwrap().is_applied());
        assert_eq!(requests, 1, "create");
    }
    let (entry, requests) = proxy.count(store.get(&keys[0])).await;
    let version = entry.unwrap().unwrap().version;
    assert_eq!(requests, 1, "get");
    let (entries, requests) = proxy.count(store.get_many(&keys)).await;
    assert!(entries.unwrap().iter().all(Option::is_some));
    assert_eq!(requests, 1, "get_many of 100");
    let scan = Scan::new(KeyRange::all()).limit(50);
    let (page, requests) = proxy.count(store.scan(&scan)).await;
    assert_eq!((page.unwrap().rows.len(), requests), (50, 1), "page of a scan");

    let ending = put("2").expiring(Expiry::After(Duration::from_secs(60)));
    let swap = Commit::new()
        .check(keys[0].clone(), Expect::Version(version))
        .put(keys[0].clone(), ending.clone());
    let (outcome, requests) = proxy.count(store.commit(swap.clone())).await;
    let version = outcome.unwrap().versions().unwrap()[0].clone().unwrap();
    assert_eq!(requests, 1, "swap");
    let (outcome, requests) = proxy.count(store.commit(swap)).await;
    assert_eq!((outcome.unwrap().is_applied(), requests), (false, 1), "swap that conflicts");
    // The version of a commit is known without a read, and so is that it has expired.
    let again =
        Commit::new().check(keys[0].clone(), Expect::Version(version)).put(keys[0].clone(), ending);
    let (outcome, requests) = proxy.count(store.commit(again)).await;
    let version = outcome.unwrap().versions().unwrap()[0].clone().unwrap();
    assert_eq!(requests, 1, "swap after a swap");
    let remove =
        Commit::new().check(keys[0].clone(), Expect::Version(version)).delete(keys[0].clone());
    let (outcome, requests) = proxy.count(store.commit(remove)).await;
    assert!(outcome.unwrap().is_applied());
    assert_eq!(requests, 1, "delete with a check");

    let (_, requests) = proxy.count(store.put(keys[1].clone(), put("3"))).await;
    assert_eq!(requests, 2, "put without a check");
    let (_, requests) = proxy.count(store.delete(keys[1].clone())).await;
    assert_eq!(requests, 2, "delete without a check");
    let (_, requests) = proxy.count(store.delete(keys[1].clone())).await;
    assert_eq!(requests, 1, "delete of nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_read_swapped_and_listed_in_one_request_each() {
    let fresh = Fresh::new();
    fresh.documents().await.prepare(true).await.unwrap();
    let proxy = HttpProxy::start(address()).await;
    let documents = CouchDbDocuments::open(fresh.options_through(proxy.address())).await.unwrap();
    let fields = Json::parse(r#"{"userId":"u","namespace":"n","key":"k","value":1}"#).unwrap();
    let (_, requests) = proxy.count(documents.put("u:n:aw==", &fields, None)).await;
    assert_eq!(requests, 1, "create");
    let ids = ["u:n:aw==".to_owned()];
    let (found, requests) = proxy.count(documents.get_many(&ids)).await;
    let found = found.unwrap().remove(0).unwrap();
    assert_eq!(requests, 1, "get_many");
    let (_, requests) = proxy.count(documents.put(&ids[0], &fields, Some(&found))).await;
    assert_eq!(requests, 1, "swap");
    let list = DocumentList {
        owner: "u".to_owned(),
        group: Some("n".to_owned()),
        with_documents: true,
        after: None,
        limit: 10,
    };
    let (page, requests) = proxy.count(documents.list(&list)).await;
    assert_eq!((page.unwrap().rows.len(), requests), (1, 1), "page of a list");
}
