//! The engine under test, with what every behaviour needs to try it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{
    Capabilities, Clock, ClockSource, Commit, Consistency, Entry, ErrorKind, ExpirySupport, Limits,
    Order, Outcome, Put, Revision, Row, Scan, ScanOrder, Store, SystemClock, WatchSupport,
};
use keyward_key::{Key, KeyRange};

use crate::seeds::Test;
use crate::{Place, TestClock};

/// An engine under test, at a place of its own. What it writes it also lets settle, so that
/// behaviours read the same on engines whose reads are late.
pub struct Subject {
    // Declared before the place, so that the engine is closed before its place is removed.
    pub(crate) store: Store,
    pub(crate) clock: TestClock,
    pub(crate) test: Test,
    place: Box<dyn Place>,
    new_place: NewPlace,
}

pub(crate) type NewPlace = Arc<dyn Fn() -> Box<dyn Place>>;

impl Subject {
    pub(crate) async fn open(test: Test, new_place: NewPlace) -> Self {
        let clock = TestClock::new();
        let place = new_place();
        let store = Store::from_arc(place.open(clock.clone()).await);
        Self { store, clock, test, place, new_place }
    }

    /// Another empty store, at another place.
    pub async fn another(&self) -> Self {
        Self::open(self.test, self.new_place.clone()).await
    }

    /// Another empty store with a short history, if the engine can be told.
    pub async fn with_history(&self, commits: usize) -> Option<Self> {
        let clock = TestClock::new();
        let place = (self.new_place)();
        let engine = place.open_with_history(clock.clone(), commits)?.await;
        Some(Self {
            store: Store::from_arc(engine),
            clock,
            test: self.test,
            place,
            new_place: self.new_place.clone(),
        })
    }

    /// The same place, closed and opened again.
    pub async fn reopened(self) -> Self {
        let Self { store, clock, test, place, new_place } = self;
        drop(store);
        let store = Store::from_arc(place.open(clock.clone()).await);
        Self { store, clock, test, place, new_place }
    }

    /// What the engine can do.
    pub fn capabilities(&self) -> &Capabilities {
        self.store.capabilities()
    }

    /// How large things may be.
    pub fn limits(&self) -> &Limits {
        self.store.limits()
    }

    /// Whether scans come in key order.
    pub fn is_ordered(&self) -> bool {
        self.capabilities().scan_order == ScanOrder::Ordered
    }

    /// Whether changes can be watched.
    pub fn can_watch(&self) -> bool {
        self.capabilities().watch.is_supported()
    }

    /// Whether every commit has a revision, which a watch of any process can resume from.
    pub fn can_resume(&self) -> bool {
        self.capabilities().watch == WatchSupport::Resumable
    }

    /// Whether this engine goes by the test's clock.
    pub fn owns_time(&self) -> bool {
        self.capabilities().clock != ClockSource::Server
    }

    /// The time by the engine's clock; about, if it is a server's.
    pub fn now(&self) -> Timestamp {
        if self.owns_time() { self.clock.now() } else { SystemClock.now() }
    }

    /// Lets time pass: by the test's clock, or really.
    pub async fn pass(&self, time: Duration) {
        if self.owns_time() {
            self.clock.advance(time);
        } else {
            tokio::time::sleep(time).await;
        }
    }

    /// Lets time pass up to a moment of the engine's clock: exactly, or with a little more.
    pub async fn pass_to(&self, moment: Timestamp) {
        if self.owns_time() {
            self.clock.advance_to(moment);
        } else {
            let left = moment.duration_since(SystemClock.now());
            let left = Duration::try_from(left).unwrap_or_default();
            tokio::time::sleep(left + Duration::from_millis(50)).await;
        }
    }

    /// Lets time pass up to the last moment before another; on a server's clock, not at all.
    pub async fn pass_to_just_before(&self, moment: Timestamp) {
        if self.owns_time() {
            self.clock.advance_to(moment - Duration::from_millis(1));
        }
    }

    /// Lets time pass until what was written can be read everywhere.
    pub async fn settle(&self) {
        let lag = self.capabilities().consistency.lag();
        if !lag.is_zero() {
            self.pass(lag).await;
        }
    }

    /// A time to live that outlasts what a behaviour does in between, but not its patience; `None`
    /// if entries cannot expire.
    pub fn ttl(&self) -> Option<Duration> {
        let ExpirySupport::Supported { granularity, ttl_min } = self.capabilities().expiry else {
            return None;
        };
        let enough = match (self.owns_time(), self.capabilities().consistency) {
            (true, _) => Duration::from_secs(600),
            (false, Consistency::Strong) => Duration::from_secs(1),
            (false, Consistency::LateScans { lag } | Consistency::Eventual { lag }) => lag * 3,
        };
        Some(enough.max(ttl_min).max(granularity))
    }

    /// Commits, and lets it settle.
    pub async fn commit(&self, commit: Commit) -> Outcome {
        let outcome = self.store.commit(commit).await.unwrap();
        self.settle().await;
        outcome
    }

    /// Puts an entry, and gives it as it then reads.
    pub async fn put(&self, key: &Key, put: Put) -> Entry {
        let version = self.store.put(key.clone(), put).await.unwrap();
        self.settle().await;
        let entry = self.present(key).await;
        assert_eq!(entry.version, version, "{key} has the version that was told");
        entry
    }

    /// Deletes a key, and lets it settle.
    pub async fn delete(&self, key: &Key) {
        self.store.delete(key.clone()).await.unwrap();
        self.settle().await;
    }

    /// Puts many keys, in commits as large as the engine takes.
    pub async fn fill(&self, puts: impl IntoIterator<Item = (Key, Put)>) {
        let together = self.limits().commit_keys_max.min(500);
        let mut puts = puts.into_iter().peekable();
        while puts.peek().is_some() {
            let commit = puts
                .by_ref()
                .take(together)
                .fold(Commit::new(), |commit, (key, put)| commit.put(key, put));
            assert!(self.store.commit(commit).await.unwrap().is_applied());
        }
        self.settle().await;
    }

    /// The entry of a key.
    pub async fn get(&self, key: &Key) -> Option<Entry> {
        self.store.get(key).await.unwrap()
    }

    /// The entry of a key that must have one.
    pub async fn present(&self, key: &Key) -> Entry {
        let entry = self.get(key).await;
        entry.unwrap_or_else(|| panic!("{key} should be there"))
    }

    /// Sees that a key has no entry.
    pub async fn assert_absent(&self, key: &Key) {
        assert_eq!(self.get(key).await, None, "{key} should be absent");
    }

    /// All rows of a scan, page by page.
    pub async fn rows(&self, scan: Scan) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut scan = scan;
        loop {
            let page = self.store.scan(&scan).await.unwrap();
            assert!(
                page.rows.len() <= scan.limit,
                "a page of {} rows has {}",
                scan.limit,
                page.rows.len()
            );
            rows.extend(page.rows);
            let Some(next) = page.next else { break rows };
            scan.after = Some(next);
        }
    }

    /// All keys of a range; ascending also on engines that keep no order.
    pub async fn keys(&self, range: KeyRange) -> Vec<Key> {
        let rows = self.rows(Scan::new(range).keys_only()).await;
        let mut keys: Vec<Key> = rows.into_iter().map(|row| row.key).collect();
        if !self.is_ordered() {
            keys.sort();
        }
        keys
    }

    /// All keys of a range, descending.
    pub async fn keys_descending(&self, range: KeyRange) -> Vec<Key> {
        let scan = Scan::new(range).keys_only().order(Order::Descending);
        if !self.is_ordered() {
            let refused = self.store.scan(&scan).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
            let mut keys = self.keys(scan.range).await;
            keys.reverse();
            return keys;
        }
        let rows = self.rows(scan).await;
        rows.into_iter().map(|row| row.key).collect()
    }

    /// Everything in the store, and its revision.
    pub async fn contents(&self) -> (Vec<Row>, Option<Revision>) {
        let mut rows = self.rows(Scan::new(KeyRange::all())).await;
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        (rows, self.revision().await)
    }

    /// The revision of the last commit, on engines that keep a history.
    pub async fn revision(&self) -> Option<Revision> {
        self.store.stats().await.unwrap().revision
    }

    /// Tries a commit that must be refused, and sees that it changed nothing.
    pub async fn assert_refused(&self, commit: Commit, kind: ErrorKind) {
        let before = self.contents().await;
        match self.store.commit(commit).await {
            Err(error) => assert_eq!(error.kind(), kind, "{error}"),
            Ok(outcome) => panic!("should be refused as {kind:?}, but was {outcome:?}"),
        }
        self.settle().await;
        assert!(self.contents().await == before, "a refused commit changed something");
    }
}
