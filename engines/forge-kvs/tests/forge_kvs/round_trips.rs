//! How many requests each operation takes.

use keyward_engine::{Engine, Scan, Store};
use keyward_forge_kvs::ForgeKvs;
use keyward_key::{Key, KeyRange, Prefix};
use keyward_testkit::HttpProxy;
use serde_json::json;

use crate::installation::{Installation, key, put};

async fn counted(installation: &Installation) -> (HttpProxy, ForgeKvs) {
    let proxy = HttpProxy::start(installation.address()).await;
    let options = installation.options_through(proxy.address());
    let engine = ForgeKvs::open(options).await.unwrap();
    assert_eq!(proxy.requests(), 0, "opening sends nothing");
    (proxy, engine)
}

#[tokio::test]
async fn a_read_and_a_commit_take_one_request_and_a_page_one_more_than_its_reads() {
    let installation = Installation::new();
    let (proxy, engine) = counted(&installation).await;
    let store = Store::new(engine.clone());
    let keys: Vec<Key> = (0..100).map(|n| key(&format!("row:{n}"))).collect();
    for key in &keys {
        let (_, requests) = proxy.count(store.put(key.clone(), put("1"))).await;
        assert_eq!(requests, 1, "a commit");
    }
    for key in [&keys[0], &key("absent")] {
        assert_eq!(proxy.count(store.get(key)).await.1, 1, "a read");
    }
    assert_eq!(proxy.count(engine.get_many(&keys[..12])).await.1, 1, "12 keys");
    let (entries, requests) = proxy.count(store.get_many(&keys)).await;
    assert!(entries.unwrap().iter().all(Option::is_some));
    assert_eq!(requests, 9, "100 keys, 25 rows in a batch, 2 rows of a key");
    let scan = Scan::new(KeyRange::under(&Prefix::parse("row").unwrap())).limit(12);
    let (page, requests) = proxy.count(store.scan(&scan)).await;
    assert_eq!((page.unwrap().rows.len(), requests), (12, 2), "a page");
    assert_eq!(proxy.count(store.delete(keys[0].clone())).await.1, 1, "a delete");
}

#[tokio::test]
async fn a_sidecar_that_does_not_fit_is_read_again_before_it_counts_as_absent() {
    let installation = Installation::new();
    let (proxy, engine) = counted(&installation).await;
    let store = Store::new(engine);
    store.put(key("slot"), put("1")).await.unwrap();
    installation.write("slot", json!(2)).await;
    let (entry, requests) = proxy.count(store.get(&key("slot"))).await;
    assert_eq!(entry.unwrap().unwrap().value.as_str(), "2");
    assert_eq!(requests, 3);
}
