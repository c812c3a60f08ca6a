//! Clients of the databases that people already have: an adapter against a raw client of the same
//! database that sends the same requests.

mod cloudflare_kv;
mod couchdb;
mod dynamodb;
mod firestore;
mod forge_kvs;
mod http;
mod loaded;

pub use loaded::Loaded;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::read::found;
use crate::Result;
use crate::bench::{Bench, Settings};
use crate::measure::{Side, alternate};
use crate::report::{Goal, Row, grouped};
use crate::server::Server;

use loaded::Client;

const GOAL: Goal = Goal::AtLeast(0.6);
const CLIENTS: usize = 8;

/// What clients do.
#[derive(Debug, Clone, Copy)]
enum Call {
    Get,
    Commit,
}

pub fn get(bench: &mut Bench, server: Server) -> Result<Vec<Row>> {
    against_raw_client(bench, server, Call::Get)
}

pub fn commit(bench: &mut Bench, server: Server) -> Result<Vec<Row>> {
    against_raw_client(bench, server, Call::Commit)
}

fn against_raw_client(bench: &mut Bench, server: Server, call: Call) -> Result<Vec<Row>> {
    let loaded = bench.loaded(server)?;
    let Settings { server_rounds, server_seconds, .. } = bench.settings;
    let comparison =
        alternate(server_rounds, |side, round| rate(&loaded, side, call, server_seconds, round))?;
    let (ending, unit) = match call {
        Call::Get => ("get", "gets/s"),
        Call::Commit => ("commit", "commits/s"),
    };
    Ok(vec![Row {
        case: format!("{}_{ending}", server.name()),
        compares: format!(
            "Store / raw client, clients: {CLIENTS}, {} records",
            grouped(Loaded::RECORDS as f64)
        ),
        comparison,
        unit,
        goal: Some(GOAL),
    }])
}

/// How many calls the clients of a side get answered in a second, in a run of so many seconds.
fn rate(loaded: &Loaded, side: Side, call: Call, seconds: u64, round: usize) -> Result<f64> {
    let start = Instant::now();
    let deadline = start + Duration::from_secs(seconds);
    loaded.runtime.block_on(async {
        let tasks: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let seed = (round * CLIENTS + number) as u64;
                tokio::spawn(call_until(deadline, loaded.client(side), call, number, seed))
            })
            .collect();
        let mut calls = 0;
        for task in tasks {
            calls += task.await??;
        }
        Ok(calls as f64 / start.elapsed().as_secs_f64())
    })
}

/// Gets any records, or puts those that no other client puts: databases refuse writes that meet on
/// one record, and whoever tries again sends other requests.
async fn call_until(
    deadline: Instant,
    client: Arc<dyn Client>,
    call: Call,
    number: usize,
    seed: u64,
) -> Result<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut calls = 0;
    while Instant::now() < deadline {
        match call {
            Call::Get => {
                let value = client.get(random.usize(..Loaded::RECORDS)).await?;
                found(value.is_some())?;
                black_box(value);
            }
            Call::Commit => {
                let own = random.usize(..Loaded::RECORDS / CLIENTS) * CLIENTS + number;
                client.put(own, random.usize(..Loaded::RECORDS)).await?;
            }
        }
        calls += 1;
    }
    Ok(calls)
}
