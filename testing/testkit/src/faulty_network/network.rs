use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyward_engine::{ClockSource, Entry, Json, Put, Scan, Store};
use keyward_key::{Key, KeyRange};

use super::NetworkPlace;
use crate::{HttpProxy, NetworkFault, Test, TestClock};

/// A store behind a network that fails when told to, and a witness who is not behind it.
pub struct Network {
    // Engines are declared before the place, so that they are closed before it is removed.
    /// The engine under test, by way of the proxy.
    pub(super) store: Store,
    /// The same store without the proxy.
    pub(super) witness: Store,
    pub(super) proxy: HttpProxy,
    pub(super) test: Test,
    clock: TestClock,
    _place: Box<dyn NetworkPlace>,
}

/// A fault that waits for one of the requests to come.
pub(super) struct Awaited {
    at: usize,
    seen: Arc<AtomicUsize>,
}

impl Awaited {
    pub(super) fn was_met(&self) -> bool {
        self.seen.load(Ordering::SeqCst) > self.at
    }
}

impl Network {
    pub(super) async fn open(test: Test, place: Box<dyn NetworkPlace>) -> Self {
        let clock = TestClock::new();
        let proxy = HttpProxy::start(place.upstream()).await;
        let witness = Store::from_arc(place.open(place.upstream(), clock.clone()).await);
        let store = Store::from_arc(place.open(proxy.address(), clock.clone()).await);
        Self { store, witness, proxy, test, clock, _place: place }
    }

    /// Whether commits may carry checks.
    pub(super) fn can_compare(&self) -> bool {
        self.store.capabilities().compare
    }

    /// Whether a commit may write this many keys.
    pub(super) fn can_write_together(&self, keys: usize) -> bool {
        self.store.limits().commit_keys_max >= keys
    }

    /// Lets the request after `at` others meet a fault.
    pub(super) fn fail_at(&self, at: usize, fault: NetworkFault) -> Awaited {
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = seen.clone();
        let is_due = move |_: &_, _: &_| counted.fetch_add(1, Ordering::SeqCst) == at;
        self.proxy.fail_next_matching(is_due, fault);
        Awaited { at, seen }
    }

    /// Lets what was written be read everywhere.
    pub(super) async fn settle(&self) {
        self.proxy.quiet().await;
        let lag = self.store.capabilities().consistency.lag();
        if lag.is_zero() {
            return;
        }
        match self.store.capabilities().clock {
            ClockSource::Server => tokio::time::sleep(lag).await,
            ClockSource::Machine | ClockSource::Process => self.clock.advance(lag),
        }
    }

    /// Puts an entry without the proxy, and gives it as it reads.
    pub(super) async fn prepare(&self, key: &Key, value: i64) -> Entry {
        let put = Put::new(Json::from_integer(value));
        self.witness.put(key.clone(), put).await.unwrap();
        self.settle().await;
        self.witness.get(key).await.unwrap().unwrap()
    }

    /// What is really there, once all that is under way has landed.
    pub(super) async fn truth(&self, keys: &[Key]) -> Vec<Option<Entry>> {
        self.settle().await;
        self.witness.get_many(keys).await.unwrap()
    }

    /// The last requests, for messages.
    pub(super) fn log(&self) -> String {
        let log = self.proxy.log();
        log[log.len().saturating_sub(12)..].join("\n  ")
    }
}

/// All rows of a store in the order of their keys, in pages of so many.
pub(super) async fn rows(store: &Store, page: usize) -> keyward_engine::Result<Vec<(Key, Entry)>> {
    let mut scan = Scan::new(KeyRange::all()).limit(page);
    let mut rows = Vec::new();
    loop {
        let page = store.scan(&scan).await?;
        rows.extend(page.rows.into_iter().map(|row| (row.key, row.entry.unwrap())));
        scan.after = page.next;
        if scan.after.is_none() {
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            return Ok(rows);
        }
    }
}

pub(super) fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
