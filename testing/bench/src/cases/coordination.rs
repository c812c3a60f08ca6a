//! Locks and queues against the durable commits that they are made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use keyward::locks::{LockPath, Locks, Mode, Options as LockOptions, Request};
use keyward::queue::{Message, Options as QueueOptions, Queue, Worker, WorkerOptions};
use keyward_engine::{Json, Put, Store, SystemClock};
use keyward_key::Key;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use crate::Result;
use crate::bench::Bench;
use crate::measure::{Side, alternate, rate};
use crate::report::{Goal, Row};

const CLIENTS: u64 = 16;
/// As many messages as this many clients commit in the time of a slice, or so.
const MESSAGES_PER_MS: u64 = 5;

/// Each client has a root of its own, takes a lock there and releases it, again and again.
pub fn lock_pair(bench: &mut Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (clients, case, goal) in
        [(1, "lock_pair", Some(Goal::AtLeast(0.6))), (CLIENTS, "lock_pair16", None)]
    {
        let (locked, raw) = (bench.store()?, bench.store()?);
        let locks = Locks::new(locked, SystemClock, LockOptions::default())?;
        let runtime = Runtime::new()?;
        let time = bench.settings.commit_time;
        let comparison = alternate(bench.settings.commit_rounds, |side, _| match side {
            Side::Measured => {
                let locks = locks.clone();
                runtime.block_on(rate(clients, time, 0, move |n| {
                    let locks = locks.clone();
                    async move { lock_once(&locks, n / CLIENT_NUMBERS).await }
                }))
            }
            Side::Reference => {
                let store = raw.clone();
                runtime.block_on(rate(clients, time, 0, move |n| {
                    let store = store.clone();
                    async move { commit_twice(&store, n / CLIENT_NUMBERS).await }
                }))
            }
        })?;
        rows.push(Row {
            case: case.to_owned(),
            compares: format!("acquire and release / two commits of one key, clients: {clients}"),
            comparison,
            unit: "pairs/s",
            goal,
        });
    }
    Ok(rows)
}

/// How far the numbers of two clients of [`rate`] are apart.
const CLIENT_NUMBERS: u64 = 10_000;

async fn lock_once(locks: &Locks, client: u64) -> Result<()> {
    let root = locks.root(Key::from_segments(["root", &client.to_string()])?)?;
    let guard = root.acquire(&[LockPath::root()], Mode::Exclusive, &Request::default()).await?;
    guard.release().await?;
    Ok(())
}

async fn commit_twice(store: &Store, client: u64) -> Result<()> {
    let key = Key::from_segments(["root", &client.to_string()])?;
    for n in 0..2 {
        store.put(key.clone(), Put::new(Json::from_integer(n))).await?;
    }
    Ok(())
}

/// Clients enqueue messages, then workers claim and complete them all.
pub fn queue(bench: &mut Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (case, workers, each, goal) in
        [("queue", 1, 16, Some(Goal::AtLeast(0.25))), ("queue_apart", 16, 1, None)]
    {
        rows.push(queue_row(bench, case, (workers, each), goal)?);
    }
    Ok(rows)
}

fn queue_row(
    bench: &mut Bench,
    case: &str,
    (workers, slots): (usize, usize),
    goal: Option<Goal>,
) -> Result<Row> {
    let (queued, raw) = (bench.store()?, bench.store()?);
    let queue = Queue::new(queued, "bench", SystemClock, QueueOptions::default())?;
    let runtime = Runtime::new()?;
    let time = bench.settings.commit_time;
    let messages = u64::try_from(time.as_millis())? * MESSAGES_PER_MS;
    let comparison = alternate(bench.settings.commit_rounds, |side, _| {
        let start = Instant::now();
        match side {
            Side::Measured => runtime.block_on(async {
                enqueue(&queue, messages).await?;
                work(&queue, messages, workers, slots).await
            })?,
            Side::Reference => {
                let store = raw.clone();
                let one = move |n: u64| {
                    let store = store.clone();
                    async move {
                        let key = Key::from_segments(["message", &n.to_string()])?;
                        store.put(key, Put::new(Json::from_stored("{}"))).await?;
                        Ok(())
                    }
                };
                runtime.block_on(each(messages, one))?;
            }
        }
        Ok(messages as f64 / start.elapsed().as_secs_f64())
    })?;
    Ok(Row {
        case: case.to_owned(),
        compares: format!(
            "messages from enqueued to done / commits, {workers} workers of {slots} handlers"
        ),
        comparison,
        unit: "messages/s",
        goal,
    })
}

async fn enqueue(queue: &Queue, messages: u64) -> Result<()> {
    let queue = queue.clone();
    each(messages, move |_| {
        let queue = queue.clone();
        async move {
            queue.enqueue(Message::new(Json::from_stored("{}"))).await?;
            Ok(())
        }
    })
    .await
}

async fn work(queue: &Queue, messages: u64, workers: usize, slots: usize) -> Result<()> {
    let (left, all_done) = (Arc::new(AtomicU64::new(messages)), Arc::new(Semaphore::new(0)));
    let mut running = Vec::new();
    for _ in 0..workers {
        let (left, done) = (left.clone(), all_done.clone());
        let handler = move |_| {
            let (left, done) = (left.clone(), done.clone());
            async move {
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    done.add_permits(workers);
                }
                Ok(None)
            }
        };
        let all_done = all_done.clone();
        let stop = async move {
            // The semaphore is never closed.
            if let Ok(permit) = all_done.acquire().await {
                permit.forget();
            }
        };
        let options = WorkerOptions { concurrency: slots, ..WorkerOptions::default() };
        running.push(tokio::spawn(Worker::new(queue.clone(), options).run(handler, stop)));
    }
    let mut completed = 0;
    for worker in running {
        completed += worker.await??.completed;
    }
    if completed == messages {
        Ok(())
    } else {
        Err(format!("of {messages} messages {completed} were completed").into())
    }
}

/// Does something so many times, by some clients at once.
async fn each<F: Future<Output = Result<()>> + Send + 'static>(
    count: u64,
    act: impl Fn(u64) -> F + Send + Sync + 'static,
) -> Result<()> {
    let (act, next) = (Arc::new(act), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (act, next) = (act.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return Ok::<(), Box<dyn std::error::Error + Send + Sync>>(());
                    }
                    act(n).await?;
                }
            })
        })
        .collect();
    for client in clients {
        client.await??;
    }
    Ok(())
}
