//! Racing writers, crashes at any call, lost answers: whole runs by a seed, on one thread with a
//! clock that only the run itself moves. Two runs of one seed are the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod journal;
mod process;
mod truth;

use std::cell::RefCell;
use std::rc::Rc;

use fastrand::Rng;
use keyward_engine::Tier;
use keyward_memory::{Memory, Options};
use keyward_testkit::{Replay, Test, TestClock, seeds};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use journal::Journal;
use process::Process;
use truth::Truth;

const WRITERS: u64 = 3;
const USUAL_SEEDS: u64 = 400;
const DEEP_SEEDS: u64 = 10_000;

#[test]
fn with_commits_of_several_keys_nothing_is_lost_doubled_missing_or_wrong() {
    let path = "simulation::with_commits_of_several_keys_nothing_is_lost_doubled_missing_or_wrong";
    run_seeds(Tier::Atomic, path);
}

#[test]
fn with_commits_of_single_keys_nothing_is_lost_doubled_missing_or_wrong() {
    let path = "simulation::with_commits_of_single_keys_nothing_is_lost_doubled_missing_or_wrong";
    run_seeds(Tier::Recoverable, path);
}

#[test]
fn a_seed_always_gives_the_same_run() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        for seed in 0..20 {
            assert_eq!(run(tier, seed), run(tier, seed), "{tier} {seed}");
        }
    }
}

fn run_seeds(tier: Tier, path: &'static str) {
    let mut crashes = 0;
    for seed in seeds(USUAL_SEEDS, DEEP_SEEDS) {
        let _replay = Replay::new(Test { package: "keyward-records", path }, seed);
        crashes += run(tier, seed).crashes();
    }
    // With one seed there may be none; with many, a run without any would test nothing.
    assert!(crashes > 0 || std::env::var_os("KEYWARD_SEED").is_some());
}

/// One run: writers and a reader side by side, then a look at what is left.
fn run(tier: Tier, seed: u64) -> Journal {
    let clock = TestClock::new();
    let memory = Memory::with(Options::tier(tier), clock.clone());
    let journal = Rc::new(RefCell::new(Journal::default()));
    let truth = Truth::new(memory.clone());
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let local = LocalSet::new();
    let mut rng = Rng::with_seed(seed);
    local.block_on(&runtime, async {
        let mut tasks = Vec::new();
        for writer in 0..WRITERS {
            let rng = Rng::with_seed(rng.u64(..));
            let process = Process::new(&memory, &clock, rng, true);
            tasks.push(tokio::task::spawn_local(process.write(
                writer,
                journal.clone(),
                truth.clone(),
            )));
        }
        let reader = Process::new(&memory, &clock, Rng::with_seed(rng.u64(..)), false);
        tasks.push(tokio::task::spawn_local(reader.read(journal.clone(), truth.clone())));
        for task in tasks {
            task.await.unwrap();
        }
        let last = Process::healthy(&memory, &clock);
        last.settle(tier, &truth).await;
        journal.borrow().check(&truth);
        last.check(&truth).await;
    });
    journal.take()
}
