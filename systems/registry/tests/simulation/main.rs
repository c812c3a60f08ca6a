//! Runs that are killed, whose answers are lost or late, that race each other and stand still, by clocks
//! that are minutes off, on a branch that moves: whole days by a seed, on a clock that only the day
//! itself moves. What git reads is read by other threads, so two days of one seed can differ in the order
//! in which racing processes come to the store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod pool;
#[path = "../repository/mod.rs"]
mod repository;
mod truth;

use std::ops::AddAssign;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::SignedDuration;
use keyward_engine::{Engine, Store};
use keyward_memory::Memory;
use keyward_queue::Ended;
use keyward_registry::{
    Options, Registry, Repository as Address, Settings, SyncOptions, Synced, Trigger,
};
use keyward_testkit::{
    Fault, Faults, FaultyEngine, Rates, Replay, Test, VirtualClock, When, seeds,
};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use pool::Pool;
use truth::{Telling, Truth, check_end, check_now};

const PROCESSES: usize = 2;
const ROUNDS: usize = 5;
/// Longer than any lease, and than a commit can be late.
const NIGHT: Duration = Duration::from_secs(600);

/// What happened, to see that something did.
#[derive(Debug, Default, Clone, Copy)]
struct Summary {
    done: u64,
    unchanged: u64,
    busy: u64,
    failed: u64,
    dropped: u64,
    crashes: u64,
    clean: u64,
    told: u64,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.done += other.done;
        self.unchanged += other.unchanged;
        self.busy += other.busy;
        self.failed += other.failed;
        self.dropped += other.dropped;
        self.crashes += other.crashes;
        self.clean += other.clean;
        self.told += other.told;
    }
}

#[test]
fn whatever_happens_the_next_run_finishes_it() {
    let pool = Rc::new(Pool::new(7, 40, 8));
    let path = "simulation::whatever_happens_the_next_run_finishes_it";
    let mut total = Summary::default();
    for seed in seeds(60, 2_000) {
        let _replay = Replay::new(Test { package: "keyward-registry", path }, seed);
        total += day(&pool, seed);
    }
    if std::env::var_os("KEYWARD_SEED").is_none() {
        let Summary { done, unchanged, busy, failed, dropped, crashes, clean, told } = total;
        let all = [done, unchanged, busy, failed, dropped, crashes, clean, told];
        assert!(all.iter().all(|count| *count > 0), "{total:?}");
    }
    report(&total);
}

#[allow(clippy::print_stderr, reason = "what a long run has seen is worth a line")]
fn report(total: &Summary) {
    eprintln!("{total:?}");
}

/// One day: processes in some weather, a night in which everything lands, and one more run.
fn day(pool: &Rc<Pool>, seed: u64) -> Summary {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let mut rng = Rng::with_seed(seed);
        let clock = VirtualClock::new();
        let options = keyward_memory::Options::default();
        let memory: Arc<dyn Engine> = Arc::new(Memory::with(options, clock));
        pool.move_to(rng.usize(..pool.len()));
        let healthy = open(pool, Store::from_arc(memory.clone()), clock, u64::from(u32::MAX));
        let truth = Rc::new(Truth::default());
        let mut processes = Vec::new();
        for number in 0..PROCESSES {
            let skew = SignedDuration::from_secs(rng.i64(-300..300));
            let process = Process {
                pool: pool.clone(),
                memory: memory.clone(),
                clock: clock.skewed(skew),
                rng: Rng::with_seed(rng.u64(..)),
                number: number as u64,
                healthy: healthy.clone(),
            };
            processes.push(tokio::task::spawn_local(process.live()));
        }
        let consumer = tokio::task::spawn_local(consume(
            healthy.clone(),
            truth.clone(),
            Rng::with_seed(rng.u64(..)),
        ));
        let mut summary = Summary::default();
        for process in processes {
            summary += process.await.unwrap();
        }
        tokio::time::sleep(NIGHT).await;
        consumer.abort();
        let commit = finish(&healthy).await;
        summary.told = truth.told.borrow().len() as u64;
        check_end(pool, &healthy, &truth, &commit).await;
        summary
    })
}

fn open(pool: &Pool, store: Store, clock: VirtualClock, seed: u64) -> Registry {
    let settings = Settings::new(Address::parse(pool.repository.location()).unwrap());
    let options = Options { seed: Some(seed), ..Options::default() };
    let cache = pool.repository.beside("cache");
    Registry::open_with("policies", store, settings, &cache, clock, options).unwrap()
}

/// One more run, with nothing in its way; gives the commit that it is at.
async fn finish(registry: &Registry) -> String {
    let options = SyncOptions { allow_mass_delete: true, ..SyncOptions::default() };
    match registry.sync(Trigger::Hand, &options, |_| ()).await.unwrap() {
        Synced::Done(run) => run.commit.unwrap(),
        Synced::Unchanged { commit } => commit,
        busy @ Synced::Busy { .. } => panic!("{busy:?}"),
    }
}

/// A process that syncs now and then, crashes, and is started again.
struct Process {
    pool: Rc<Pool>,
    memory: Arc<dyn Engine>,
    clock: VirtualClock,
    rng: Rng,
    number: u64,
    healthy: Registry,
}

impl Process {
    async fn live(mut self) -> Summary {
        let rates = Rates {
            fail: 0.02,
            unanswered: 0.05,
            delay: 0.7,
            delay_max: Duration::from_millis(50),
            crash: if self.rng.bool() { 0.04 } else { 0.0 },
            late: 0.05,
            late_max: Duration::from_secs(200),
        };
        let mut engine =
            FaultyEngine::new(self.memory.clone(), Faults::seeded(self.rng.u64(..), rates));
        let mut starts = 1;
        let mut registry = self.start(&engine, starts);
        let mut seen = Summary::default();
        for _ in 0..ROUNDS {
            if self.rng.u8(..3) == 0 {
                let at = self.rng.usize(..self.pool.len());
                self.pool.move_to(at);
            }
            self.round(&engine, &registry, &mut seen).await;
            seen.clean += u64::from(check_now(&self.pool, &self.healthy).await);
            if engine.is_crashed() {
                seen.crashes += 1;
                starts += 1;
                engine = engine.revive();
                registry = self.start(&engine, starts);
            }
            tokio::time::sleep(Duration::from_millis(self.rng.u64(..40_000))).await;
        }
        seen
    }

    /// Everybody who opens the store makes other choices.
    fn start(&self, engine: &FaultyEngine, starts: u64) -> Registry {
        let store = Store::new(engine.clone());
        open(&self.pool, store, self.clock, self.number * 1_000 + starts)
    }

    async fn round(&mut self, engine: &FaultyEngine, registry: &Registry, seen: &mut Summary) {
        let options =
            SyncOptions { full: self.rng.u8(..8) == 0, allow_mass_delete: self.rng.u8(..4) > 0 };
        let sync = registry.sync(Trigger::Hand, &options, |_| ());
        let standstill = self.rng.u8(..6) == 0;
        let (begins, lasts) = (self.rng.u64(..400), self.rng.u64(10..180));
        let stop = async {
            if standstill {
                tokio::time::sleep(Duration::from_millis(begins)).await;
                engine.pause();
                tokio::time::sleep(Duration::from_secs(lasts)).await;
                engine.resume();
            }
            std::future::pending::<()>().await;
        };
        // Somebody who waits for it may lose patience.
        let patience = match self.rng.u8(..5) {
            0 => Duration::from_millis(self.rng.u64(..300)),
            _ => Duration::from_secs(100_000),
        };
        let synced = tokio::select! {
            synced = tokio::time::timeout(patience, sync) => synced,
            () = stop => return,
        };
        // Nobody leaves it standing still.
        engine.resume();
        match synced {
            Ok(Ok(Synced::Done(_))) => seen.done += 1,
            Ok(Ok(Synced::Unchanged { .. })) => seen.unchanged += 1,
            Ok(Ok(Synced::Busy { .. })) => seen.busy += 1,
            Ok(Err(_)) => seen.failed += 1,
            Err(_) => seen.dropped += 1,
        }
    }
}

/// Accepts messages, as long as the day lasts.
async fn consume(registry: Registry, truth: Rc<Truth>, mut rng: Rng) {
    loop {
        tokio::time::sleep(Duration::from_millis(rng.u64(..3_000))).await;
        for attempt in registry.queue().claim(rng.usize(1..20)).await.unwrap().attempts {
            // Others change the queue while it is worked on.
            tokio::time::sleep(Duration::from_millis(rng.u64(..30))).await;
            let telling = Telling::of(attempt.payload().as_str(), attempt.version());
            if attempt.complete(None).await.unwrap() == Ended::Accepted {
                truth.accept(attempt.id(), telling);
            }
        }
    }
}

#[test]
fn a_crash_at_any_call_of_a_run_is_mended_by_the_next() {
    at_every_call(|call| {
        vec![(call, Fault::Crash(When::Before)), (call, Fault::Crash(When::After))]
    });
}

#[test]
fn an_answer_that_is_lost_at_any_call_of_a_run_costs_nothing() {
    at_every_call(|call| {
        vec![
            (call, Fault::Fail),
            (call, Fault::Unanswered(When::Before)),
            (call, Fault::Unanswered(When::After)),
            (call, Fault::Late(Duration::from_millis(1))),
            (call, Fault::Late(Duration::from_secs(90))),
        ]
    });
}

/// Runs from one commit to another, with each fault at each call, for small changes and large ones.
fn at_every_call(faults: impl Fn(u64) -> Vec<(u64, Fault)>) {
    let pool = Rc::new(Pool::new(11, 6, 4));
    let runs = [(0, 1), (2, 3), (6, 7), (0, 8)];
    for (from, to) in runs {
        let calls = with_fault(&pool, from, to, None);
        assert!(calls > 5, "{calls}");
        for call in 0..calls {
            for fault in faults(call) {
                with_fault(&pool, from, to, Some(fault));
            }
        }
    }
}

#[test]
fn a_commit_that_lands_after_another_run_took_over_is_refused() {
    let tree = |files: [usize; 3]| {
        let named = files.into_iter().enumerate();
        named.map(|(name, content)| (format!("n{name}.md"), content)).collect()
    };
    // The two runs change different policies, so that only the lock is between them.
    let pool = Pool::of(vec![tree([0, 0, 0]), tree([1, 0, 0]), tree([0, 1, 0])]);
    let mut refused = 0;
    for call in 0..40 {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        refused += runtime.block_on(async {
            let clock = VirtualClock::new();
            let options = keyward_memory::Options::default();
            let memory: Arc<dyn Engine> = Arc::new(Memory::with(options, clock));
            let healthy = open(&pool, Store::from_arc(memory.clone()), clock, 1);
            pool.move_to(0);
            finish(&healthy).await;
            // It is killed when a commit has just been sent.
            let killed =
                [(call, Fault::Late(Duration::MAX)), (call + 1, Fault::Crash(When::Before))];
            let engine = FaultyEngine::new(memory, Faults::script(killed));
            let registry = open(&pool, Store::new(engine.clone()), clock, 2);
            pool.move_to(1);
            let _ = registry.sync(Trigger::Hand, &SyncOptions::default(), |_| ()).await;
            tokio::time::sleep(NIGHT).await;
            pool.move_to(2);
            let commit = finish(&healthy).await;
            let landed = engine.land().await;
            check_now(&pool, &healthy).await;
            check_end(&pool, &healthy, &Truth::default(), &commit).await;
            landed.into_iter().filter(|outcome| !outcome.as_ref().unwrap().is_applied()).count()
        });
    }
    assert!(refused > 0);
}

/// One run with a fault, one without, and what is left; gives how many calls the first one made.
fn with_fault(pool: &Pool, from: usize, to: usize, fault: Option<(u64, Fault)>) -> u64 {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let clock = VirtualClock::new();
        let options = keyward_memory::Options::default();
        let memory: Arc<dyn Engine> = Arc::new(Memory::with(options, clock));
        let healthy = open(pool, Store::from_arc(memory.clone()), clock, 1);
        pool.move_to(from);
        finish(&healthy).await;
        let engine = FaultyEngine::new(memory, Faults::script(fault));
        let registry = open(pool, Store::new(engine.clone()), clock, 2);
        pool.move_to(to);
        let options = SyncOptions { allow_mass_delete: true, ..SyncOptions::default() };
        let first = registry.sync(Trigger::Hand, &options, |_| ()).await;
        let calls = engine.calls();
        check_now(pool, &healthy).await;
        if fault.is_none() {
            assert!(matches!(first, Ok(Synced::Done(_))), "{first:?}");
        }
        tokio::time::sleep(NIGHT).await;
        let commit = finish(&healthy).await;
        check_end(pool, &healthy, &Truth::default(), &commit).await;
        calls
    })
}
