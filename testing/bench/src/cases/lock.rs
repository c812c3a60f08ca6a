//! Clients that each take and release a lock that nobody else wants.

use std::time::{Duration, Instant};

use keyward::locks::{LockPath, Locks, Mode, Options, Request};
use keyward_engine::{Json, Put, Store, SystemClock};
use keyward_key::Key;
use tokio::runtime::Runtime;

use crate::Result;
use crate::bench::{Bench, fill, inline};
use crate::measure::{Side, alternate};
use crate::records::TEN_THOUSAND;
use crate::report::{Goal, Row};

/// Taking and releasing a lock, against two durable commits of one small put each.
pub fn pair(bench: &mut Bench) -> Result<Vec<Row>> {
    let mut rows = vec![measured(bench, "lock_pair", 1, Some(Goal::AtLeast(0.6)))?];
    rows.push(measured(bench, "lock_pair16", 16, None)?);
    Ok(rows)
}

fn measured(bench: &mut Bench, case: &str, clients: usize, goal: Option<Goal>) -> Result<Row> {
    let store = bench.store()?;
    fill(&inline()?, &store, TEN_THOUSAND)?;
    let runtime = Runtime::new()?;
    let time = bench.settings.commit_time;
    let comparison = alternate(bench.settings.commit_rounds, |side, _| {
        rate(&runtime, time, clients, |client, deadline| match side {
            Side::Measured => tokio::spawn(locked_until(deadline, store.clone(), client)),
            Side::Reference => tokio::spawn(put_until(deadline, store.clone(), client)),
        })
    })?;
    Ok(Row {
        case: case.to_owned(),
        compares: format!("acquire and release / two commits, clients: {clients}"),
        comparison,
        unit: "pairs/s",
        goal,
    })
}

fn rate(
    runtime: &Runtime,
    time: Duration,
    clients: usize,
    start: impl Fn(usize, Instant) -> tokio::task::JoinHandle<Result<u64>>,
) -> Result<f64> {
    runtime.block_on(async {
        let began = Instant::now();
        let tasks: Vec<_> = (0..clients).map(|client| start(client, began + time)).collect();
        let mut pairs = 0;
        for task in tasks {
            pairs += task.await??;
        }
        Ok(pairs as f64 / began.elapsed().as_secs_f64())
    })
}

async fn locked_until(deadline: Instant, store: Store, client: usize) -> Result<u64> {
    let locks = Locks::new(store, SystemClock, Options::default())?;
    let root = locks.root(Key::from_segments(["page", &client.to_string()])?)?;
    let asked = [LockPath::new(["policies", "123"])?];
    let mut pairs = 0;
    while Instant::now() < deadline {
        let guard = root.acquire(&asked, Mode::Exclusive, &Request::default()).await?;
        guard.release().await?;
        pairs += 1;
    }
    Ok(pairs)
}

async fn put_until(deadline: Instant, store: Store, client: usize) -> Result<u64> {
    let key = Key::from_segments(["plain", &client.to_string()])?;
    let mut pairs = 0;
    while Instant::now() < deadline {
        store.put(key.clone(), Put::new(Json::from_integer(1))).await?;
        store.put(key.clone(), Put::new(Json::from_integer(2))).await?;
        pairs += 1;
    }
    Ok(pairs)
}
