//! Copies that end at any point, and are run again.

use std::sync::Arc;

use fastrand::Rng;
use keyward_engine::{Limits, Store};
use keyward_memory::{Memory, Options};
use keyward_migrate::Copy;
use keyward_testkit::{Faults, FaultyEngine, Rates, Replay, Test, TestClock, When, seeds};

use crate::stores::{content, fill, memory, number, scatter, verify};

/// Small pages and batches, so that there are many calls to fail.
fn small(store: Store) -> Store {
    let limits = Limits { scan_rows_max: 7, commit_keys_max: 5, ..*store.limits() };
    store.with_limits(limits)
}

/// A target that holds some of the source's entries, other values, and keys of its own.
async fn half_done(clock: &TestClock, faults: Faults) -> FaultyEngine {
    let memory = Memory::with(Options::default(), clock.clone());
    let engine = FaultyEngine::new(Arc::new(memory), faults);
    let inner = Store::from_arc(engine.inner());
    for n in (0..60).step_by(3) {
        let key = keyward_key::Key::parse(&format!("item:{n:06}")).unwrap();
        inner.put(key, number(n % 2)).await.unwrap();
    }
    inner.put(keyward_key::Key::parse("zz").unwrap(), number(1)).await.unwrap();
    engine
}

#[tokio::test]
async fn after_a_crash_at_any_call_to_the_target_another_run_completes_the_copy() {
    let clock = TestClock::new();
    let source = memory(&clock);
    fill(&source, 60).await;
    let source = small(source);
    let whole = half_done(&clock, Faults::none()).await;
    let run = |target: FaultyEngine| {
        let copy = Copy::new(source.clone(), small(Store::new(target))).prune(true);
        async move { copy.run(|_| ()).await }
    };
    run(whole.clone()).await.unwrap();
    assert!(whole.calls() > 10);
    for call in 0..whole.calls() {
        for when in [When::Before, When::After] {
            let target = half_done(&clock, Faults::crash_at(call, when)).await;
            run(target.clone()).await.unwrap_err();
            run(target.revive()).await.unwrap();
            let target = Store::from_arc(target.inner());
            assert_eq!(content(&target).await, content(&source).await, "{when:?} {call}");
            assert!(verify(&source, &target).await.is_equal());
        }
    }
}

#[tokio::test]
async fn after_a_crash_at_any_read_of_the_source_another_run_completes_the_copy() {
    let clock = TestClock::new();
    let memory_engine = Arc::new(Memory::with(Options::default(), clock.clone()));
    let source = Store::from_arc(memory_engine.clone());
    fill(&source, 60).await;
    for call in 0..9 {
        for when in [When::Before, When::After] {
            let faulty = FaultyEngine::new(memory_engine.clone(), Faults::crash_at(call, when));
            let target = small(memory(&clock));
            let crashing = Copy::new(small(Store::new(faulty)), target.clone());
            crashing.run(|_| ()).await.unwrap_err();
            Copy::new(source.clone(), target.clone()).run(|_| ()).await.unwrap();
            assert_eq!(content(&target).await, content(&source).await, "{when:?} {call}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_run_until_it_succeeds_is_exact_whatever_fails() {
    let test = Test {
        package: "keyward-migrate",
        path: "migrate::crashing::a_copy_that_is_run_until_it_succeeds_is_exact_whatever_fails",
    };
    for seed in seeds(30, 1_000) {
        let _replay = Replay::new(test, seed);
        let mut rng = Rng::with_seed(seed);
        let clock = TestClock::new();
        let source = small(memory(&clock));
        scatter(&source, &mut rng, 200).await;
        let mut target = half_done(&clock, Faults::seeded(seed, Rates::some())).await;
        let mut told = 0;
        loop {
            let copy = Copy::new(source.clone(), small(Store::new(target.clone()))).prune(true);
            let run = copy.run(|so_far| told = so_far.entries()).await;
            if let Ok(copied) = run {
                assert_eq!(copied.entries(), told);
                break;
            }
            target = target.revive();
        }
        let target = Store::from_arc(target.inner());
        assert_eq!(content(&target).await, content(&source).await);
    }
}
