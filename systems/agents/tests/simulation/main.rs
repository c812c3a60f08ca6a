//! Agents that read, write and delete while their processes crash, answers are lost and commits land
//! late: whole runs by a seed, on one thread with a clock that only the run itself moves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use keyward_agents::{Actor, Agents, Options, Set};
use keyward_engine::{Json, Store, Tier};
use keyward_memory::Memory;
use keyward_testkit::{Faults, FaultyEngine, Rates, Replay, Test, TestClock, seeds};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

const PROCESSES: usize = 3;
const OPERATIONS: usize = 30;
const KEYS: [&str; 3] = ["a", "b", "c"];

/// What was acknowledged of one entry: it is never deleted, so all of it counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Reads {
    /// By processes that went on, or stopped cleanly.
    sure: u64,
    /// By processes that crashed before they had written them.
    in_doubt: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    reads: BTreeMap<&'static str, Reads>,
    crashes: usize,
    counted: BTreeMap<&'static str, u64>,
}

#[test]
fn with_commits_of_several_keys_every_read_is_counted_once() {
    run_seeds(Tier::Atomic, "simulation::with_commits_of_several_keys_every_read_is_counted_once");
}

#[test]
fn with_commits_of_single_keys_every_read_is_counted_once() {
    run_seeds(
        Tier::Recoverable,
        "simulation::with_commits_of_single_keys_every_read_is_counted_once",
    );
}

fn run_seeds(tier: Tier, path: &'static str) {
    let (mut crashes, mut exact) = (0, 0);
    for seed in seeds(200, 5_000) {
        let _replay = Replay::new(Test { package: "keyward-agents", path }, seed);
        let run = run(tier, seed, seed % 2 == 0);
        for (key, reads) in &run.reads {
            let counted = run.counted[key];
            // Never more than were acknowledged; and without a crash never less.
            assert!(counted <= reads.sure + reads.in_doubt, "{key}: {run:?}");
            assert!(counted >= reads.sure, "{key}: {run:?}");
            exact += u64::from(reads.in_doubt == 0 && reads.sure > 0);
        }
        crashes += run.crashes;
    }
    assert!((crashes > 0 && exact > 0) || std::env::var_os("KEYWARD_SEED").is_some());
}

/// One run: processes side by side, each stopped cleanly in the end; then what was counted.
fn run(tier: Tier, seed: u64, crashing: bool) -> Run {
    let clock = TestClock::new();
    let memory = Memory::with(keyward_memory::Options::tier(tier), clock.clone());
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let told = Rc::new(RefCell::new(Run::default()));
    let mut rng = Rng::with_seed(seed);
    LocalSet::new().block_on(&runtime, async {
        let healthy = open(&FaultyEngine::new(Arc::new(memory.clone()), Faults::none()), &clock);
        let nobody = healthy.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
        for key in KEYS {
            assert!(nobody.set(key, Set::new(json("0"))).await.unwrap().is_accepted());
        }
        let mut tasks = Vec::new();
        for process in 0..PROCESSES {
            let rng = Rng::with_seed(rng.u64(..));
            let task = work(memory.clone(), clock.clone(), rng, process, crashing, told.clone());
            tasks.push(tokio::task::spawn_local(task));
        }
        for task in tasks {
            task.await.unwrap();
        }
        // What is still on its way lands.
        tokio::time::sleep(Duration::from_secs(10)).await;
        for key in KEYS {
            let entry = nobody.entry(key).await.unwrap().unwrap();
            told.borrow_mut().counted.insert(key, entry.access.count);
        }
    });
    told.take()
}

async fn work(
    memory: Memory,
    clock: TestClock,
    mut rng: Rng,
    process: usize,
    crashing: bool,
    told: Rc<RefCell<Run>>,
) {
    let rates = Rates {
        fail: 0.05,
        unanswered: 0.08,
        delay: 0.6,
        delay_max: Duration::from_millis(10),
        late: 0.06,
        late_max: Duration::from_millis(200),
        crash: if crashing { 0.02 } else { 0.0 },
    };
    let faults = Faults::seeded(rng.u64(..), rates);
    let mut engine = FaultyEngine::new(Arc::new(memory), faults);
    let mut agents = open(&engine, &clock);
    // Reads that are not known to be written.
    let mut held: BTreeMap<&'static str, u64> = BTreeMap::new();
    for operation in 0..OPERATIONS {
        clock.advance(Duration::from_millis(rng.u64(1..100)));
        let actor = Actor::agent(format!("agent-{process}"));
        let notes = agents.user("ada", actor).use_namespace("notes").unwrap();
        let key = KEYS[rng.usize(..KEYS.len())];
        match rng.u8(..10) {
            0 | 1 => drop(notes.set(key, Set::new(json(&operation.to_string()))).await),
            2 | 3 => {
                let flushed = agents.flush().await;
                if flushed.is_ok() && agents.gathered().accesses == 0 {
                    settle(&told, &mut held, true);
                }
            }
            _ => {
                if notes.get(key).await.is_ok() {
                    *held.entry(key).or_default() += 1;
                }
            }
        }
        if engine.is_crashed() {
            told.borrow_mut().crashes += 1;
            settle(&told, &mut held, false);
            engine = engine.revive();
            agents = open(&engine, &clock);
        }
    }
    // A clean stop: tried until the store answers.
    loop {
        let closed = agents.close().await;
        if engine.is_crashed() {
            told.borrow_mut().crashes += 1;
            settle(&told, &mut held, false);
            return;
        }
        if closed.is_ok() {
            return settle(&told, &mut held, true);
        }
    }
}

fn settle(told: &RefCell<Run>, held: &mut BTreeMap<&'static str, u64>, sure: bool) {
    for (key, count) in std::mem::take(held) {
        let mut told = told.borrow_mut();
        let reads = told.reads.entry(key).or_default();
        match sure {
            true => reads.sure += count,
            false => reads.in_doubt += count,
        }
    }
}

fn open(engine: &FaultyEngine, clock: &TestClock) -> Agents {
    Agents::alone(Store::new(engine.clone()), Options::default(), clock.clone()).unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}
