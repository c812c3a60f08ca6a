//! Attempts that are gone on with by their tickets, in other processes than the one that claimed.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded, Store};
use keyward_memory::Memory;
use keyward_queue::{
    Activity, Claimant, Ended, Failure, JobOptions, Jobs, Progress, Queue, Status, Ticket,
};
use keyward_stores::{Place, on_engines, on_every_engine};
use keyward_testkit::{Fault, Faults, FaultyEngine, TestClock, When};

use crate::fixture::{Fixture, LEASE, json, message, one, options};

on_every_engine!(
    an_attempt_is_gone_on_with_in_another_process,
    a_ticket_is_worth_nothing_once_another_took_over,
    an_attempt_that_failed_is_told_so_again,
    what_is_given_back_by_a_ticket_stands_where_it_stood,
);

// PostgreSQL goes by its own clock, which no test can move.
on_engines!(
    memory_by_its_clock: Memory, embedded_by_its_clock: Embedded;
    signs_of_life_keep_to_the_lease_of_the_claimant,
);

async fn an_attempt_is_gone_on_with_in_another_process(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    let job = JobOptions { id: Some("j".into()), ..JobOptions::default() };
    jobs.submit("q", json("1"), job).await.unwrap();
    let claimant = Claimant { holder: Some("far away".into()), lease: None };
    let claimed = fixture.queue.claim_as(&claimant, 1).await.unwrap().attempts.pop().unwrap();
    assert_eq!(claimed.holder(), "far away");
    let (ticket, other) = (claimed.ticket(), fixture.other());
    drop(claimed);

    let attempt = other.attempt(&ticket).await.unwrap().unwrap();
    assert_eq!((attempt.number(), attempt.payload().as_str()), (1, "1"));
    assert_eq!(attempt.holder(), "far away");
    assert_eq!(other.beat(&ticket).await.unwrap(), Ended::Accepted);
    let progress = Some(Progress { done: 1, total: Some(2) });
    let activity = Activity { name: "halving".into(), progress, ..Activity::default() };
    assert_eq!(other.tell(&ticket, activity.clone()).await.unwrap(), Ended::Accepted);
    let told = Status::Activity(Activity { attempt: 1, ..activity.clone() });
    assert_eq!(jobs.status("j").await.unwrap(), Some(told));

    let foreign = Ticket { nonce: "0".repeat(32), ..ticket.clone() };
    for queue in [&other, &fixture.queue] {
        assert_eq!(queue.complete(&foreign, None).await.unwrap(), Ended::Refused);
        assert_eq!(queue.tell(&foreign, activity.clone()).await.unwrap(), Ended::Refused);
        assert!(queue.attempt(&foreign).await.unwrap().is_none());
    }
    // Again and again, wherever: the first one counts.
    for (queue, result) in [(&other, "7"), (&fixture.queue, "8"), (&other, "9")] {
        let ended = queue.complete(&ticket, Some(json(result))).await.unwrap();
        assert_eq!(ended, Ended::Accepted);
    }
    assert_eq!(jobs.status("j").await.unwrap(), Some(Status::Result(json("7"))));
    assert_eq!(other.metrics().completed.get() + fixture.queue.metrics().completed.get(), 1);
    assert_eq!(other.fail(&ticket, Failure::new("no")).await.unwrap(), Ended::Refused);
    assert_eq!(other.beat(&ticket).await.unwrap(), Ended::Refused);
    assert_eq!(other.complete(&foreign, None).await.unwrap(), Ended::Refused);
}

async fn a_ticket_is_worth_nothing_once_another_took_over(place: Place) {
    let fixture = Fixture::new(place).await;
    fixture.enqueue("1").await;
    let lost = fixture.claim_one().await.ticket();
    let other = fixture.other();
    let held = fixture.claim_in_time(&other).await;
    let queue = &fixture.queue;
    assert_eq!(queue.beat(&lost).await.unwrap(), Ended::Refused);
    assert_eq!(queue.complete(&lost, None).await.unwrap(), Ended::Refused);
    assert_eq!(queue.fail(&lost, Failure::new("no")).await.unwrap(), Ended::Refused);
    assert_eq!(queue.give_back(&lost).await.unwrap(), Ended::Refused);
    assert_eq!(queue.complete(&held.ticket(), None).await.unwrap(), Ended::Accepted);
    assert_eq!(queue.complete(&lost, None).await.unwrap(), Ended::Refused);
}

async fn an_attempt_that_failed_is_told_so_again(place: Place) {
    let fixture = Fixture::new(place).await;
    let queue = &fixture.queue;
    let id = fixture.enqueue("1").await;
    let ticket = fixture.claim_one().await.ticket();
    let failure = || Failure::new("once").retry_after(Duration::ZERO);
    for _ in 0..2 {
        assert_eq!(queue.fail(&ticket, failure()).await.unwrap(), Ended::Accepted);
        assert_eq!(queue.fail(&ticket, Failure::new("other")).await.unwrap(), Ended::Refused);
    }
    assert_eq!(queue.message(&id).await.unwrap().unwrap().retry_count, 1);
    let last = fixture.claim_in_time(queue).await.ticket();
    assert_eq!(queue.fail(&ticket, failure()).await.unwrap(), Ended::Accepted);
    for _ in 0..2 {
        assert_eq!(queue.fail(&last, Failure::permanent("bad")).await.unwrap(), Ended::Accepted);
        assert_eq!(queue.complete(&last, None).await.unwrap(), Ended::Refused);
    }
    assert_eq!(queue.dead_letter(&id).await.unwrap().unwrap().retry_count, 2);
    assert_eq!((queue.metrics().failed.get(), queue.metrics().dead_lettered.get()), (2, 1));
}

async fn what_is_given_back_by_a_ticket_stands_where_it_stood(place: Place) {
    let fixture = Fixture::new(place).await;
    fixture.enqueue("1").await;
    fixture.enqueue("2").await;
    let ticket = fixture.claim_one().await.ticket();
    assert_eq!(fixture.other().give_back(&ticket).await.unwrap(), Ended::Accepted);
    assert_eq!(fixture.queue.give_back(&ticket).await.unwrap(), Ended::Refused);
    let again = fixture.claim_one().await;
    assert_eq!((again.payload().as_str(), again.number()), ("1", 1));
}

async fn signs_of_life_keep_to_the_lease_of_the_claimant(place: Place) {
    let fixture = Fixture::new(place).await;
    fixture.enqueue("1").await;
    let claimant = Claimant { lease: Some(LEASE * 10), holder: None };
    let attempt = fixture.queue.claim_as(&claimant, 1).await.unwrap().attempts.pop().unwrap();
    assert_eq!(attempt.lease(), LEASE * 10);
    let other = fixture.other();
    for _ in 0..3 {
        fixture.place.clock().advance(LEASE * 9);
        assert!(other.claim(1).await.unwrap().attempts.is_empty());
        assert_eq!(other.beat(&attempt.ticket()).await.unwrap(), Ended::Accepted);
    }
    fixture.place.clock().advance(LEASE * 11);
    assert_eq!(one(&other).await.number(), 2);
    let too_long = "x".repeat(400);
    let claimant = Claimant { holder: Some(too_long), lease: Some(Duration::ZERO) };
    let refused = fixture.queue.claim_as(&claimant, 1).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unsupported);
}

/// A process that ends a job by its ticket, on an engine where something goes wrong.
struct Setting {
    engine: FaultyEngine,
    sure: Queue,
    jobs: Jobs,
    ticket: Ticket,
}

impl Setting {
    async fn new(faults: Faults) -> Self {
        let clock = TestClock::new();
        let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
        let engine = FaultyEngine::new(Arc::new(memory), faults);
        let store = Store::from_arc(engine.inner());
        let jobs = Jobs::new(store, clock.clone(), options()).unwrap();
        let job = JobOptions { id: Some("j".into()), ..JobOptions::default() };
        jobs.submit("q", json("1"), job).await.unwrap();
        let sure = jobs.queue("q").unwrap();
        let ticket = one(&sure).await.ticket();
        Self { engine, sure, jobs, ticket }
    }

    fn unsure(&self, engine: FaultyEngine) -> Queue {
        Queue::new(Store::new(engine), "q", TestClock::new(), options()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_broke_off_anywhere_is_settled_by_the_next_process() {
    let calls = {
        let whole = Setting::new(Faults::none()).await;
        let queue = whole.unsure(whole.engine.clone());
        queue.complete(&whole.ticket, Some(json("7"))).await.unwrap();
        whole.engine.calls()
    };
    assert!(calls >= 2);
    for call in 0..calls {
        let faults =
            [When::Before, When::After].map(|when| [Fault::Unanswered(when), Fault::Crash(when)]);
        for fault in faults.into_iter().flatten().chain([Fault::Fail, Fault::Late(Duration::MAX)]) {
            let what = format!("{fault:?} at call {call}");
            let setting = Setting::new(Faults::script([(call, fault)])).await;
            let queue = setting.unsure(setting.engine.clone());
            if let Ok(ended) = queue.complete(&setting.ticket, Some(json("7"))).await {
                assert_eq!(ended, Ended::Accepted, "{what}");
            }
            // Whatever the first was told, and whether or not it was done.
            let again = setting.sure.complete(&setting.ticket, Some(json("7"))).await.unwrap();
            assert_eq!(again, Ended::Accepted, "{what}");
            for landed in setting.engine.land().await {
                assert!(!landed.unwrap().is_applied(), "{what}");
            }
            let status = setting.jobs.status("j").await.unwrap();
            assert_eq!(status, Some(Status::Result(json("7"))), "{what}");
            let stats = setting.sure.stats().await.unwrap();
            assert_eq!((stats.ready.count, stats.claimed.count), (0, 0), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_broke_off_anywhere_is_settled_by_the_next_process() {
    for call in 0..2 {
        for when in [When::Before, When::After] {
            for fault in [Fault::Unanswered(when), Fault::Crash(when)] {
                let what = format!("{fault:?} at call {call}");
                let setting = Setting::new(Faults::script([(call, fault)])).await;
                let queue = setting.unsure(setting.engine.clone());
                if let Ok(ended) = queue.fail(&setting.ticket, Failure::new("x")).await {
                    assert_eq!(ended, Ended::Accepted, "{what}");
                }
                let again = setting.sure.fail(&setting.ticket, Failure::new("x")).await.unwrap();
                assert_eq!(again, Ended::Accepted, "{what}");
                let message = setting.sure.message("j").await.unwrap().unwrap();
                assert_eq!(message.retry_count, 1, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn twins_that_complete_at_once_are_both_told_that_it_is_done() {
    let setting = Setting::new(Faults::none()).await;
    // The first has read that the attempt is current when the other ends it.
    let script = Faults::script([(1, Fault::Yield(When::Before, 50))]);
    let slow = FaultyEngine::new(setting.engine.inner(), script);
    let slow = setting.unsure(slow);
    let (one, other) = tokio::join!(
        slow.complete(&setting.ticket, Some(json("7"))),
        setting.sure.complete(&setting.ticket, Some(json("7"))),
    );
    assert_eq!((one.unwrap(), other.unwrap()), (Ended::Accepted, Ended::Accepted));
    assert_eq!((slow.metrics().completed.get(), slow.metrics().refused.get()), (0, 0));
}

#[tokio::test]
async fn a_message_that_waits_for_no_job_is_told_nothing() {
    let place = Place::new(keyward_stores::Kind::Memory);
    let fixture = Fixture::new(place).await;
    fixture.queue.enqueue(message("1")).await.unwrap();
    let ticket = fixture.claim_one().await.ticket();
    let activity = Activity { name: "x".into(), ..Activity::default() };
    assert_eq!(fixture.queue.tell(&ticket, activity).await.unwrap(), Ended::Accepted);
    assert!(fixture.keys("job:").await.is_empty());
}
