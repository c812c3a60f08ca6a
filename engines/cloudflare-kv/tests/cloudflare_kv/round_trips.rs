//! How many requests each operation takes.

use std::sync::Arc;

use futures_util::future::join_all;
use keyward_cloudflare_kv::CloudflareKv;
use keyward_engine::{Engine, Json, Put, Scan, Store};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_testkit::{HttpProxy, TestClock};

use crate::server::{Namespace, address};

fn numbered(n: usize) -> Key {
    Key::parse(&format!("row:{n:04}")).unwrap()
}

#[tokio::test]
async fn each_operation_takes_as_few_requests_as_the_api_allows() {
    let namespace = Arc::new(Namespace::prompt());
    let proxy = HttpProxy::start(address()).await;
    let open = CloudflareKv::open_with(namespace.options(proxy.address()), TestClock::new());
    let (engine, requests) = proxy.count(open).await;
    assert_eq!(requests, 1, "opening looks whether the namespace is there");
    let engine = engine.unwrap();
    let store = Store::new(engine.clone());
    let put = |n: usize| store.put(numbered(n), Put::new(Json::from_integer(n as i64)));

    let (written, requests) = proxy.count(put(0)).await;
    assert_eq!((written.is_ok(), requests), (true, 1), "a commit");
    let (deleted, requests) = proxy.count(store.delete(numbered(0))).await;
    assert_eq!((deleted.is_ok(), requests), (true, 1), "a commit that deletes");

    // Commits of the same moment share requests.
    let (all, requests) = proxy.count(join_all((0..1_100).map(put))).await;
    assert!(all.iter().all(Result::is_ok));
    assert!(requests <= 2, "{requests} requests for 1,100 commits at once");

    let (entry, requests) = proxy.count(store.get(&numbered(7))).await;
    assert_eq!((entry.unwrap().is_some(), requests), (true, 1), "a read");
    let keys: Vec<Key> = (0..100).map(numbered).collect();
    let (entries, requests) = proxy.count(engine.get_many(&keys)).await;
    assert_eq!((entries.unwrap().iter().flatten().count(), requests), (100, 1), "100 keys");

    let rows = KeyRange::under(&Prefix::parse("row").unwrap());
    let names = Scan::new(rows.clone()).limit(1_000).keys_only();
    let (page, requests) = proxy.count(store.scan(&names)).await;
    assert_eq!((page.unwrap().rows.len(), requests), (1_000, 1), "a page of keys");
    let (page, requests) = proxy.count(store.scan(&Scan::new(rows).limit(250))).await;
    assert_eq!((page.unwrap().rows.len(), requests), (250, 4), "a page, and 100 values a time");
    let one = KeyRange::exactly(&numbered(7));
    let (page, requests) = proxy.count(store.scan(&Scan::new(one))).await;
    assert_eq!((page.unwrap().rows.len(), requests), (1, 2), "nothing beside the range is read");
    let (stats, requests) = proxy.count(store.stats()).await;
    assert_eq!((stats.unwrap().entries, requests), (1_100, 2), "names are counted by 1,000");
}
