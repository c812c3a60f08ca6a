//! Workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use keyward_engine::{Store, WatchSupport};
use keyward_memory::Memory;
use keyward_queue::{
    Delivery, Failure, JobOptions, Jobs, Options, Queue, Report, Retry, Worker, WorkerOptions,
};
use keyward_stores::{Place, on_every_engine};
use keyward_testkit::{Faults, FaultyEngine, VirtualClock};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::fixture::{Fixture, json, message, options};

on_every_engine!(a_worker_works_off_what_comes, sixteen_workers_share_a_queue);

/// A worker in a task, and what stops it.
struct Hired {
    stop: oneshot::Sender<()>,
    task: JoinHandle<keyward_queue::Result<Report>>,
}

impl Hired {
    fn new<F>(
        queue: Queue,
        options: WorkerOptions,
        handler: impl Fn(Delivery) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Option<keyward_engine::Json>, Failure>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(queue, options);
        let task = tokio::spawn(worker.run(handler, async { drop(stopped.await) }));
        Self { stop, task }
    }

    async fn stop(self) -> Report {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap()
    }
}

async fn a_worker_works_off_what_comes(place: Place) {
    let fixture = Fixture::new(place).await;
    let first = fixture.enqueue("1").await;
    let (sender, mut seen) = mpsc::unbounded_channel();
    let hired = Hired::new(fixture.other(), WorkerOptions::default(), move |delivery| {
        let sender = sender.clone();
        async move {
            sender.send(delivery.id().to_owned()).unwrap();
            Ok(None)
        }
    });
    assert_eq!(seen.recv().await.unwrap(), first);
    for n in 0..20 {
        let id = fixture.enqueue(&n.to_string()).await;
        assert_eq!(seen.recv().await.unwrap(), id);
    }
    assert_eq!(hired.stop().await.completed, 21);
    assert!(fixture.keys("queue").await.is_empty());
}

async fn sixteen_workers_share_a_queue(place: Place) {
    const MESSAGES: usize = 200;
    let fixture = Fixture::new(place).await;
    let done = Arc::new(AtomicUsize::new(0));
    let all = Arc::new(Notify::new());
    let mut hired = Vec::new();
    for _ in 0..4 {
        let options = Options { lease: Duration::from_secs(60), ..options() };
        let queue =
            Queue::new(fixture.store.clone(), "q", fixture.place.clock().clone(), options).unwrap();
        let (done, all) = (done.clone(), all.clone());
        let options = WorkerOptions { concurrency: 4, ..WorkerOptions::default() };
        hired.push(Hired::new(queue, options, move |_| {
            let (done, all) = (done.clone(), all.clone());
            async move {
                if done.fetch_add(1, Ordering::Relaxed) + 1 == MESSAGES {
                    all.notify_one();
                }
                Ok(None)
            }
        }));
    }
    for batch in 0..4 {
        let messages =
            (0..MESSAGES / 4).map(|n| message(&format!("{batch}{n:03}").replace('0', "1")));
        fixture.queue.enqueue_all(messages.collect()).await.unwrap();
    }
    all.notified().await;
    let mut completed = 0;
    for worker in hired {
        let report = worker.stop().await;
        assert_eq!((report.refused, report.failed, report.unknown), (0, 0, 0));
        completed += report.completed;
    }
    assert_eq!((completed, done.load(Ordering::Relaxed)), (MESSAGES as u64, MESSAGES));
}

/// Seven of eight places are taken for long; the eighth does all the rest.
#[tokio::test(start_paused = true)]
async fn a_free_place_is_filled_while_others_are_long_at_work() {
    let options = Options { lease: Duration::from_secs(600), ..options() };
    let store = Store::new(Memory::new());
    let queue = Queue::new(store, "q", keyward_engine::SystemClock, options).unwrap();
    queue.enqueue_all(vec![message("\"long\""); 7]).await.unwrap();
    queue.enqueue_all(vec![message("\"short\""); 20]).await.unwrap();
    let (sender, mut seen) = mpsc::unbounded_channel();
    let options = WorkerOptions { concurrency: 8, ..WorkerOptions::default() };
    let go_on = Arc::new(tokio::sync::Semaphore::new(0));
    let gate = go_on.clone();
    let hired = Hired::new(queue, options, move |delivery| {
        let (sender, gate) = (sender.clone(), gate.clone());
        async move {
            if delivery.payload().as_str() == "\"long\"" {
                gate.acquire().await.unwrap().forget();
            } else {
                sender.send(()).unwrap();
            }
            Ok(None)
        }
    });
    for _ in 0..20 {
        seen.recv().await.unwrap();
    }
    go_on.add_permits(7);
    let asked = tokio::time::Instant::now();
    assert_eq!(hired.stop().await.completed, 27);
    assert!(asked.elapsed() < WorkerOptions::default().grace, "it ends with the last of them");
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_is_refused_takes_no_other_with_it() {
    let options = Options { lease: Duration::from_secs(600), ..options() };
    let store = Store::new(Memory::new());
    let queue = Queue::new(store, "q", keyward_engine::SystemClock, options).unwrap();
    let messages = (0..4).map(|n| message("1").id(n.to_string())).collect();
    queue.enqueue_all(messages).await.unwrap();
    let (sender, mut begun) = mpsc::unbounded_channel();
    let go_on = Arc::new(tokio::sync::Semaphore::new(0));
    let gate = go_on.clone();
    let options = WorkerOptions { concurrency: 4, ..WorkerOptions::default() };
    let hired = Hired::new(queue.clone(), options, move |_| {
        let (sender, gate) = (sender.clone(), gate.clone());
        async move {
            sender.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            Ok(None)
        }
    });
    for _ in 0..4 {
        begun.recv().await.unwrap();
    }
    assert!(queue.drop_message("2").await.unwrap());
    go_on.add_permits(4);
    let report = hired.stop().await;
    assert_eq!((report.completed, report.refused), (3, 1));
    assert_eq!(queue.stats().await.unwrap().claimed.count, 0);
    assert_eq!(queue.metrics().completed.get(), 3);
}

/// A store, its engine's handle, and a queue on simulated time.
fn simulated(lease: Duration) -> (FaultyEngine, Store, Queue) {
    let clock = VirtualClock::new();
    let memory = Memory::with(keyward_memory::Options::default(), clock);
    let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
    let store = Store::new(engine.clone());
    let retry = Retry { backoff_min: Duration::from_secs(1), ..Retry::default() };
    let options = Options { lease, retry, seed: Some(1), ..Options::default() };
    let queue = Queue::new(store.clone(), "q", clock, options).unwrap();
    (engine, store, queue)
}

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_and_the_worker_goes_on() {
    let (_, _, queue) = simulated(LEASE);
    let id = queue.enqueue(message("1")).await.unwrap().id().to_owned();
    let (sender, mut tries) = mpsc::unbounded_channel();
    let hired = Hired::new(queue.clone(), WorkerOptions::default(), move |delivery| {
        sender.send(delivery.number()).unwrap();
        async move {
            assert!(delivery.payload().as_str() != "1", "what a payload");
            Ok(None)
        }
    });
    for number in 1..=3 {
        assert_eq!(tries.recv().await.unwrap(), number);
    }
    queue.enqueue(message("2")).await.unwrap();
    tries.recv().await.unwrap();
    let report = hired.stop().await;
    assert_eq!((report.failed, report.completed), (3, 1));
    let dead = queue.dead_letter(&id).await.unwrap().unwrap();
    assert!(dead.reason.contains("panicked: ") && dead.reason.contains("what a payload"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_for_as_long_as_the_handler_takes() {
    let (_, _, queue) = simulated(LEASE);
    queue.enqueue(message("1")).await.unwrap();
    let begun = Arc::new(Notify::new());
    let telling = begun.clone();
    let hired = Hired::new(queue.clone(), WorkerOptions::default(), move |delivery| {
        let begun = begun.clone();
        async move {
            begun.notify_one();
            tokio::time::sleep(LEASE * 20).await;
            assert!(!delivery.is_lost());
            Ok(None)
        }
    });
    telling.notified().await;
    for _ in 0..10 {
        tokio::time::sleep(LEASE).await;
        assert!(queue.claim(1).await.unwrap().attempts.is_empty());
    }
    assert_eq!(hired.stop().await, Report { given_back: 1, ..Report::default() });
}

#[tokio::test(start_paused = true)]
async fn a_stopped_worker_gives_back_what_does_not_end_and_waits_for_what_does() {
    let (_, _, queue) = simulated(LEASE);
    for seconds in [5, 600] {
        queue.enqueue(message(&seconds.to_string())).await.unwrap();
    }
    let (sender, mut begun) = mpsc::unbounded_channel();
    let worker =
        WorkerOptions { concurrency: 2, grace: Duration::from_secs(60), ..Default::default() };
    let hired = Hired::new(queue.clone(), worker, move |delivery| {
        let sender = sender.clone();
        async move {
            sender.send(()).unwrap();
            let seconds: u64 = delivery.payload().as_str().parse().unwrap();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(None)
        }
    });
    begun.recv().await.unwrap();
    begun.recv().await.unwrap();
    queue.enqueue(message("1")).await.unwrap();
    let report = hired.stop().await;
    assert_eq!(report, Report { completed: 1, given_back: 1, ..Report::default() });
    let claims = queue.claim(9).await.unwrap().attempts;
    let waiting: Vec<_> =
        claims.iter().map(|attempt| (attempt.payload().as_str(), attempt.number())).collect();
    assert_eq!(waiting, [("600", 1), ("1", 1)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_claimed_ahead_is_kept_and_given_back_unbegun() {
    let (_, _, queue) = simulated(LEASE);
    queue.enqueue_all((0..6).map(|n| message(&n.to_string())).collect()).await.unwrap();
    let (sender, mut begun) = mpsc::unbounded_channel();
    let worker = WorkerOptions { ahead: 3, ..Default::default() };
    let hired = Hired::new(queue.clone(), worker, move |_| {
        sender.send(()).unwrap();
        async {
            tokio::time::sleep(LEASE * 10).await;
            Ok(None)
        }
    });
    begun.recv().await.unwrap();
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!(queue.stats().await.unwrap().claimed.count, 4);
    assert_eq!(hired.stop().await, Report { given_back: 4, ..Report::default() });
    let claims = queue.claim(9).await.unwrap().attempts;
    assert_eq!(claims.len(), 6);
    assert!(claims.iter().all(|attempt| attempt.number() == 1));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_process_learns_that_it_lost_its_message() {
    let (engine, _, queue) = simulated(LEASE);
    let other = Queue::new(
        Store::from_arc(engine.inner()),
        "q",
        VirtualClock::new(),
        queue.options().clone(),
    )
    .unwrap();
    queue.enqueue(message("1")).await.unwrap();
    let (sender, mut begun) = mpsc::unbounded_channel();
    let hired = Hired::new(queue.clone(), WorkerOptions::default(), move |delivery| {
        let sender = sender.clone();
        async move {
            sender.send(()).unwrap();
            delivery.lost().await;
            sender.send(()).unwrap();
            Err(Failure::new("lost"))
        }
    });
    begun.recv().await.unwrap();
    engine.pause();
    tokio::time::sleep(LEASE * 2).await;
    let taken = other.claim(1).await.unwrap().attempts;
    assert_eq!(taken[0].number(), 2);
    engine.resume();
    begun.recv().await.unwrap();
    assert_eq!(hired.stop().await, Report { refused: 1, ..Report::default() });
    taken[0].complete(None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_of_a_cancellation_at_once_and_a_timeout_is_a_failure() {
    let (_, store, queue) = simulated(LEASE);
    let jobs = Jobs::new(store, VirtualClock::new(), queue.options().clone()).unwrap();
    let options = JobOptions {
        id: Some("slow".into()),
        timeout: Some(Duration::from_secs(5)),
        ..JobOptions::default()
    };
    jobs.submit("q", json("1"), options).await.unwrap();
    let options = JobOptions { id: Some("unwanted".into()), ..JobOptions::default() };
    jobs.submit("q", json("1"), options).await.unwrap();
    let (sender, mut told) = mpsc::unbounded_channel();
    let worker = WorkerOptions { concurrency: 2, ..WorkerOptions::default() };
    let hired = Hired::new(queue.clone(), worker, move |delivery| {
        let sender = sender.clone();
        async move {
            let say = |what: &str| sender.send(format!("{} {what}", delivery.id())).unwrap();
            say("begun");
            delivery.cancelled().await;
            say("cancelled");
            Ok(None)
        }
    });
    told.recv().await.unwrap();
    told.recv().await.unwrap();
    let before = tokio::time::Instant::now();
    jobs.cancel("unwanted", "ada").await.unwrap();
    assert_eq!(told.recv().await.unwrap(), "unwanted cancelled");
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    // The slow one is tried as often as any.
    assert_eq!(told.recv().await.unwrap(), "slow begun");
    assert_eq!(told.recv().await.unwrap(), "slow begun");
    let dead = loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if let Some(dead) = queue.dead_letter("slow").await.unwrap() {
            break dead;
        }
    };
    assert_eq!(dead.reason, "took longer than 5000 ms");
    let report = hired.stop().await;
    assert_eq!((report.failed, report.refused), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_worker_looks_again_and_again_where_nothing_can_be_watched() {
    let (engine, _, _) = simulated(LEASE);
    let engine = engine.acting_as(|capabilities| capabilities.watch = WatchSupport::Unsupported);
    let options = Options { lease: LEASE, seed: Some(1), ..Options::default() };
    let store = Store::new(engine.clone());
    let queue = Queue::new(store, "q", VirtualClock::new(), options).unwrap();
    let (sender, mut seen) = mpsc::unbounded_channel();
    let hired = Hired::new(queue.clone(), WorkerOptions::default(), move |_| {
        sender.send(()).unwrap();
        async { Ok(None) }
    });
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let looks = engine.calls();
    assert!(looks < 2 * 3_600, "{looks}");
    queue.enqueue(message("1")).await.unwrap();
    let before = tokio::time::Instant::now();
    seen.recv().await.unwrap();
    assert!(before.elapsed() <= Duration::from_secs(5), "{:?}", before.elapsed());
    assert_eq!(hired.stop().await.completed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_there_when_a_delay_a_backoff_or_a_pause_is_over() {
    let (_, _, queue) = simulated(LEASE);
    let (sender, mut seen) = mpsc::unbounded_channel();
    let hired = Hired::new(queue.clone(), WorkerOptions::default(), move |delivery| {
        let sender = sender.clone();
        async move {
            sender.send(delivery.payload().to_string()).unwrap();
            match (delivery.payload().as_str(), delivery.number()) {
                ("3", 1) => Err(Failure::new("once").retry_after(Duration::from_millis(300))),
                _ => Ok(None),
            }
        }
    });
    let prompt = Duration::from_millis(50);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let delay = Duration::from_millis(700);
    let before = tokio::time::Instant::now();
    queue.enqueue(message("1").delay(delay)).await.unwrap();
    seen.recv().await.unwrap();
    assert!((delay..delay + prompt).contains(&before.elapsed()), "{:?}", before.elapsed());
    queue.pause("for a moment").await.unwrap();
    queue.enqueue(message("2")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(seen.try_recv().is_err());
    let before = tokio::time::Instant::now();
    queue.resume().await.unwrap();
    seen.recv().await.unwrap();
    assert!(before.elapsed() < prompt, "{:?}", before.elapsed());
    queue.enqueue(message("3")).await.unwrap();
    seen.recv().await.unwrap();
    let before = tokio::time::Instant::now();
    seen.recv().await.unwrap();
    assert!(before.elapsed() < Duration::from_millis(300) + prompt, "{:?}", before.elapsed());
    assert_eq!(hired.stop().await.completed, 3);
}

#[tokio::test(start_paused = true)]
async fn a_worker_outlasts_a_store_that_is_away_for_a_while() {
    let (_, _, queue) = simulated(LEASE);
    let rates = keyward_testkit::Rates { fail: 0.5, ..Default::default() };
    let memory = Memory::with(keyward_memory::Options::default(), VirtualClock::new());
    let engine = FaultyEngine::new(Arc::new(memory), Faults::seeded(3, rates));
    let healthy = Store::from_arc(engine.inner());
    let clock = VirtualClock::new();
    let sure = Queue::new(healthy, "q", clock, queue.options().clone()).unwrap();
    let shaky = Queue::new(Store::new(engine), "q", clock, queue.options().clone()).unwrap();
    sure.enqueue_all((0..20).map(|n| message(&n.to_string())).collect()).await.unwrap();
    let hired = Hired::new(shaky, WorkerOptions::default(), |_| async { Ok(None) });
    while sure.stats().await.unwrap() != emptied() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(hired.stop().await.completed, 20);
}

fn emptied() -> keyward_queue::QueueStats {
    let none = keyward_queue::Count::default();
    keyward_queue::QueueStats {
        ready: none,
        delayed: none,
        claimed: none,
        dead: none,
        oldest: None,
        paused: None,
    }
}
