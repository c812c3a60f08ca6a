//! Scans over many partitions.

use std::time::Duration;

use aws_sdk_dynamodb::types::ScalarAttributeType;
use keyward_dynamodb::{DynamoDb, Options};
use keyward_engine::{Commit, ErrorKind, Order, Scan, Store};
use keyward_key::{Key, KeyRange};
use keyward_testkit::TestClock;

use crate::server::{Fresh, bytes, key, put, runtime, text};

async fn all(store: &keyward_engine::Store, order: Order, limit: usize) -> Vec<Key> {
    let mut scan = Scan::new(KeyRange::all()).order(order).limit(limit).keys_only();
    let mut keys = Vec::new();
    loop {
        let page = store.scan(&scan).await.unwrap();
        assert!(page.rows.len() <= limit);
        keys.extend(page.rows.into_iter().map(|row| row.key));
        scan.after = page.next;
        if scan.after.is_none() {
            return keys;
        }
    }
}

#[test]
fn hundreds_of_roots_are_scanned_in_order_both_ways() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let store = fresh.store().await;
        // More than one page of roots, most of which have nothing left.
        let mut left = Vec::new();
        for some in (0..200).collect::<Vec<usize>>().chunks(100) {
            let names = some.iter().map(|n| key(&format!("root{n:03}:row")));
            let commit = names.clone().fold(Commit::new(), |commit, key| commit.put(key, put("1")));
            assert!(store.commit(commit).await.unwrap().is_applied());
            let (stay, go): (Vec<Key>, Vec<Key>) =
                names.partition(|key| key.first().ends_with('7'));
            let commit = go.into_iter().fold(Commit::new(), Commit::delete);
            assert!(store.commit(commit).await.unwrap().is_applied());
            left.extend(stay);
        }
        for limit in [7, 1_000] {
            assert_eq!(all(&store, Order::Ascending, limit).await, left, "by {limit}");
            let mut down = all(&store, Order::Descending, limit).await;
            down.reverse();
            assert_eq!(down, left, "by {limit}, down");
        }
        // Another process, which knows no roots, sees the same and writes into them.
        let another = fresh.store().await;
        assert_eq!(all(&another, Order::Ascending, 1_000).await, left);
        another.put(key("root000:again"), put("1")).await.unwrap();
        assert_eq!(all(&store, Order::Ascending, 1_000).await.len(), left.len() + 1);
    });
}

#[test]
fn every_entry_has_a_row_of_its_root_before_it_is_seen() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let store = fresh.store().await;
        store.put(key("a:b"), put("1")).await.unwrap();
        let conflicting = Commit::new()
            .check(key("a:b"), keyward_engine::Expect::Absent)
            .put(key("c:d"), put("1"));
        assert!(!store.commit(conflicting.clone()).await.unwrap().is_applied());
        let roots = || async {
            let items = fresh.items().await;
            items.iter().filter(|item| item["p"] == bytes(b"r")).count()
        };
        assert_eq!(roots().await, 1, "a commit that was not applied left no root");
        // A root is not taken for known because a commit to it was tried.
        store.put(key("c:d"), put("1")).await.unwrap();
        assert_eq!(roots().await, 2);
        store.delete(key("c:d")).await.unwrap();
        assert_eq!(roots().await, 2, "roots stay");
    });
}

#[test]
fn a_key_that_is_too_short_to_be_split_hides_nothing_below_it() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let options = Options { partition_segments: Some(2), ..fresh.options() };
        let store = Store::new(DynamoDb::open_with(options, TestClock::new()).await.unwrap());
        // A page has at most 128 roots. Going up and going down, the last of the first page is `a`, and then `m`.
        let mut keys: Vec<Key> = ["a", "a:", "a:b", "a:b:c", "a:c", "m"].map(key).into();
        keys.extend((0..127).map(|n| key(&format!("A:{n:03}"))));
        keys.extend((0..122).map(|n| key(&format!("b:{n:03}"))));
        keys.extend((0..127).map(|n| key(&format!("n:{n:03}:row"))));
        for some in keys.chunks(50) {
            let commit =
                some.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), put("1")));
            assert!(store.commit(commit).await.unwrap().is_applied());
        }
        keys.sort();
        assert_eq!(keys.iter().position(|it| *it == key("a")), Some(127));
        for limit in [1_000, 128, 3] {
            assert_eq!(all(&store, Order::Ascending, limit).await, keys, "by {limit}");
            let mut down = all(&store, Order::Descending, limit).await;
            down.reverse();
            assert_eq!(down, keys, "by {limit}, down");
        }
    });
}

#[test]
fn a_root_that_is_written_all_the_time_gets_its_row_once() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let clock = TestClock::new();
        let store = Store::new(DynamoDb::open_with(fresh.options(), clock.clone()).await.unwrap());
        store.put(key("a:b"), put("1")).await.unwrap();
        let item = async |partition: &[u8]| {
            let items = fresh.items().await;
            items.into_iter().find(|item| item["p"] == bytes(partition)).unwrap()
        };
        // Whoever writes the row takes the mark away.
        let mark = async || {
            let mut row = item(b"r").await;
            row.insert("mark".to_owned(), text("1"));
            fresh.put_item(row).await;
        };
        let is_marked_after = async |seconds: u64| {
            clock.advance(Duration::from_secs(seconds));
            store.put(key("a:b"), put("1")).await.unwrap();
            item(b"r").await.contains_key("mark")
        };
        mark().await;
        for _ in 0..50 {
            assert!(is_marked_after(60).await);
        }
        assert!(!is_marked_after(600).await, "after an hour, it is made sure of");
        // As if the table had been deleted and made again, which is noticed by the id in its header.
        mark().await;
        let mut header = item(b"h").await;
        assert!(header.insert("id".to_owned(), text("another")).is_some());
        fresh.put_item(header).await;
        assert!(!is_marked_after(10).await);
        mark().await;
        assert!(is_marked_after(10).await);
    });
}

/// The rows of roots are gone with the table, and a process that knew them writes them again.
#[test]
fn a_table_that_is_made_again_gets_its_roots_again() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let clock = TestClock::new();
        let store = Store::new(DynamoDb::open_with(fresh.options(), clock.clone()).await.unwrap());
        let key_of_store = [("p", ScalarAttributeType::B), ("s", ScalarAttributeType::B)];
        let put_and_scan = || async {
            store.put(key("a:b"), put("1")).await.unwrap();
            assert_eq!(all(&store, Order::Ascending, 10).await, [key("a:b")]);
        };
        put_and_scan().await;
        // Nothing was asked of it meanwhile.
        fresh.remove().await;
        fresh.create(&key_of_store).await;
        clock.advance(Duration::from_secs(10));
        put_and_scan().await;
        // Something was, and found no table.
        fresh.remove().await;
        let error = store.put(key("a:b"), put("1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
        fresh.create(&key_of_store).await;
        put_and_scan().await;
    });
}
