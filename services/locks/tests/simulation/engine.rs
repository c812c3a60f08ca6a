//! An engine that looks at the catalog after every commit.

use std::sync::{Arc, Mutex};

use futures_util::stream;
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Change, ChangeKind, Commit, Engine, Entry, Event, Outcome,
    Page, Result, Revision, Scan, Stats, Tier,
};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_locks::{LockPath, Mode};
use keyward_memory::{Memory, Options};
use keyward_testkit::VirtualClock;
use serde::Deserialize;
use tokio::sync::mpsc;

pub fn root_key() -> Key {
    Key::parse("page:7").unwrap()
}

#[derive(Clone)]
pub struct Checked {
    memory: Memory,
    tier: Tier,
    seen: Arc<Mutex<Seen>>,
    watchers: Arc<Mutex<Vec<Watcher>>>,
}

/// Whom to tell what. In one order, so that a run by a seed is the same every time.
struct Watcher {
    range: KeyRange,
    tell: mpsc::UnboundedSender<Event>,
}

#[derive(Default)]
struct Seen {
    next_token: u64,
    granted: u64,
}

#[derive(Deserialize)]
struct Catalog {
    next_token: u64,
    holders: Vec<Claim>,
    waiters: Vec<Claim>,
}

#[derive(Deserialize)]
struct Claim {
    token: u64,
    id: String,
    owner: String,
    paths: Vec<LockPath>,
    mode: Mode,
}

impl Claim {
    fn excludes(&self, other: &Self) -> bool {
        self.owner != other.owner
            && self.mode.excludes(other.mode)
            && self.paths.iter().any(|path| other.paths.iter().any(|other| path.overlaps(other)))
    }
}

impl Checked {
    pub fn new(tier: Tier, clock: VirtualClock) -> Self {
        let memory = Memory::with(Options::tier(tier), clock);
        Self { memory, tier, seen: Arc::default(), watchers: Arc::default() }
    }

    /// What a key holds, without faults.
    pub fn peek(&self, key: &Key) -> Option<Entry> {
        now(self.memory.get(key)).unwrap()
    }

    fn tell(&self, keys: &[Key]) {
        self.watchers.lock().unwrap().retain(|watcher| {
            let changes: Vec<Change> = keys
                .iter()
                .filter(|key| watcher.range.contains(key))
                .map(|key| Change { key: key.clone(), kind: ChangeKind::Put })
                .collect();
            if changes.is_empty() {
                return !watcher.tell.is_closed();
            }
            watcher.tell.send(Event::Changed { revision: Revision(0), changes }).is_ok()
        });
    }

    /// Never two holders that exclude each other, tokens that only rise, a fence for each holder.
    fn check(&self) {
        let Some(entry) = self.peek(&root_key()) else { return };
        let catalog: Catalog = serde_json::from_slice(entry.value.as_bytes()).unwrap();
        let mut seen = self.seen.lock().unwrap();
        assert!(catalog.next_token >= seen.next_token, "tokens went back");
        seen.next_token = catalog.next_token;
        for (at, holder) in catalog.holders.iter().enumerate() {
            assert!(holder.token < catalog.next_token);
            for other in &catalog.holders[..at] {
                assert!(!holder.excludes(other), "two holders: {entry:?}");
                assert_ne!(holder.id, other.id, "{entry:?}");
            }
        }
        let newest = catalog.holders.iter().map(|holder| holder.token).max();
        seen.granted = seen.granted.max(newest.unwrap_or_default());
        assert!(catalog.waiters.windows(2).all(|pair| pair[0].token < pair[1].token), "{entry:?}");
        if self.tier == Tier::Atomic {
            let scan = Scan::new(KeyRange::under(&Prefix::parse("lock:page%3A7").unwrap()));
            let rows = now(self.memory.scan(&scan.limit(10_000))).unwrap().rows;
            let fences: Vec<u64> = rows
                .iter()
                .filter(|row| row.key.depth() == 3)
                .map(|row| row.key.segments().nth(2).unwrap().parse().unwrap())
                .collect();
            let mut holders: Vec<u64> = catalog.holders.iter().map(|holder| holder.token).collect();
            holders.sort_unstable();
            assert_eq!(fences, holders, "fences and holders differ");
        }
    }
}

/// The memory engine answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("the memory engine waits"),
    }
}

impl Engine for Checked {
    fn capabilities(&self) -> &Capabilities {
        self.memory.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.memory.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.memory.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            let keys: Vec<Key> = commit.writes.iter().map(|write| write.key().clone()).collect();
            let outcome = self.memory.commit(commit).await?;
            self.check();
            if outcome.is_applied() {
                self.tell(&keys);
            }
            Ok(outcome)
        })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        assert_eq!(since, None);
        let (tell, told) = mpsc::unbounded_channel();
        let _ = tell.send(Event::Reached(Revision(0)));
        self.watchers.lock().unwrap().push(Watcher { range, tell });
        Box::pin(stream::unfold(told, async |mut told| Some((Ok(told.recv().await?), told))))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.memory.stats()
    }
}
