//! Many processes that want the same results, with late and lost answers, crashes at any call, clocks
//! that are minutes apart, and processes that stand still for longer than their lease: whole runs by
//! a seed. Two runs of one seed are the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod journal;
mod node;
mod recorder;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use keyward_engine::Tier;
use keyward_memory::{Memory, Options};
use keyward_testkit::{Replay, Test, VirtualClock, seeds};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use journal::{Counts, Journal};
use node::{Kind, Node};
use recorder::Recorder;

const NODES: u64 = 4;

#[test]
fn with_commits_of_several_keys_a_result_is_published_once() {
    let path = "simulation::with_commits_of_several_keys_a_result_is_published_once";
    run_seeds(Kind { tier: Tier::Atomic, watches: true }, (500, 10_000), path);
}

#[test]
fn without_watches_a_result_is_published_once() {
    let path = "simulation::without_watches_a_result_is_published_once";
    run_seeds(Kind { tier: Tier::Atomic, watches: false }, (250, 5_000), path);
}

#[test]
fn with_commits_of_single_keys_a_result_is_published_once() {
    let path = "simulation::with_commits_of_single_keys_a_result_is_published_once";
    run_seeds(Kind { tier: Tier::Recoverable, watches: false }, (250, 5_000), path);
}

#[test]
fn a_seed_always_gives_the_same_run() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let kind = Kind { tier, watches: tier == Tier::Atomic };
        for seed in 0..10 {
            assert_eq!(run(kind, seed), run(kind, seed), "{tier} {seed}");
        }
    }
}

fn run_seeds(kind: Kind, (usual, deep): (u64, u64), path: &'static str) {
    let mut all = Counts::default();
    for seed in seeds(usual, deep) {
        let _replay = Replay::new(Test { package: "keyward-cache", path }, seed);
        all.add(run(kind, seed));
    }
    // With one seed there may be none; with many, a run without any would test nothing.
    if std::env::var_os("KEYWARD_SEED").is_none() {
        assert!(all.crashes > 0 && all.pauses > 0 && all.lost > 0 && all.published > 0, "{all:?}");
    }
}

/// One run: nodes that ask side by side while the sources change, then a look at what is left.
fn run(kind: Kind, seed: u64) -> Counts {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let local = LocalSet::new();
    let mut rng = Rng::with_seed(seed);
    local.block_on(&runtime, async {
        let clock = VirtualClock::new();
        let memory = Memory::with(Options::tier(kind.tier), clock);
        let journal = Rc::new(RefCell::new(Journal::new(clock)));
        let engine = Arc::new(Recorder::new(memory, clock));
        let mut tasks = Vec::new();
        for number in 0..NODES {
            let rng = Rng::with_seed(rng.u64(..));
            let node = Node::new(number, kind, engine.clone(), clock, rng, journal.clone());
            tasks.push(tokio::task::spawn_local(node.work()));
        }
        for task in tasks {
            task.await.unwrap();
        }
        // Leases of those who crashed end.
        tokio::time::sleep(Duration::from_secs(600)).await;
        Node::healthy(kind, engine.clone(), clock, journal.clone()).look_at_everything().await;
        journal.borrow().check(&engine.fates())
    })
}
