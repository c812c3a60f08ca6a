//! What operations cost, in calls to the engine and rows read: it must not grow with the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Outcome, Page, Result, Scan, Stats, Store,
};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_queue::{Ended, Options, Queue, Worker, WorkerOptions};
use keyward_testkit::TestClock;
use tokio::sync::Notify;

use crate::fixture::{message, options};

/// An engine that counts what is asked of it.
#[derive(Clone)]
struct Counting {
    inner: Memory,
    calls: Arc<AtomicU64>,
    rows: Arc<AtomicU64>,
    scans: Arc<AtomicU64>,
    commits: Arc<AtomicU64>,
    /// Commits take turns to pass, one more than the last did, so that they end one by one.
    is_slow: bool,
}

impl Counting {
    fn new(clock: &TestClock, is_slow: bool) -> Self {
        let inner = Memory::with(keyward_memory::Options::default(), clock.clone());
        Self {
            inner,
            calls: Arc::default(),
            rows: Arc::default(),
            scans: Arc::default(),
            commits: Arc::default(),
            is_slow,
        }
    }

    fn count(&self, rows: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    fn take(&self) -> (u64, u64) {
        (self.calls.swap(0, Ordering::Relaxed), self.rows.swap(0, Ordering::Relaxed))
    }
}

impl Engine for Counting {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.count(keys.len());
        self.inner.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async {
            let page = self.inner.scan(scan).await?;
            self.scans.fetch_add(1, Ordering::Relaxed);
            self.count(page.rows.len());
            Ok(page)
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        self.count(commit.writes.len());
        let before = self.commits.fetch_add(1, Ordering::Relaxed);
        let turns = if self.is_slow { 20 + before % 40 } else { 0 };
        Box::pin(async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            self.inner.commit(commit).await
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

/// What one claim and one completion cost in a queue with so many rows, of which so many are held.
async fn cost(rows: usize, held: usize) -> [(u64, u64); 3] {
    let clock = TestClock::new();
    let engine = Counting::new(&clock, false);
    let queue = Queue::new(Store::new(engine.clone()), "q", clock, options()).unwrap();
    for _ in 0..rows / Queue::ENQUEUE_MAX {
        let batch = vec![message("1"); Queue::ENQUEUE_MAX];
        queue.enqueue_all(batch).await.unwrap();
    }
    let mut claimed = 0;
    while claimed < held {
        claimed += queue.claim(Queue::CLAIM_MAX).await.unwrap().attempts.len();
    }
    engine.take();
    let attempt = queue.claim(1).await.unwrap().attempts.pop().unwrap();
    let claim = engine.take();
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Accepted);
    let complete = engine.take();
    queue.enqueue(message("1")).await.unwrap();
    [claim, complete, engine.take()]
}

#[tokio::test]
async fn a_claim_a_completion_and_an_enqueuing_cost_the_same_in_a_queue_of_any_length() {
    let large = if keyward_testkit::deep() { 1_000_000 } else { 20_000 };
    let small = cost(1_000, 0).await;
    assert_eq!(cost(large, 0).await, small);
    let [claim, complete, enqueue] = small;
    // Two scans, one read of rows, one commit; a few rows of the head are read in vain.
    assert_eq!(claim, (4, 15));
    // The row, its entry, the claim; the row and its entry.
    assert_eq!((complete, enqueue), ((1, 3), (1, 2)));
    assert_eq!(cost(large, large / 2).await, cost(2_000, 1_000).await);
}

/// A thousand messages are ready, their handlers take no time, and their commits end one by one.
#[tokio::test]
async fn a_worker_claims_and_completes_many_messages_at_once() {
    const MESSAGES: u64 = 1_000;
    const SLOTS: u64 = 16;
    let clock = TestClock::new();
    let engine = Counting::new(&clock, true);
    let options = Options { lease: Duration::from_secs(600), ..options() };
    let queue = Queue::new(Store::new(engine.clone()), "q", clock, options).unwrap();
    queue.enqueue_all(vec![message("1"); MESSAGES as usize]).await.unwrap();
    engine.take();
    engine.commits.store(0, Ordering::Relaxed);
    let (left, all) = (Arc::new(AtomicU64::new(MESSAGES)), Arc::new(Notify::new()));
    let (counted, done) = (left.clone(), all.clone());
    let handler = move |_| {
        if counted.fetch_sub(1, Ordering::Relaxed) == 1 {
            done.notify_one();
        }
        async { Ok(None) }
    };
    let options = WorkerOptions { concurrency: SLOTS as usize, ..WorkerOptions::default() };
    let report = Worker::new(queue, options).run(handler, all.notified()).await.unwrap();
    assert_eq!(report.completed, MESSAGES);
    // A look reads far ahead, and what ends at the same time is completed together with a claim of as
    // many of what was seen.
    let looks = engine.scans.load(Ordering::Relaxed) / 2;
    let looks_max = MESSAGES / 64 + 4;
    assert!(looks <= looks_max, "{looks} looks");
    let commits = engine.commits.load(Ordering::Relaxed);
    assert!(commits <= MESSAGES.div_ceil(SLOTS) + looks_max, "{commits} commits");
    // Of each message its entry, its row, three writes each of a claim and a completion, and one more
    // where it was seen twice.
    let rows = engine.take().1;
    assert!(rows <= 10 * MESSAGES, "{rows} rows");
}
