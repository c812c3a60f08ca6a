//! Many processes on one engine: late, failed and lost calls, crashes at any point, clocks minutes
//! apart, holders that stand still for longer than their lease. Whole runs by a seed, on one thread
//! with a clock that only the run itself moves. Two runs of one seed are the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod detached;
mod engine;
mod journal;
mod node;
mod register;

use std::cell::RefCell;
use std::rc::Rc;

use fastrand::Rng;
use keyward_engine::Tier;
use keyward_testkit::{Replay, Test, VirtualClock, seeds};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use engine::Checked;
use journal::Journal;
use node::Node;
use register::Register;

const NODES_MIN: u64 = 2;
const NODES_MAX: u64 = 5;
const USUAL_SEEDS: u64 = 340;
const DEEP_SEEDS: u64 = 6_700;

/// What the engine of a run can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct World {
    /// Commits of several keys, or of one.
    pub tier: Tier,
    /// Whether changes are told.
    pub watches: bool,
}

#[test]
fn with_commits_of_several_keys_locks_exclude_and_everybody_is_served() {
    let path = "simulation::with_commits_of_several_keys_locks_exclude_and_everybody_is_served";
    run_seeds(World { tier: Tier::Atomic, watches: true }, path);
}

#[test]
fn without_a_watch_locks_exclude_and_everybody_is_served() {
    let path = "simulation::without_a_watch_locks_exclude_and_everybody_is_served";
    run_seeds(World { tier: Tier::Atomic, watches: false }, path);
}

#[test]
fn with_commits_of_single_keys_locks_exclude_and_everybody_is_served() {
    let path = "simulation::with_commits_of_single_keys_locks_exclude_and_everybody_is_served";
    run_seeds(World { tier: Tier::Recoverable, watches: false }, path);
}

#[test]
fn a_seed_always_gives_the_same_run() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let world = World { tier, watches: tier == Tier::Atomic };
        for seed in 0..20 {
            assert_eq!(run(world, seed), run(world, seed), "{tier} {seed}");
        }
    }
}

#[allow(clippy::print_stderr, reason = "shows what a run of many seeds went through")]
fn run_seeds(world: World, path: &'static str) {
    let mut all = Journal::default();
    for seed in seeds(USUAL_SEEDS, DEEP_SEEDS) {
        let _replay = Replay::new(Test { package: "keyward-locks", path }, seed);
        all.add(&run(world, seed));
    }
    eprintln!("{}", all.summary());
    // With one seed there may be none; with many, a run without any would test nothing.
    assert!(
        all.saw_everything(world.tier) || std::env::var_os("KEYWARD_SEED").is_some(),
        "{}",
        all.summary()
    );
}

/// One run: processes side by side, then a look at what is left.
fn run(world: World, seed: u64) -> Journal {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let journal = Rc::new(RefCell::new(Journal::default()));
    let mut rng = Rng::with_seed(seed);
    LocalSet::new().block_on(&runtime, async {
        let clock = VirtualClock::new();
        let engine = Checked::new(world.tier, clock);
        let nodes = rng.u64(NODES_MIN..=NODES_MAX);
        let register = Register::default();
        let mut tasks = Vec::new();
        for number in 0..nodes {
            let node = Node::new(
                number,
                world,
                &engine,
                clock,
                Rng::with_seed(rng.u64(..)),
                register.clone(),
            );
            tasks.push(tokio::task::spawn_local(node.run(journal.clone())));
        }
        for task in tasks {
            task.await.unwrap();
        }
        Node::healthy(world, &engine, clock).settle().await;
        journal.borrow().check(&engine);
    });
    journal.take()
}
