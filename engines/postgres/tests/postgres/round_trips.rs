//! What each operation costs: how often something is sent and an answer waited for.

use futures_util::StreamExt;
use keyward_engine::{Commit, Expect, Order, Scan, Store};
use keyward_key::{Key, KeyRange};

use crate::proxy::Proxy;
use crate::server::{Fresh, key, put, putting, runtime};

/// A store over a single connection, so that what was prepared once stays prepared.
async fn store(proxy: &Proxy, fresh: &Fresh) -> Store {
    let mut options = fresh.options();
    options.pool_max = 1;
    proxy.open(options).await
}

fn keys() -> Vec<Key> {
    (0..200).map(|n| key(&format!("row:{n:03}"))).collect()
}

/// Every operation once, each with the round trips it took.
async fn operations(proxy: &Proxy, store: &Store) -> Vec<(&'static str, usize)> {
    let keys = keys();
    let mut counted = Vec::new();
    let mut before = proxy.round_trips();
    let mut count = |name| {
        let now = proxy.round_trips();
        counted.push((name, now - before));
        before = now;
    };
    let many = keys.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), put("1")));
    assert!(store.commit(many).await.unwrap().is_applied());
    count("commit of 200 puts");
    let version = store.get(&keys[0]).await.unwrap().unwrap().version;
    count("get");
    assert_eq!(store.get_many(&keys[..100]).await.unwrap().len(), 100);
    count("get_many of 100");
    store.put(keys[1].clone(), put("2")).await.unwrap();
    count("put");
    let checked = Commit::new()
        .check(keys[0].clone(), Expect::Version(version))
        .check(key("absent"), Expect::Absent)
        .put(keys[0].clone(), put("3"))
        .delete(keys[2].clone())
        .add(key("number"), 1);
    assert!(store.commit(checked.clone()).await.unwrap().is_applied());
    count("commit with checks");
    assert!(!store.commit(checked).await.unwrap().is_applied());
    count("commit that conflicts");
    store.delete(keys[2].clone()).await.unwrap();
    count("delete of nothing");
    let scan = Scan::new(KeyRange::all()).limit(100);
    let page = store.scan(&scan).await.unwrap();
    assert_eq!(page.rows.len(), 100);
    count("scan page");
    let next = scan.clone().after(page.next).order(Order::Ascending);
    assert_eq!(store.scan(&next).await.unwrap().rows.len(), 100);
    count("next scan page");
    assert_eq!(store.scan(&scan.keys_only()).await.unwrap().rows.len(), 100);
    count("scan page of keys");
    store.stats().await.unwrap();
    count("stats");
    counted
}

#[test]
fn every_operation_is_one_round_trip() {
    runtime().block_on(async {
        let (proxy, fresh) = (Proxy::start().await, Fresh::new());
        let store = store(&proxy, &fresh).await;
        operations(&proxy, &store).await;
        // One commit in 64 is followed by housekeeping over the same connection, so the better of
        // several counts.
        let mut best = vec![("", usize::MAX)];
        for _ in 0..4 {
            let counted = operations(&proxy, &store).await;
            best.resize(counted.len(), best[0]);
            for (best, counted) in best.iter_mut().zip(counted) {
                *best = (counted.0, counted.1.min(best.1));
            }
        }
        for (operation, round_trips) in best {
            assert_eq!(round_trips, 1, "{operation}");
        }
    });
}

/// Those who watch are notified after the commit, but without waiting for it first.
#[test]
fn a_commit_is_one_round_trip_while_others_watch() {
    runtime().block_on(async {
        let (proxy, fresh) = (Proxy::start().await, Fresh::new());
        let store = store(&proxy, &fresh).await;
        let watching = fresh.store().await;
        let mut events = watching.watch(KeyRange::all(), None);
        events.next().await.unwrap().unwrap();
        let mut round_trips = Vec::new();
        for n in 0..100 {
            let before = proxy.round_trips();
            let commit = putting("a", &n.to_string());
            assert!(store.commit(commit).await.unwrap().is_applied());
            round_trips.push(proxy.round_trips() - before);
            events.next().await.unwrap().unwrap();
        }
        // But for the first, when it heard that somebody listens, and for housekeeping.
        let single = round_trips.iter().filter(|&&count| count == 1).count();
        assert!(single > 90, "{round_trips:?}");
    });
}
