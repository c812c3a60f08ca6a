//! Processes that end at any call to the engine.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded, Json, Scan, Store};
use keyward_key::KeyRange;
use keyward_memory::Memory;
use keyward_queue::{
    Ended, Failure, JobOptions, Jobs, Options, Queue, Result, Retry, Status, queue_names,
};
use keyward_testkit::{Fault, Faults, FaultyEngine, TestClock, When};

use crate::fixture::{json, message};

fn options() -> Options {
    let retry = Retry { attempts_max: 5, ..Retry::default() };
    Options { lease: Duration::from_secs(10), retry, seed: Some(4), ..Options::default() }
}

struct Setting {
    engine: FaultyEngine,
    clock: TestClock,
}

impl Setting {
    fn new(faults: Faults) -> Self {
        let clock = TestClock::new();
        let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
        Self { engine: FaultyEngine::new(Arc::new(memory), faults), clock }
    }

    fn queue(&self, engine: FaultyEngine) -> Queue {
        Queue::new(Store::new(engine), "q", self.clock.clone(), options()).unwrap()
    }

    fn jobs(&self, engine: FaultyEngine) -> Jobs {
        Jobs::new(Store::new(engine), self.clock.clone(), options()).unwrap()
    }
}

/// The life of two messages and a job: enqueued together, one failing, one completed, one put back.
async fn life(queue: &Queue, jobs: &Jobs, clock: &TestClock) -> Result<()> {
    let messages = vec![message("1").id("a"), message("2").id("b")];
    queue.enqueue_all(messages).await?;
    let job = JobOptions { id: Some("j".into()), ..JobOptions::default() };
    jobs.submit("q", json("3"), job).await?;
    // Twice: what crashed workers held is taken over, what failed is tried again.
    for _ in 0..4 {
        for attempt in queue.claim(9).await?.attempts {
            attempt.beat().await?;
            match (attempt.payload().as_str(), attempt.number()) {
                ("2", 1) => drop(attempt.fail(Failure::new("once")).await?),
                ("1", 1) => drop(attempt.give_back().await?),
                _ => drop(attempt.complete(Some(Json::from_integer(1))).await?),
            }
        }
        for attempt in queue.claim(9).await?.attempts {
            attempt.complete(Some(Json::from_integer(1))).await?;
        }
        clock.advance(Duration::from_secs(60));
    }
    Ok(())
}

/// Everything in the store has its counterpart, and is done in the end.
async fn check(setting: &Setting, what: &str) {
    let store = Store::from_arc(setting.engine.inner());
    let scan = Scan::new(KeyRange::all()).limit(1_000);
    let rows = store.scan(&scan).await.unwrap().rows;
    let below = |prefix: &str| {
        rows.iter().map(|row| row.key.to_string()).filter(|key| key.starts_with(prefix)).count()
    };
    let entries = below("system:queue:q:ready:") + below("system:queue:q:due:");
    assert_eq!(entries, below("queue:q:"), "{what}: {rows:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_crashed_anywhere_is_finished_by_the_next_process() {
    let whole = Setting::new(Faults::none());
    let (queue, jobs) = (whole.queue(whole.engine.clone()), whole.jobs(whole.engine.clone()));
    life(&queue, &jobs, &whole.clock).await.unwrap();
    let calls = whole.engine.calls();
    assert!(calls > 15, "{calls}");
    check(&whole, "whole").await;
    for call in 0..calls {
        for fault in [When::Before, When::After].map(Fault::Crash) {
            let what = format!("{fault:?} at call {call}");
            let setting = Setting::new(Faults::script([(call, fault)]));
            let engine = setting.engine.clone();
            let (queue, jobs) = (setting.queue(engine.clone()), setting.jobs(engine.clone()));
            let ended = life(&queue, &jobs, &setting.clock).await;
            assert!(ended.is_err() || engine.is_crashed(), "{what}");
            check(&setting, &what).await;
            let revived = engine.revive();
            let (queue, jobs) = (setting.queue(revived.clone()), setting.jobs(revived));
            life(&queue, &jobs, &setting.clock).await.unwrap();
            check(&setting, &what).await;
            let stats = queue.stats().await.unwrap();
            assert_eq!((stats.ready.count, stats.delayed.count, stats.claimed.count), (0, 0, 0));
            assert_eq!(stats.dead.count, 0, "{what}");
            let status = jobs.status("j").await.unwrap();
            assert_eq!(status, Some(Status::Result(json("1"))), "{what}");
        }
    }
}

/// Where only answers are lost, no operation fails, none is done twice, and each is told as it was.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_found_out_about() {
    let calls = {
        let whole = Setting::new(Faults::none());
        told(&whole).await;
        whole.engine.calls()
    };
    for call in 0..calls {
        for when in [When::Before, When::After] {
            let setting = Setting::new(Faults::script([(call, Fault::Unanswered(when))]));
            // A read that fails has changed nothing; only commits are about what is known.
            let is_commit = {
                let whole = Setting::new(Faults::none());
                told(&whole).await;
                whole.engine.trace()[usize::try_from(call).unwrap()].0
                    == keyward_testkit::Call::Commit
            };
            if is_commit {
                told(&setting).await;
            }
        }
    }
}

async fn told(setting: &Setting) {
    let queue = setting.queue(setting.engine.clone());
    let jobs = setting.jobs(setting.engine.clone());
    let added = queue.enqueue(message("1")).await.unwrap();
    assert!(matches!(added, keyward_queue::Enqueued::Added { .. }), "{added:?}");
    let attempt = queue.claim(1).await.unwrap().attempts.pop().unwrap();
    assert_eq!(attempt.number(), 1);
    assert_eq!(attempt.fail(Failure::permanent("x")).await.unwrap(), Ended::Accepted);
    assert_eq!(queue.requeue(attempt.id()).await.unwrap(), keyward_queue::Requeued::Done);
    let attempt = queue.claim(1).await.unwrap().attempts.pop().unwrap();
    assert_eq!(attempt.complete(None).await.unwrap(), Ended::Accepted);
    let job = jobs.submit("q", json("2"), JobOptions::default()).await.unwrap();
    assert!(matches!(job, keyward_queue::Submitted::Added { .. }), "{job:?}");
    let attempt = queue.claim(1).await.unwrap().attempts.pop().unwrap();
    assert_eq!(attempt.complete(Some(json("2"))).await.unwrap(), Ended::Accepted);
    queue.pause("x").await.unwrap();
    queue.resume().await.unwrap();
    queue.enqueue(message("3").id("k")).await.unwrap();
    assert!(queue.drop_message("k").await.unwrap());
    assert_eq!(queue.stats().await.unwrap().ready.count, 0);
    assert_eq!(queue_names(queue.store(), 9).await.unwrap(), ["q"]);
}

/// Whoever cannot tell whether something was done says so, and not that it was not.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_and_then_no_store_leave_the_outcome_unknown() {
    for first in [When::Before, When::After] {
        // The commit's answer is lost, and from then on nothing is answered.
        let lost = (0, Fault::Unanswered(first));
        let faults = std::iter::once(lost).chain((1..100).map(|call| (call, Fault::Fail)));
        let setting = Setting::new(Faults::script(faults));
        let refused = setting.queue(setting.engine.clone()).enqueue(message("1")).await;
        assert_eq!(refused.unwrap_err().code(), Code::OutcomeUnknown);
    }
    for first in [When::Before, When::After] {
        let lost = (0, Fault::Unanswered(first));
        let faults = std::iter::once(lost).chain((1..100).map(|call| (call, Fault::Fail)));
        let setting = Setting::new(Faults::script(faults));
        let jobs = setting.jobs(setting.engine.clone());
        let refused = jobs.submit("q", json("1"), JobOptions::default()).await;
        assert_eq!(refused.unwrap_err().code(), Code::OutcomeUnknown);
    }
}
