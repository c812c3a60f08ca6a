//! What each operation costs: how many requests it sends.

use keyward_dynamodb::DynamoDbDocuments;
use keyward_engine::{Commit, Documents, Expect, Scan};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_testkit::HttpProxy;

use crate::server::{Fresh, address, json, key, put, runtime};

#[test]
fn every_operation_is_one_request() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let store = fresh.store_through(&proxy).await;
        let keys: Vec<Key> = (0..100).map(|n| key(&format!("row:{n:03}"))).collect();
        let all = keys.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), put("1")));

        // With a hundred keys there is no room for the row of their root; once it is known, none is needed.
        let (outcome, count) = proxy.count(store.commit(all.clone())).await;
        assert!(outcome.unwrap().is_applied());
        assert_eq!(count, 2, "the first hundred keys of a root");
        let (outcome, count) = proxy.count(store.commit(all)).await;
        assert!(outcome.unwrap().is_applied());
        assert_eq!(count, 1, "a hundred keys");
        let (put_new, count) = proxy.count(store.put(key("other:1"), put("1"))).await;
        assert_eq!((put_new.is_ok(), count), (true, 1), "the first key of a root");

        let (entry, count) = proxy.count(store.get(&keys[0])).await;
        let version = entry.unwrap().unwrap().version;
        assert_eq!(count, 1, "get");
        let (entries, count) = proxy.count(store.get_many(&keys)).await;
        assert!(entries.unwrap().iter().all(Option::is_some));
        assert_eq!(count, 1, "get_many of 100");
        let checked = Commit::new()
            .check(keys[0].clone(), Expect::Version(version))
            .check(key("row:absent"), Expect::Absent)
            .put(keys[0].clone(), put("3"))
            .delete(keys[2].clone())
            .add(key("row:number"), 1);
        let (outcome, count) = proxy.count(store.commit(checked.clone())).await;
        assert!(outcome.unwrap().is_applied());
        assert_eq!(count, 1, "a commit with checks");
        let (outcome, count) = proxy.count(store.commit(checked)).await;
        assert!(!outcome.unwrap().is_applied());
        assert_eq!(count, 1, "a commit that conflicts");
        let (outcome, count) = proxy.count(store.delete(keys[2].clone())).await;
        assert_eq!((outcome.is_ok(), count), (true, 1), "delete of nothing");

        let below = Scan::new(KeyRange::under(&Prefix::parse("row").unwrap())).limit(50);
        let (page, count) = proxy.count(store.scan(&below)).await;
        assert_eq!((page.unwrap().rows.len(), count), (50, 1), "a page below a root");
        let everything = Scan::new(KeyRange::all()).limit(1_000);
        let (page, count) = proxy.count(store.scan(&everything)).await;
        assert_eq!((page.unwrap().rows.len(), count), (101, 3), "a page over two roots");
        let (stats, count) = proxy.count(store.stats()).await;
        assert_eq!((stats.unwrap().entries, count), (101, 1), "stats");
    });
}

#[test]
fn opening_is_two_requests_and_a_new_store_five() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let (_, count) = proxy.count(fresh.store_through(&proxy)).await;
        assert_eq!(count, 5, "a new store");
        let (_, count) = proxy.count(fresh.store_through(&proxy)).await;
        assert_eq!(count, 2, "a store that is there: its header, and whether it has a stream");
    });
}

#[test]
fn a_document_is_read_and_swapped_in_one_request_each() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::documents_table().await);
        let documents =
            DynamoDbDocuments::open(fresh.options_through(proxy.address())).await.unwrap();
        let fields = json(r#"{"userId":"u","namespace":"n","key":"k","value":1}"#);
        let (_, count) = proxy.count(documents.put("a", &fields, None)).await;
        assert_eq!(count, 1, "create");
        let ids = ["a".to_owned()];
        let (read, count) = proxy.count(documents.get_many(&ids)).await;
        assert_eq!(count, 1, "get");
        let document = read.unwrap().pop().flatten().unwrap();
        let changed = json(r#"{"userId":"u","namespace":"n","key":"k","value":2}"#);
        let (_, count) = proxy.count(documents.put("a", &changed, Some(&document))).await;
        assert_eq!(count, 1, "replace");
        let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let (_, count) = proxy.count(documents.get_many(&many)).await;
        assert_eq!(count, 1, "get of 100");
    });
}

#[test]
fn counting_reads_the_table_and_the_store_says_so() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let proxy = HttpProxy::start(address()).await;
        let store = fresh.store_through(&proxy).await;
        assert!(store.counts_by_reading());
        let (stats, requests) = proxy.count(store.stats()).await;
        assert_eq!((stats.unwrap().entries, requests), (0, 1));
    });
}
