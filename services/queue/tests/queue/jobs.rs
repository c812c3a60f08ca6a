//! Jobs: submitted, followed, cancelled, kept for a while.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{Code, Coded, Json, WatchSupport};
use keyward_memory::Memory;
use keyward_queue::{
    Cancelled, Ended, Error, Failure, JobOptions, Jobs, Requeued, Status, Submitted, Worker,
    WorkerOptions,
};
use keyward_stores::{Place, on_databases, on_engines, on_every_engine};
use keyward_testkit::{Faults, FaultyEngine, TestClock};
use tokio::sync::{Notify, oneshot};

use crate::fixture::{Fixture, json, message, one, options};

on_every_engine!(
    a_numeric_result_is_a_result_and_never_an_activity,
    a_job_submitted_again_is_a_duplicate,
    a_status_follows_the_job_and_reading_it_twice_gives_the_same,
    a_watcher_sees_every_stage_and_then_the_end,
    a_cancelled_job_cannot_be_completed,
    a_job_whose_worker_died_is_taken_over,
    a_failed_job_leaves_a_trace_and_can_be_put_back,
    jobs_are_listed_page_by_page,
    a_finished_job_can_be_kept_for_ever,
);
on_databases!(a_status_follows_the_job_and_reading_it_twice_gives_the_same);

on_engines!(
    memory_by_its_clock: Memory, embedded_by_its_clock: Embedded;
    a_finished_job_is_kept_for_its_retention,
);

async fn submit(jobs: &Jobs, payload: &str) -> String {
    let submitted = jobs.submit("q", json(payload), JobOptions::default()).await.unwrap();
    assert!(matches!(submitted, Submitted::Added { .. }));
    submitted.id().to_owned()
}

fn activity(status: Option<Status>) -> (String, u32) {
    match status {
        Some(Status::Activity(activity)) => (activity.name, activity.attempt),
        other => panic!("{other:?}"),
    }
}

/// Status used to be one field of either a number (an activity's place in a list) or the result: a
/// job whose result was 3 was fetching for ever.
async fn a_numeric_result_is_a_result_and_never_an_activity(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    for result in ["3", "0", "11", "\"extracting\"", r#"{"activity":{"name":"x"}}"#, "null"] {
        let id = submit(&jobs, "1").await;
        let attempt = fixture.claim_one().await;
        assert_eq!(attempt.complete(Some(json(result))).await.unwrap(), Ended::Accepted);
        let status = jobs.status(&id).await.unwrap().unwrap();
        assert_eq!(status, Status::Result(json(result)));
        assert!(status.is_final());
        assert_eq!(status.to_json().unwrap(), json(&format!("{{\"result\":{result}}}")));
        let statuses: Vec<_> = jobs.watch(&id).map(Result::unwrap).collect().await;
        assert_eq!(statuses, [Status::Result(json(result))]);
    }
}

async fn a_job_submitted_again_is_a_duplicate(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    let options = || JobOptions { id: Some("j".into()), ..JobOptions::default() };
    let again = async || jobs.submit("q", json("1"), options()).await.unwrap();
    assert_eq!(again().await, Submitted::Added { id: "j".into() });
    assert_eq!(again().await, Submitted::Duplicate { id: "j".into() });
    for (queue, payload) in [("q", "2"), ("r", "1")] {
        let refused = jobs.submit(queue, json(payload), options()).await.unwrap_err();
        assert_eq!(refused.code(), Code::IdTaken);
    }
    one(&fixture.queue).await.complete(Some(json("9"))).await.unwrap();
    // Also when it is done.
    assert_eq!(again().await, Submitted::Duplicate { id: "j".into() });
    assert_eq!(jobs.status("j").await.unwrap(), Some(Status::Result(json("9"))));
    // An id that a plain message has.
    fixture.queue.enqueue(message("1").id("m")).await.unwrap();
    let options = JobOptions { id: Some("m".into()), ..JobOptions::default() };
    let refused = jobs.submit("q", json("1"), options).await.unwrap_err();
    assert!(matches!(refused, Error::IdTaken { .. }));
    assert_eq!(jobs.status("m").await.unwrap(), None);
}

async fn a_status_follows_the_job_and_reading_it_twice_gives_the_same(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    let id = submit(&jobs, "1").await;
    let twice = async || {
        let status = jobs.status(&id).await.unwrap();
        assert_eq!(jobs.status(&id).await.unwrap(), status);
        status
    };
    assert_eq!(activity(twice().await), ("scheduling".into(), 1));
    let attempt = fixture.claim_one().await;
    assert_eq!(activity(twice().await), ("running".into(), 1));
    attempt.fail(Failure::new("no paper")).await.unwrap();
    match twice().await {
        Some(Status::Activity(activity)) => {
            assert_eq!((activity.name.as_str(), activity.attempt), ("scheduling", 2));
            assert_eq!(activity.detail.as_deref(), Some("no paper"));
        }
        other => panic!("{other:?}"),
    }
    let attempt = fixture.claim_in_time(&fixture.queue).await;
    assert_eq!(activity(twice().await), ("running".into(), 2));
    attempt.complete(None).await.unwrap();
    assert_eq!(twice().await, Some(Status::Result(json("null"))));
    assert_eq!(jobs.status("unheard of").await.unwrap(), None);
}

async fn a_watcher_sees_every_stage_and_then_the_end(place: Place) {
    let fixture = Fixture::new(place).await;
    watched(fixture.jobs()).await;
}

/// Runs a job in a worker that waits for its watcher at each stage.
async fn watched(jobs: Jobs) {
    let id = submit(&jobs, "1").await;
    let mut statuses = jobs.watch(&id);
    let mut next = async || statuses.next().await.map(Result::unwrap);
    assert_eq!(activity(next().await), ("scheduling".into(), 1));
    let (stop, stopped) = oneshot::channel::<()>();
    let seen = Arc::new(Notify::new());
    let told = seen.clone();
    let worker = Worker::new(jobs.queue("q").unwrap(), WorkerOptions::default());
    let working = tokio::spawn(async move {
        let handler = move |delivery: keyward_queue::Delivery| {
            let seen = seen.clone();
            async move {
                delivery.activity("extracting", Some("page 1")).await?;
                seen.notified().await;
                delivery.activity("translating", None).await?;
                seen.notified().await;
                Ok(Some(Json::from_integer(7)))
            }
        };
        worker.run(handler, async { drop(stopped.await) }).await.unwrap()
    });
    let mut seen_names = Vec::new();
    let last = loop {
        match next().await.unwrap() {
            Status::Activity(activity) => {
                if activity.name != "running" {
                    told.notify_one();
                    seen_names.push(activity.name);
                }
            }
            status => break status,
        }
    };
    assert_eq!(seen_names, ["extracting", "translating"]);
    assert_eq!(last, Status::Result(json("7")));
    assert_eq!(next().await, None);
    stop.send(()).unwrap();
    assert_eq!(working.await.unwrap().completed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_the_end_also_where_nothing_can_be_watched() {
    let memory = Memory::with(keyward_memory::Options::default(), TestClock::new());
    let engine = FaultyEngine::new(Arc::new(memory), Faults::none())
        .acting_as(|capabilities| capabilities.watch = WatchSupport::Unsupported);
    let store = keyward_engine::Store::new(engine);
    watched(Jobs::new(store, TestClock::new(), options()).unwrap()).await;
}

async fn a_cancelled_job_cannot_be_completed(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    // In line.
    let id = submit(&jobs, "1").await;
    assert_eq!(jobs.cancel(&id, "ada").await.unwrap(), Cancelled::Done);
    assert!(fixture.queue.claim(9).await.unwrap().attempts.is_empty());
    // In somebody's hands.
    let id = submit(&jobs, "2").await;
    let attempt = fixture.claim_one().await;
    assert_eq!(jobs.cancel(&id, "ada").await.unwrap(), Cancelled::Done);
    assert_eq!(attempt.complete(Some(json("1"))).await.unwrap(), Ended::Refused);
    let Some(Status::Trace(trace)) = jobs.status(&id).await.unwrap() else { panic!() };
    assert_eq!((trace.kind.as_str(), trace.message.as_str()), ("cancelled", "cancelled by ada"));
    // Done, or not there.
    let id = submit(&jobs, "3").await;
    fixture.claim_one().await.complete(Some(json("3"))).await.unwrap();
    let finished = jobs.cancel(&id, "ada").await.unwrap();
    assert_eq!(finished, Cancelled::Finished(Status::Result(json("3"))));
    assert_eq!(jobs.cancel("unheard of", "ada").await.unwrap(), Cancelled::Unknown);
}

async fn a_job_whose_worker_died_is_taken_over(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    let id = submit(&jobs, "1").await;
    let dead = fixture.claim_one().await;
    let attempt = fixture.claim_in_time(&fixture.other()).await;
    assert_eq!(activity(jobs.status(&id).await.unwrap()), ("running".into(), 2));
    assert_eq!(attempt.complete(Some(json("2"))).await.unwrap(), Ended::Accepted);
    assert_eq!(dead.complete(Some(json("1"))).await.unwrap(), Ended::Refused);
    assert_eq!(jobs.status(&id).await.unwrap(), Some(Status::Result(json("2"))));
}

async fn a_failed_job_leaves_a_trace_and_can_be_put_back(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    let id = submit(&jobs, "1").await;
    fixture.claim_one().await.fail(Failure::permanent("no such page")).await.unwrap();
    let Some(Status::Trace(trace)) = jobs.status(&id).await.unwrap() else { panic!() };
    assert_eq!(
        (trace.kind.as_str(), trace.message.as_str(), trace.attempts),
        ("failed", "no such page", 1)
    );
    assert_eq!(fixture.queue.requeue(&id).await.unwrap(), Requeued::Done);
    assert_eq!(activity(jobs.status(&id).await.unwrap()).0, "scheduling");
    fixture.claim_one().await.complete(Some(json("1"))).await.unwrap();
    assert_eq!(jobs.status(&id).await.unwrap(), Some(Status::Result(json("1"))));
    // Dropped from the queue, it says so too.
    let id = submit(&jobs, "2").await;
    assert!(fixture.queue.drop_message(&id).await.unwrap());
    let Some(Status::Trace(trace)) = jobs.status(&id).await.unwrap() else { panic!() };
    assert_eq!(trace.kind, "dropped");
}

async fn jobs_are_listed_page_by_page(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    for n in 0..7 {
        let options = JobOptions { id: Some(format!("j{n}")), ..JobOptions::default() };
        jobs.submit("q", json("1"), options).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = jobs.list(after.as_deref(), 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        seen.extend(page.into_iter().map(|job| job.id));
    }
    assert_eq!(seen, (0..7).map(|n| format!("j{n}")).collect::<Vec<_>>());
}

async fn a_finished_job_is_kept_for_its_retention(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    let retention = Duration::from_secs(60);
    let options = JobOptions { retention, ..JobOptions::default() };
    let id = jobs.submit("q", json("1"), options).await.unwrap().id().to_owned();
    // However long it takes, it is kept until then.
    fixture.place.clock().advance(retention * 10);
    fixture.claim_one().await.complete(Some(json("1"))).await.unwrap();
    fixture.place.clock().advance(retention - Duration::from_millis(1));
    assert_eq!(jobs.status(&id).await.unwrap(), Some(Status::Result(json("1"))));
    fixture.place.clock().advance(Duration::from_millis(1));
    assert_eq!(jobs.status(&id).await.unwrap(), None);
}

async fn a_finished_job_can_be_kept_for_ever(place: Place) {
    let fixture = Fixture::new(place).await;
    let jobs = fixture.jobs();
    let options = || JobOptions { retention: Duration::MAX, ..JobOptions::default() };
    let done = jobs.submit("q", json("1"), options()).await.unwrap().id().to_owned();
    fixture.claim_one().await.complete(Some(json("1"))).await.unwrap();
    let failed = jobs.submit("q", json("2"), options()).await.unwrap().id().to_owned();
    fixture.claim_one().await.fail(Failure::permanent("no")).await.unwrap();
    fixture.place.clock().advance(Duration::from_secs(100 * 365 * 86_400));
    assert_eq!(jobs.status(&done).await.unwrap(), Some(Status::Result(json("1"))));
    let status = jobs.status(&failed).await.unwrap();
    assert!(matches!(status, Some(Status::Trace(_))), "{status:?}");
}

#[tokio::test]
async fn putting_a_dead_letter_back_does_not_overwrite_another_job() {
    let clock = TestClock::new();
    let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
    let jobs = Jobs::new(keyward_engine::Store::new(memory), clock.clone(), options()).unwrap();
    let named = || JobOptions { id: Some("j".into()), ..JobOptions::default() };
    jobs.submit("a", json("1"), named()).await.unwrap();
    let a = jobs.queue("a").unwrap();
    one(&a).await.fail(Failure::permanent("no")).await.unwrap();
    // The record expires; the dead letter stays.
    clock.advance(2 * named().retention);
    let other = jobs.submit("b", json("2"), named()).await.unwrap();
    assert!(matches!(other, Submitted::Added { .. }));
    assert_eq!(a.requeue("j").await.unwrap(), Requeued::Occupied);
    let b = jobs.queue("b").unwrap();
    one(&b).await.complete(Some(json("\"of b\""))).await.unwrap();
    assert_eq!(a.requeue("j").await.unwrap(), Requeued::Occupied);
    assert_eq!(jobs.status("j").await.unwrap(), Some(Status::Result(json("\"of b\""))));
    // Once that one is gone too, there is room.
    clock.advance(2 * named().retention);
    assert_eq!(a.requeue("j").await.unwrap(), Requeued::Done);
    assert!(matches!(jobs.status("j").await.unwrap(), Some(Status::Activity(_))));
}
