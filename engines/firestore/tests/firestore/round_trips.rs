//! What each operation costs: how many requests it sends.

use std::time::Duration;

use keyward_engine::{Commit, Expect, Expiry, Order, Scan};
use keyward_key::{Key, KeyRange};
use keyward_testkit::{HttpProxy, TestClock};

use crate::emulator::{key, put, with_fresh};

fn keys() -> Vec<Key> {
    (0..200).map(|n| key(&format!("row:{n:03}"))).collect()
}

#[test]
fn reads_and_commits_take_one_request() {
    with_fresh(async |fresh| {
        let proxy = HttpProxy::start(fresh.address).await;
        let store = fresh.store_through(proxy.address(), TestClock::new()).await;
        let keys = keys();
        let many = keys.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), put("1")));
        assert!(proxy.count(store.commit(many)).await.1 == 1, "200 puts");

        let (entry, requests) = proxy.count(store.get(&keys[0])).await;
        let version = entry.unwrap().unwrap().version;
        assert_eq!(requests, 1, "get");
        let (entries, requests) = proxy.count(store.get_many(&keys[..100])).await;
        assert!(entries.unwrap().iter().all(Option::is_some));
        assert_eq!(requests, 1, "get_many of 100");

        let ending = put("2").expiring(Expiry::After(Duration::from_secs(60)));
        let commit = Commit::new()
            .check(keys[0].clone(), Expect::Version(version.clone()))
            .check(keys[1].clone(), Expect::Version(version.clone()))
            .check(key("absent"), Expect::Absent)
            .check(key("new"), Expect::Absent)
            .put(keys[0].clone(), ending)
            .put(key("new"), put("1"))
            .delete(keys[2].clone());
        let (outcome, requests) = proxy.count(store.commit(commit.clone())).await;
        assert!(outcome.unwrap().is_applied());
        assert_eq!(
            requests, 1,
            "a commit that writes and checks, and checks what it does not write"
        );
        let (outcome, requests) = proxy.count(store.commit(commit)).await;
        assert!(!outcome.unwrap().is_applied());
        assert_eq!(requests, 2, "a conflict, whose checks are then read to name them");

        // An entry that can expire costs no more, as long as it has not.
        let version = store.get(&keys[0]).await.unwrap().unwrap().version;
        let swap = Commit::new()
            .check(keys[0].clone(), Expect::Version(version))
            .put(keys[0].clone(), put("3"));
        let (outcome, requests) = proxy.count(store.commit(swap)).await;
        assert!(outcome.unwrap().is_applied());
        assert_eq!(requests, 1, "a swap of an entry that ends later");
        let checks = Commit::new().check(keys[5].clone(), Expect::Absent);
        let (outcome, requests) = proxy.count(store.commit(checks)).await;
        assert!(!outcome.unwrap().is_applied());
        assert_eq!(requests, 1, "checks alone");

        // A process begins with short pages, since it does not know how large rows are.
        let hundred = Scan::new(KeyRange::all()).limit(100);
        let mut first = Vec::new();
        for _ in 0..3 {
            first.push(store.scan(&hundred).await.unwrap().rows.len());
        }
        assert_eq!(first, [16, 64, 100]);
        for order in [Order::Ascending, Order::Descending] {
            let scan = hundred.clone().order(order);
            let (page, requests) = proxy.count(store.scan(&scan)).await;
            assert_eq!((page.unwrap().rows.len(), requests), (100, 1), "a page {order:?}");
            let (page, requests) = proxy.count(store.scan(&scan.keys_only())).await;
            assert_eq!((page.unwrap().rows.len(), requests), (100, 1), "a page of keys {order:?}");
        }
        let (stats, requests) = proxy.count(store.stats()).await;
        assert_eq!((stats.unwrap().entries, requests), (200, 1), "stats");
    });
}

#[test]
fn a_create_where_an_expired_entry_stands_takes_three_requests() {
    with_fresh(async |fresh| {
        let proxy = HttpProxy::start(fresh.address).await;
        let clock = TestClock::new();
        let store = fresh.store_through(proxy.address(), clock.clone()).await;
        let ttl = Duration::from_secs(60);
        store.put(key("slot"), put("1").expiring(Expiry::After(ttl))).await.unwrap();
        clock.advance(ttl);
        let create = Commit::new().check(key("slot"), Expect::Absent).put(key("slot"), put("2"));
        let started = proxy.log().len();
        assert!(store.commit(create).await.unwrap().is_applied());
        proxy.quiet().await;
        // What is reclaimed beside it is not counted.
        let log = proxy.log()[started..].join("\n");
        let of = |method: &str| log.lines().filter(|line| line.ends_with(method)).count();
        assert_eq!((of(":commit"), of(":batchGet")), (2, 1), "{log}");
    });
}
