//! Clients that each commit one put after the other and wait until it is on disk.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use keyward_engine::{Json, Put, Store};
use tokio::runtime::Runtime;

use crate::Result;
use crate::bench::{Bench, fill, inline};
use crate::measure::{Side, alternate};
use crate::records::{self, MILLION, Record, TEN_THOUSAND};
use crate::reference::AppendLog;
use crate::report::{Goal, Row, grouped};

pub const LOG_GOAL: Goal = Goal::AtLeast(0.25);
pub(super) const MANY: usize = 64;

pub fn against_log(bench: &mut Bench, clients: usize, goal: Option<Goal>) -> Result<Vec<Row>> {
    let store = filled_store(bench)?;
    let log = AppendLog::create(&bench.scratch())?;
    let runtime = Runtime::new()?;
    let commits = Commits::new(bench, &runtime)?;
    let comparison = alternate(bench.settings.commit_rounds, |side, _| match side {
        Side::Measured => commits.rate(vec![store.clone(); clients]),
        Side::Reference => commits.rate(vec![log.clone(); clients]),
    })?;
    Ok(vec![Row {
        case: format!("commit{clients}_vs_log"),
        compares: format!("Store / append log, clients: {clients}"),
        comparison,
        unit: "commits/s",
        goal,
    }])
}

pub fn many_against_one(bench: &mut Bench) -> Result<Vec<Row>> {
    let store = filled_store(bench)?;
    let runtime = Runtime::new()?;
    let commits = Commits::new(bench, &runtime)?;
    let comparison = alternate(bench.settings.commit_rounds, |side, _| match side {
        Side::Measured => commits.rate(vec![store.clone(); MANY]),
        Side::Reference => commits.rate(vec![store.clone()]),
    })?;
    Ok(vec![Row {
        case: "commit64_vs_commit1".to_owned(),
        compares: format!("Store, clients: {MANY} / 1"),
        comparison,
        unit: "commits/s",
        goal: Some(Goal::AtLeast(8.0)),
    }])
}

/// A store that is not empty, so that commits land on different pages.
fn filled_store(bench: &mut Bench) -> Result<Store> {
    bench.say(&format!("  loading {} records", grouped(TEN_THOUSAND as f64)))?;
    let store = bench.store()?;
    fill(&inline()?, &store, TEN_THOUSAND)?;
    Ok(store)
}

/// Where one client makes records durable.
pub(super) trait Durable: Send + 'static {
    /// Returns when the record is on disk.
    fn write(&mut self, record: Record) -> impl Future<Output = Result<()>> + Send;
}

impl Durable for Store {
    async fn write(&mut self, record: Record) -> Result<()> {
        self.put(record.key, Put::new(record.value)).await?;
        Ok(())
    }
}

impl Durable for AppendLog {
    async fn write(&mut self, record: Record) -> Result<()> {
        self.append(&record).await
    }
}

/// Clients that each commit one record after the other.
pub(super) struct Commits<'r> {
    runtime: &'r Runtime,
    time: Duration,
    /// Values are made beforehand: parsing is the same work for both sides and not what is
    /// compared.
    values: Arc<[Json]>,
    /// How many clients there were: each has keys of its own, so that none finds those of another side
    /// or round there, which would be another commit.
    clients: Cell<u64>,
}

impl<'r> Commits<'r> {
    pub fn new(bench: &Bench, runtime: &'r Runtime) -> Result<Self> {
        let time = bench.settings.commit_time;
        let values = (0..1_000).map(records::value).collect::<Result<_>>()?;
        Ok(Self { runtime, time, values, clients: Cell::new(0) })
    }

    /// How many commits the clients of these targets get done in a second. Each writes to keys chosen
    /// at random, so that their commits share no page of a tree on purpose.
    pub fn rate<D: Durable>(&self, targets: Vec<D>) -> Result<f64> {
        let start = Instant::now();
        let deadline = start + self.time;
        self.runtime.block_on(async {
            let tasks: Vec<_> = targets
                .into_iter()
                .map(|target| {
                    let seed = self.clients.replace(self.clients.get() + 1);
                    tokio::spawn(commit_until(deadline, target, self.values.clone(), seed))
                })
                .collect();
            let mut commits = 0;
            for task in tasks {
                commits += task.await??;
            }
            Ok(commits as f64 / start.elapsed().as_secs_f64())
        })
    }
}

async fn commit_until(
    deadline: Instant,
    mut target: impl Durable,
    values: Arc<[Json]>,
    seed: u64,
) -> Result<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut commits = 0;
    while Instant::now() < deadline {
        let key = records::key(random.u64(..MILLION))?;
        let value = values[random.usize(..values.len())].clone();
        target.write(Record { key, value }).await?;
        commits += 1;
    }
    Ok(commits)
}
