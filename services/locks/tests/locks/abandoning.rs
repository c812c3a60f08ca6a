//! Requests that are dropped while a commit of theirs is on its way to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, Engine, Entry, Event, Outcome, Page, Result,
    Revision, Scan, Stats, Store, Tier,
};
use keyward_key::{Key, KeyRange};
use keyward_locks::{Error, Locks, Mode, Options, Request};
use keyward_memory::Memory;
use keyward_testkit::VirtualClock;
use tokio::sync::{Notify, oneshot};

use crate::fixture::{key, number, page, path, take, try_take};

/// An engine whose commits go on when nobody waits for them any more, as those of a database do. One
/// of them can be held on its way.
#[derive(Clone)]
struct Queued {
    memory: Memory,
    holds_next: Arc<AtomicBool>,
    arrived: Arc<Notify>,
    let_on: Arc<Notify>,
    landed: Arc<Notify>,
}

impl Queued {
    fn new(tier: Tier) -> Self {
        let memory = Memory::with(keyward_memory::Options::tier(tier), VirtualClock::new());
        Self {
            memory,
            holds_next: Arc::default(),
            arrived: Arc::default(),
            let_on: Arc::default(),
            landed: Arc::default(),
        }
    }

    fn locks(&self, seed: u64) -> Locks {
        let options = Options { seed: Some(seed), ..Options::default() };
        Locks::new(Store::new(self.clone()), VirtualClock::new(), options).unwrap()
    }

    fn hold_the_next_commit(&self) {
        self.holds_next.store(true, Ordering::SeqCst);
    }
}

impl Engine for Queued {
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
        let engine = self.clone();
        let (answer, answered) = oneshot::channel();
        let is_held = self.holds_next.swap(false, Ordering::SeqCst);
        tokio::spawn(async move {
            if is_held {
                engine.arrived.notify_one();
                engine.let_on.notified().await;
            }
            let outcome = engine.memory.commit(commit).await;
            if is_held {
                engine.landed.notify_one();
            }
            // Whoever asked may be gone.
            let _ = answer.send(outcome);
        });
        Box::pin(async { answered.await.unwrap() })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        self.memory.watch(range, since)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.memory.stats()
    }
}

/// Drops a request whose commit is under way, lets the commit land late, and looks what is left.
async fn dropped_with_a_commit_under_way(tier: Tier, is_contended: bool) {
    let engine = Queued::new(tier);
    let (held_by, dropped_by) = (engine.locks(1), engine.locks(2));
    let other = page(&held_by);
    let held = if is_contended { Some(take(&other, "a").await) } else { None };
    engine.hold_the_next_commit();
    let root = page(&dropped_by);
    let asking = tokio::spawn(async move {
        let request = Request::default().wait_max(Duration::from_secs(600));
        root.acquire(&[path("a")], Mode::Exclusive, &request).await.map(drop)
    });
    engine.arrived.notified().await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    // The request has been taken back as far as it could be; only then its commit reaches the store.
    dropped_by.settled().await;
    engine.let_on.notify_one();
    engine.landed.notified().await;
    if let Some(held) = held {
        held.release().await.unwrap();
    }
    let left = other.list().await.unwrap();
    assert!(left.holders.is_empty() && left.waiters.is_empty(), "{tier}: {left:?}");
    let next = try_take(&other, "a", Mode::Exclusive).await;
    assert!(next.is_some(), "{tier}: nobody holds it");
}

#[tokio::test(start_paused = true)]
async fn a_request_dropped_while_its_grant_is_under_way_leaves_no_lock() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        dropped_with_a_commit_under_way(tier, false).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_dropped_while_it_joins_the_line_leaves_no_waiter() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        dropped_with_a_commit_under_way(tier, true).await;
    }
}

/// Whoever withdraws from a catalog that was deleted writes a new one, which knows nothing of those who held locks
/// by the old one. Their fences go before it is written.
#[tokio::test(start_paused = true)]
async fn a_request_dropped_after_its_catalog_was_lost_revokes_what_that_had_granted() {
    let engine = Queued::new(Tier::Atomic);
    let (held_by, dropped_by) = (engine.locks(1), engine.locks(2));
    let other = page(&held_by);
    let stale = take(&other, "a").await;
    engine.hold_the_next_commit();
    let root = page(&dropped_by);
    let asking = tokio::spawn(async move {
        let request = Request::default().wait_max(Duration::from_secs(600));
        root.acquire(&[path("b")], Mode::Exclusive, &request).await.map(drop)
    });
    engine.arrived.notified().await;
    Store::new(engine.memory.clone()).delete(other.key().clone()).await.unwrap();
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    dropped_by.settled().await;
    engine.let_on.notify_one();
    engine.landed.notified().await;
    // At once, and not only when somebody else gets the lock.
    let refused = stale.commit(Commit::new().put(key("k"), number(1))).await.unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    let next = try_take(&other, "a", Mode::Exclusive).await.expect("nobody holds it");
    assert!(next.token() > stale.token());
    assert!(next.commit(Commit::new().put(key("k"), number(2))).await.unwrap().is_applied());
    next.release().await.unwrap();
    let left = other.list().await.unwrap();
    assert!(left.holders.is_empty() && left.waiters.is_empty(), "{left:?}");
}
