//! Scans over many partitions.

use keyward_engine::{Commit, Order, Scan};
use keyward_key::{Key, KeyRange};

use crate::server::{Fresh, bytes, key, put, runtime};

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
