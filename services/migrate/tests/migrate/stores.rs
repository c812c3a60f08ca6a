//! Stores to copy, and what they hold.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use keyward_engine::{Commit, Expiry, Json, Put, Revision, Scan, Store, Tier};
use keyward_key::{Key, KeyRange};
use keyward_memory::{Memory, Options};
use keyward_migrate::{Copied, Copy, Verified};
use keyward_testkit::TestClock;

pub fn memory(clock: &TestClock) -> Store {
    Store::new(Memory::with(Options::default(), clock.clone()))
}

pub fn memory_of(tier: Tier) -> Store {
    Store::new(Memory::with(Options::tier(tier), TestClock::new()))
}

/// Two empty stores with one clock.
pub fn two() -> (Store, Store) {
    let clock = TestClock::new();
    (memory(&clock), memory(&clock))
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn number(n: i64) -> Put {
    Put::new(Json::from_integer(n))
}

/// A store with these keys, each holding a number.
pub async fn put_all(store: &Store, keys: &[&str]) {
    for (text, n) in keys.iter().zip(0..) {
        store.put(key(text), number(n)).await.unwrap();
    }
}

/// Fills a store with `count` entries `item:000000`, `item:000001`, ...
pub async fn fill(store: &Store, count: usize) {
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(5_000) {
        let commit = some.iter().fold(Commit::new(), |commit, &n| {
            commit.put(key(&format!("item:{n:06}")), number(n as i64))
        });
        assert!(store.commit(commit).await.unwrap().is_applied());
    }
}

/// Puts some of a small set of keys at random, so that two stores share some, differ in some, and
/// lack some each.
pub async fn scatter(store: &Store, rng: &mut Rng, count: usize) {
    for _ in 0..count {
        let key = key(&format!("{}:{}", rng.u8(..8), rng.u8(..40)));
        let mut put = number(rng.i64(..3));
        if rng.bool() {
            put = put.with_metadata(Json::parse(format!("{{\"n\":{}}}", rng.u8(..2))).unwrap());
        }
        if rng.bool() {
            put = put.expiring(Expiry::After(Duration::from_millis(rng.u64(60_000..60_003))));
        }
        store.put(key, put).await.unwrap();
    }
}

type Content = (Json, Option<Json>, Option<Timestamp>);

/// Everything a store holds, but for its versions.
pub async fn content(store: &Store) -> BTreeMap<Key, Content> {
    let mut scan = Scan::new(KeyRange::all()).limit(10_000);
    let mut content = BTreeMap::new();
    loop {
        let page = store.scan(&scan).await.unwrap();
        for row in page.rows {
            let entry = row.entry.unwrap();
            content.insert(row.key, (entry.value, entry.metadata, entry.expires));
        }
        match page.next {
            Some(next) => scan.after = Some(next),
            None => return content,
        }
    }
}

pub async fn revision(store: &Store) -> Option<Revision> {
    store.stats().await.unwrap().revision
}

pub async fn copy(source: &Store, target: &Store) -> Copied {
    Copy::new(source.clone(), target.clone()).run(|_| ()).await.unwrap()
}

pub async fn verify(source: &Store, target: &Store) -> Verified {
    keyward_migrate::verify(source, target, |_| ()).await.unwrap()
}
