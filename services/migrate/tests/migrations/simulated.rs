//! Processes on one memory engine, each late by chance, in simulated time: a seed is a run.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::BoxFuture;
use keyward_engine::{Engine, Json, Store, Tier};
use keyward_key::Key;
use keyward_memory::{Memory, Options};
use keyward_migrate::{Migrator, Pause};
use keyward_records::{Records, Result, Space, Written};
use keyward_schema::Schema;
use keyward_testkit::{Faults, FaultyEngine, Rates, Replay, Test, VirtualClock, seeds};
use tokio::runtime::Builder;

const USUAL_SEEDS: u64 = 20;
const DEEP_SEEDS: u64 = 1_000;

/// A store, and the time in it.
#[derive(Clone)]
pub struct World {
    memory: Memory,
    pub clock: VirtualClock,
}

impl World {
    /// The records as a process sees them whose calls are late by chance.
    pub fn process(&self, schema: &str, rng: &mut Rng) -> Records {
        let rates = Rates {
            fail: 0.0,
            unanswered: 0.0,
            delay: 0.8,
            delay_max: Duration::from_millis(10),
            crash: 0.0,
            ..Rates::default()
        };
        let faults = Faults::seeded(rng.u64(..), rates);
        self.open(Arc::new(FaultyEngine::new(Arc::new(self.memory.clone()), faults)), schema)
    }

    /// The records as they are.
    pub fn records(&self, schema: &str) -> Records {
        self.open(Arc::new(self.memory.clone()), schema)
    }

    fn open(&self, engine: Arc<dyn Engine>, schema: &str) -> Records {
        let schema = Schema::parse(schema, "schema.toml").unwrap_or_else(|error| panic!("{error}"));
        Records::open(Store::from_arc(engine), schema.spaces, self.clock).unwrap()
    }
}

/// Waits in the simulation's time.
pub struct Sleeping;

impl Pause for Sleeping {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

pub fn migrator(records: &Records) -> Migrator {
    Migrator::new(records.clone(), Sleeping).page(3)
}

/// Runs a scenario by many seeds, and gives what each came to.
pub fn simulate<T>(
    path: &'static str,
    tier: Tier,
    scenario: impl AsyncFn(World, Rng) -> T,
) -> Vec<T> {
    let mut results = Vec::new();
    for seed in seeds(USUAL_SEEDS, DEEP_SEEDS) {
        let _replay = Replay::new(Test { package: "keyward-migrate", path }, seed);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        results.push(runtime.unwrap().block_on(async {
            let clock = VirtualClock::new();
            let memory = Memory::with(Options::tier(tier), clock);
            scenario(World { memory, clock }, Rng::with_seed(seed)).await
        }));
    }
    results
}

/// Adds one to the field `n` of a record, if there is one.
pub async fn count_up(space: &Space, at: &Key) -> Result<bool> {
    let written = space.update(at, |current| {
        let Some(current) = current else { return Ok(None) };
        let mut value: serde_json::Value = serde_json::from_str(current.value.as_str()).unwrap();
        value["n"] = (value["n"].as_i64().unwrap() + 1).into();
        Ok(Some(Json::from_value(&value).unwrap()))
    });
    Ok(matches!(written.await?, Written::Applied { .. }))
}
