//! Clients that each commit one put after the other and wait until it is on disk.

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
const MANY: usize = 64;

pub fn against_log(bench: &mut Bench, clients: usize, goal: Option<Goal>) -> Result<Vec<Row>> {
    let store = filled_store(bench)?;
    let log = AppendLog::create(&bench.scratch())?;
    let commits = Commits::new(bench)?;
    let comparison = alternate(bench.settings.commit_rounds, |side, round| match side {
        Side::Measured => commits.rate(&store, clients, round),
        Side::Reference => commits.rate(&log, clients, round),
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
    let commits = Commits::new(bench)?;
    let comparison = alternate(bench.settings.commit_rounds, |side, round| match side {
        Side::Measured => commits.rate(&store, MANY, round),
        Side::Reference => commits.rate(&store, 1, round),
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

/// Where a client can make a record durable.
trait Durable: Clone + Send + 'static {
    /// Returns when the record is on disk.
    fn write(&self, record: Record) -> impl Future<Output = Result<()>> + Send;
}

impl Durable for Store {
    async fn write(&self, record: Record) -> Result<()> {
        self.put(record.key, Put::new(record.value)).await?;
        Ok(())
    }
}

impl Durable for AppendLog {
    async fn write(&self, record: Record) -> Result<()> {
        self.append(&record).await
    }
}

struct Commits {
    runtime: Runtime,
    time: Duration,
    /// Values are made beforehand: parsing is the same work for both sides and not what is
    /// compared.
    values: Arc<[Json]>,
}

impl Commits {
    fn new(bench: &Bench) -> Result<Self> {
        Ok(Self {
            runtime: Runtime::new()?,
            time: bench.settings.commit_time,
            values: (0..1_000).map(records::value).collect::<Result<_>>()?,
        })
    }

    /// How many commits some clients get done in a second. Each writes to keys chosen at random,
    /// so that their commits share no page of a tree on purpose.
    fn rate(&self, target: &impl Durable, clients: usize, round: usize) -> Result<f64> {
        let start = Instant::now();
        let deadline = start + self.time;
        self.runtime.block_on(async {
            let tasks: Vec<_> = (0..clients)
                .map(|client| {
                    let seed = (round * MANY + client) as u64;
                    let (target, values) = (target.clone(), self.values.clone());
                    tokio::spawn(commit_until(deadline, target, values, seed))
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
    target: impl Durable,
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
