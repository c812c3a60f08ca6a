//! Many processes on one queue: calls that are late, fail, or whose answer is lost; crashes anywhere;
//! clocks that are minutes off; processes that stand still for several leases. Whole runs by a seed,
//! on one thread with a clock that only the run itself moves. Two runs of one seed are the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod client;
mod node;
mod truth;
mod weather;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use keyward_engine::{Engine, Store};
use keyward_queue::{Jobs, Options, Queue, Retry, Status, Worker, WorkerOptions};
use keyward_testkit::{Faults, FaultyEngine, Replay, Test, VirtualClock, seeds};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use client::Client;
use node::Node;
use truth::{Fate, Kind, Summary, Truth};
use weather::Weather;

const USUAL_SEEDS: u64 = 1_000;
const DEEP_SEEDS: u64 = 20_000;

const LEASE: Duration = Duration::from_secs(10);
const ATTEMPTS_MAX: u32 = 4;
/// How long the weather lasts.
const DAY: Duration = Duration::from_secs(60);

#[test]
fn no_message_completes_twice_none_is_lost_and_only_the_poisoned_die_for_nothing() {
    let path =
        "simulation::no_message_completes_twice_none_is_lost_and_only_the_poisoned_die_for_nothing";
    let mut total = Summary::default();
    for seed in seeds(USUAL_SEEDS, DEEP_SEEDS) {
        let _replay = Replay::new(Test { package: "keyward-queue", path }, seed);
        total += run(seed).0;
    }
    // With one seed there may be nothing of a kind; with many, its absence would mean that nothing
    // was tested.
    if std::env::var_os("KEYWARD_SEED").is_none() {
        assert!(total.is_full(), "{total:?}");
    }
    report(&total);
}

#[allow(clippy::print_stderr, reason = "what a long run has seen is worth a line")]
fn report(total: &Summary) {
    eprintln!("{total:?}");
}

#[test]
fn a_seed_always_gives_the_same_run() {
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed), "{seed}");
    }
}

fn options(node: &str, seed: u64) -> Options {
    Options {
        lease: LEASE,
        retry: Retry {
            attempts_max: ATTEMPTS_MAX,
            backoff_min: Duration::from_millis(500),
            backoff_max: Duration::from_secs(5),
        },
        holder: node.to_owned(),
        seed: Some(seed),
        ..Options::default()
    }
}

/// One run: processes in some weather, then a look at what is left.
fn run(seed: u64) -> (Summary, Vec<(String, Vec<String>, Fate)>) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut rng = Rng::with_seed(seed);
        let weather = Weather::new(&mut rng);
        let clock = VirtualClock::new();
        let truth = Truth::new(clock);
        let mut tasks = JoinSet::new();
        for number in 0..weather.nodes {
            let rng = Rng::with_seed(rng.u64(..));
            let node = Node::new(number, &truth, clock, &weather, rng);
            tasks.spawn(node.live(DAY));
        }
        for number in 0..2 {
            let rng = Rng::with_seed(rng.u64(..));
            let client = Client::new(number, &truth, clock, &weather, rng);
            tasks.spawn(client.live(DAY));
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        // What is still on its way lands.
        tokio::time::sleep(Weather::LATE_MAX).await;
        settle(&truth, clock).await;
        check(&truth, clock, &weather).await;
        let lives = truth.lives().into_iter();
        let course = lives.map(|(id, life)| (id, life.claims, life.fate)).collect();
        (truth.summary(), course)
    })
}

/// A process without faults works off what is left.
async fn settle(truth: &Truth, clock: VirtualClock) {
    let engine = FaultyEngine::new(truth.engine(), Faults::none());
    let queue = Queue::new(Store::new(engine), "q", clock, options("last", 7)).unwrap();
    queue.resume().await.unwrap();
    let looking = queue.clone();
    let emptied = async move {
        // Clocks that are ahead by minutes have left times that are yet to come.
        for _ in 0..200 {
            let stats = looking.stats().await.unwrap();
            if stats.ready.count + stats.delayed.count + stats.claimed.count == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        panic!("the queue is never worked off: {:?}", looking.stats().await.unwrap());
    };
    let handled = truth.clone();
    let handler = move |delivery: keyward_queue::Delivery| {
        let kind = handled.kind(delivery.id());
        async move {
            match (kind, delivery.number()) {
                (Kind::Poisoned | Kind::Broken, _) => Err("it is broken".into()),
                (Kind::FailsOnce, 1) => Err("not yet".into()),
                _ => Ok(None),
            }
        }
    };
    let worker = Worker::new(queue, WorkerOptions { concurrency: 4, ..WorkerOptions::default() });
    worker.run(handler, emptied).await.unwrap();
}

async fn check(truth: &Truth, clock: VirtualClock, weather: &Weather) {
    truth.check_no_violation();
    let store = Store::from_arc(truth.engine() as Arc<dyn Engine>);
    let queue = Queue::new(store.clone(), "q", clock, options("check", 8)).unwrap();
    let jobs = Jobs::new(store, clock, options("check", 9)).unwrap();
    for (id, life) in truth.lives() {
        let what = format!("{id} {life:#?}");
        let dead = queue.dead_letter(&id).await.unwrap();
        match life.fate {
            Fate::Completed(_) => assert!(dead.is_none(), "{what}"),
            Fate::Dead => {
                let dead = dead.unwrap_or_else(|| panic!("no dead letter of {what}"));
                assert_eq!(dead.retry_count, ATTEMPTS_MAX, "{what}");
                assert_eq!(dead.history.len(), ATTEMPTS_MAX as usize, "{what} {dead:?}");
            }
            Fate::Queued => panic!("lost, or never worked off: {what}"),
        }
        let dies = matches!(life.kind, Kind::Poisoned | Kind::Broken);
        if dies {
            assert_eq!(life.fate, Fate::Dead, "{what}");
        }
        if weather.is_calm && !dies {
            // However wrong the clocks are: delivered once, or once more where it failed.
            let attempts = if life.kind == Kind::FailsOnce { 2 } else { 1 };
            assert_eq!(life.claims.len() - life.given_back, attempts, "{what}");
            assert!(matches!(life.fate, Fate::Completed(_)), "{what}");
        }
        if life.is_job {
            let status = jobs.status(&id).await.unwrap();
            let agrees = match life.fate {
                Fate::Completed(_) => matches!(status, Some(Status::Result(_))),
                _ => matches!(&status, Some(Status::Trace(trace)) if trace.kind == "failed"),
            };
            assert!(agrees, "{status:?} {what}");
        }
    }
}
