//! Clients of a PostgreSQL server, each with one call after the other.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use keyward_engine::{Cursor, Json, Put, Scan, Store};

use super::read::{found, whole};
use crate::Result;
use crate::bench::{Bench, Settings};
use crate::measure::{Side, alternate};
use crate::records;
use crate::report::{Goal, Row, grouped};
use crate::served::Served;

const GOAL: Goal = Goal::AtLeast(0.6);
/// How many clients the goal is for.
const GOAL_CLIENTS: usize = 8;

/// What clients do.
#[derive(Debug, Clone, Copy)]
enum Call {
    Get,
    Commit,
    Page,
}

pub fn get(bench: &mut Bench) -> Result<Vec<Row>> {
    against_pgbench(bench, "pg_get", "gets/s", Call::Get)
}

pub fn commit(bench: &mut Bench) -> Result<Vec<Row>> {
    against_pgbench(bench, "pg_commit", "commits/s", Call::Commit)
}

pub fn scan100(bench: &mut Bench) -> Result<Vec<Row>> {
    against_pgbench(bench, "pg_scan100", "pages/s", Call::Page)
}

/// Measures with as many clients as the goal is for and, for information, with others.
fn against_pgbench(
    bench: &mut Bench,
    name: &str,
    unit: &'static str,
    call: Call,
) -> Result<Vec<Row>> {
    let served = bench.served()?;
    let script = bench.scratch();
    let pgbench = match call {
        Call::Get => served.gets(script)?,
        Call::Commit => served.commits(script)?,
        Call::Page => served.pages(script)?,
    };
    let caller = Caller::new(&served, call)?;
    let Settings { server_rounds, server_seconds, server_clients, records, .. } = bench.settings;
    let mut rows = Vec::new();
    for &clients in server_clients {
        let has_goal = clients == GOAL_CLIENTS;
        let comparison = alternate(server_rounds, |side, round| match side {
            Side::Measured => caller.rate(&served, clients, server_seconds, round),
            Side::Reference => pgbench.rate(clients, server_seconds, round),
        })?;
        rows.push(Row {
            case: if has_goal { name.to_owned() } else { format!("{name}_clients{clients}") },
            compares: format!(
                "Store / pgbench, clients: {clients}, {} records",
                grouped(records as f64)
            ),
            comparison,
            unit,
            goal: has_goal.then_some(GOAL),
        });
    }
    Ok(rows)
}

/// What each client has.
#[derive(Clone)]
struct Caller {
    call: Call,
    store: Store,
    choices: u64,
    /// Parsing is not what is compared.
    values: Arc<[Json]>,
}

impl Caller {
    fn new(served: &Served, call: Call) -> Result<Self> {
        let values = (0..1_000).map(records::value).collect::<Result<_>>()?;
        Ok(Self { call, store: served.store.clone(), choices: served.choices, values })
    }

    /// How many calls some clients get answered in a second, in a run of so many seconds.
    fn rate(&self, served: &Served, clients: usize, seconds: u64, round: usize) -> Result<f64> {
        let start = Instant::now();
        let deadline = start + Duration::from_secs(seconds);
        served.database.runtime.block_on(async {
            let tasks: Vec<_> = (0..clients)
                .map(|client| {
                    let seed = (round * clients + client) as u64;
                    tokio::spawn(self.clone().call_until(deadline, seed))
                })
                .collect();
            let mut calls = 0;
            for task in tasks {
                calls += task.await??;
            }
            Ok(calls as f64 / start.elapsed().as_secs_f64())
        })
    }

    async fn call_until(self, deadline: Instant, seed: u64) -> Result<u64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let range = records::range();
        let mut calls = 0;
        while Instant::now() < deadline {
            let key = records::key(random.u64(..self.choices))?;
            match self.call {
                Call::Get => {
                    let entry = self.store.get(&key).await?;
                    found(entry.is_some())?;
                    black_box(entry);
                }
                Call::Commit => {
                    let value = self.values[random.usize(..self.values.len())].clone();
                    self.store.put(key, Put::new(value)).await?;
                }
                Call::Page => {
                    let after = Some(Cursor::after_key(&key));
                    let scan = Scan::new(range.clone()).limit(Served::PAGE_ROWS).after(after);
                    let page = self.store.scan(&scan).await?;
                    whole(page.rows.len())?;
                    black_box(page);
                }
            }
            calls += 1;
        }
        Ok(calls)
    }
}
