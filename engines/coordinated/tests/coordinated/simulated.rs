//! Processes that crash, lose answers and send late, on a clock of the simulation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use keyward_coordinated::{Coordinated, Options};
use keyward_engine::{Commit, Engine, ErrorKind, Expect, Json, Put, Store, Tier};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_testkit::{Faults, FaultyEngine, Rates, Replay, Test, VirtualClock, seeds};

use crate::setup::{contents, key};

const PROCESSES: u64 = 3;
const OPERATIONS: usize = 30;
/// Less than the grace of the store, as its options ask for.
const LATE_MAX: Duration = Duration::from_secs(90);
const GRACE: Duration = Duration::from_secs(300);

/// What is known of each counter.
#[derive(Debug, Default, Clone, Copy)]
struct Truth {
    /// The highest value that was acknowledged or read: no later read is below it.
    seen: i64,
    acknowledged: i64,
    unknown: i64,
}

struct World {
    clock: VirtualClock,
    values: FaultyEngine,
    coordinator: FaultyEngine,
    truths: Mutex<[Truth; 2]>,
}

fn counter(n: usize) -> Key {
    key(&format!("counter:{n}"))
}

impl World {
    fn new(seed: u64) -> Self {
        let clock = VirtualClock::new();
        let memory = |tier| Arc::new(Memory::with(keyward_memory::Options::tier(tier), clock));
        let some = Rates { crash: 0.01, ..Rates::some() };
        let late = Rates { late: 0.08, late_max: LATE_MAX, ..some };
        Self {
            values: FaultyEngine::new(memory(Tier::Advisory), Faults::seeded(seed, late)),
            coordinator: FaultyEngine::new(memory(Tier::Atomic), Faults::seeded(!seed, some)),
            truths: Mutex::default(),
            clock,
        }
    }

    async fn open(
        &self,
        values: Arc<dyn Engine>,
        coordinator: Arc<dyn Engine>,
    ) -> keyward_engine::Result<Coordinated> {
        let options = Options { grace: GRACE, ..Options::default() };
        Coordinated::open(values, coordinator, options, self.clock).await
    }

    /// Everything that a seed says.
    async fn run(seed: u64) -> Self {
        let world = Self::new(seed);
        let processes = (0..PROCESSES).map(|n| world.process(seed * PROCESSES + n));
        futures_util::future::join_all(processes).await;
        world.verdict().await;
        world
    }

    /// One process after the other, each until it dies.
    async fn process(&self, seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let mut left = OPERATIONS;
        while left > 0 {
            let (values, coordinator) = (self.values.revive(), self.coordinator.revive());
            let handles: (Arc<dyn Engine>, Arc<dyn Engine>) =
                (Arc::new(values.clone()), Arc::new(coordinator.clone()));
            let Ok(engine) = self.open(handles.0, handles.1).await else {
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            let engine = Arc::new(engine);
            let store = Store::from_arc(engine.clone());
            while left > 0 && !values.is_crashed() && !coordinator.is_crashed() {
                left -= 1;
                match rng.u8(..10) {
                    0 => drop(engine.settle().await),
                    1..4 => self.read(&store, rng.usize(..2)).await,
                    _ => self.increment(&store, rng.usize(..2)).await,
                }
                tokio::time::sleep(Duration::from_secs(rng.u64(..120))).await;
            }
        }
    }

    async fn read(&self, store: &Store, n: usize) {
        let before = self.truths.lock().unwrap()[n].seen;
        if let Ok(entry) = store.get(&counter(n)).await {
            let found = entry.map_or(0, |entry| entry.value.as_integer().unwrap());
            assert!(found >= before, "counter {n} was {before}, and is {found}");
            let mut truths = self.truths.lock().unwrap();
            truths[n].seen = truths[n].seen.max(found);
        }
    }

    async fn increment(&self, store: &Store, n: usize) {
        let Ok(entry) = store.get(&counter(n)).await else { return };
        let (expect, next) = match &entry {
            None => (Expect::Absent, 1),
            Some(entry) => {
                (Expect::Version(entry.version.clone()), entry.value.as_integer().unwrap() + 1)
            }
        };
        let put = Put::new(Json::from_integer(next));
        let swap = Commit::new().check(counter(n), expect).put(counter(n), put);
        let outcome = store.commit(swap).await;
        let mut truths = self.truths.lock().unwrap();
        let truth = &mut truths[n];
        match outcome {
            Ok(outcome) if outcome.is_applied() => {
                truth.acknowledged += 1;
                truth.seen = truth.seen.max(next);
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => truth.unknown += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }

    /// Without faults, everything comes to rest as it was acknowledged.
    async fn verdict(&self) {
        tokio::time::sleep(LATE_MAX).await;
        let engine = self.open(self.values.inner(), self.coordinator.inner()).await.unwrap();
        let engine = Arc::new(engine);
        for _ in 0..4 {
            engine.settle().await.unwrap();
            tokio::time::sleep(GRACE + LATE_MAX).await;
        }
        assert_eq!(engine.settle().await.unwrap().waiting, 0);
        let store = Store::from_arc(engine);
        let truths = *self.truths.lock().unwrap();
        for (n, truth) in truths.into_iter().enumerate() {
            let value = store.get(&counter(n)).await.unwrap().map(|entry| entry.value);
            let found = value.as_ref().map_or(0, |value| value.as_integer().unwrap());
            let most = truth.acknowledged + truth.unknown;
            assert!(
                (truth.acknowledged..=most).contains(&found),
                "counter {n} is {found} after {truth:?}"
            );
            assert!(found >= truth.seen, "counter {n} is {found} after {truth:?}");
            let shown = contents(&self.values.inner()).await;
            let shown =
                shown.into_iter().find(|(key, _)| *key == counter(n)).map(|(_, entry)| entry.value);
            assert_eq!(shown, value, "the value store follows");
        }
    }
}

#[test]
fn processes_that_crash_and_send_late_lose_no_increment() {
    let test = Test {
        package: env!("CARGO_PKG_NAME"),
        path: concat!(module_path!(), "::processes_that_crash_and_send_late_lose_no_increment"),
    };
    for seed in seeds(200, 5_000) {
        let _replay = Replay::new(test, seed);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(World::run(seed));
    }
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    let trace = |seed| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let world = World::run(seed).await;
            (world.values.trace(), world.coordinator.trace())
        })
    };
    for seed in seeds(5, 50) {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
    }
}
