//! Changes that take other data with them.

use std::sync::Arc;

use keyward_engine::{Commit, Expect, Json, Put, Store};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_queue::{Cancelled, Ended, Error, Failure, JobOptions, Jobs, Queue, Requeued, Result};
use keyward_testkit::{Call, Fault, Faults, FaultyEngine, TestClock, When};

use crate::fixture::{json, message, one, options};

/// A mark that may be made once.
fn mark(name: &str) -> (Key, Commit) {
    let key = Key::from_segments(["mark", name]).unwrap();
    let put = Put::new(Json::from_integer(1));
    (key.clone(), Commit::new().check(key.clone(), Expect::Absent).put(key, put))
}

/// What can be changed, each on a queue where it can be.
const CHANGES: [&str; 10] = [
    "enqueue",
    "keyed",
    "complete",
    "fail",
    "give back",
    "drop",
    "requeue",
    "bury",
    "pause",
    "cancel",
];

struct Setting {
    store: Store,
    engine: FaultyEngine,
    clock: TestClock,
}

impl Setting {
    fn new(faults: Faults) -> Self {
        let clock = TestClock::new();
        let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
        let engine = FaultyEngine::new(Arc::new(memory), faults);
        Self { store: Store::from_arc(engine.inner()), engine, clock }
    }

    /// Everything that the store has, but for marks.
    async fn content(&self) -> Vec<(String, String)> {
        let scan = keyward_engine::Scan::new(keyward_key::KeyRange::all()).limit(1_000);
        let rows = self.store.scan(&scan).await.unwrap().rows.into_iter();
        let rows = rows.filter(|row| row.key.first() != "mark");
        rows.map(|row| (row.key.to_string(), row.entry.unwrap().value.to_string())).collect()
    }

    /// Makes a change possible, and gives what makes it, with a rider.
    async fn change(&self, kind: &str, rider: Commit) -> Result<()> {
        let sure = Jobs::new(self.store.clone(), self.clock.clone(), options()).unwrap();
        let queue = sure.queue("q").unwrap();
        let id = "m";
        if !["enqueue", "keyed", "pause"].contains(&kind) && self.content().await.is_empty() {
            let job = JobOptions { id: Some(id.into()), ..JobOptions::default() };
            sure.submit("q", json("1"), job).await.unwrap();
            if ["complete", "fail", "give back", "requeue", "bury"].contains(&kind) {
                one(&queue).await;
            }
            if ["requeue", "bury"].contains(&kind) {
                let ticket = self.ticket(&queue, id).await;
                queue.fail(&ticket, Failure::permanent("no")).await.unwrap();
            }
        }
        let ticket = self.ticket(&queue, id).await;
        let store = Store::new(self.engine.clone());
        let jobs = Jobs::new(store, self.clock.clone(), options()).unwrap().with_rider(rider);
        let queue = jobs.queue("q").unwrap();
        match kind {
            "enqueue" => drop(queue.enqueue(message("1")).await?),
            "keyed" => drop(queue.enqueue(message("1").id("k")).await?),
            "complete" => assert_eq!(queue.complete(&ticket, None).await?, Ended::Accepted),
            "fail" => {
                assert_eq!(queue.fail(&ticket, Failure::new("x")).await?, Ended::Accepted);
            }
            "give back" => assert_eq!(queue.give_back(&ticket).await?, Ended::Accepted),
            "drop" => assert!(queue.drop_message(id).await?),
            "requeue" => assert_eq!(queue.requeue(id).await?, Requeued::Done),
            "bury" => assert!(queue.drop_dead_letter(id).await?),
            "pause" => queue.pause("why").await?,
            _ => assert_eq!(jobs.cancel(id, "me").await?, Cancelled::Done),
        }
        Ok(())
    }

    /// The ticket of the current attempt, as its row has it.
    async fn ticket(&self, queue: &Queue, id: &str) -> keyward_queue::Ticket {
        let key = Key::from_segments(["queue", queue.name(), id]).unwrap();
        let row = self.store.get(&key).await.unwrap().map(|entry| entry.value.to_string());
        let nonce = row.as_deref().and_then(|row| row.split("\"nonce\":\"").nth(1));
        let nonce = nonce.map_or("", |rest| &rest[..32]);
        keyward_queue::Ticket { id: id.to_owned(), nonce: nonce.to_owned() }
    }
}

#[tokio::test]
async fn a_rider_is_done_with_the_change_or_neither_is() {
    for kind in CHANGES {
        let setting = Setting::new(Faults::none());
        let (key, rider) = mark(kind);
        setting.change(kind, rider).await.unwrap();
        assert!(setting.store.get(&key).await.unwrap().is_some(), "{kind}");

        let setting = Setting::new(Faults::none());
        let (key, rider) = mark(kind);
        assert!(setting.store.commit(rider.clone()).await.unwrap().is_applied());
        let made = setting.store.get(&key).await.unwrap().unwrap().version;
        let refused = setting.change(kind, rider).await.unwrap_err();
        assert!(matches!(refused, Error::RiderRefused { ref failed } if failed == &[0]), "{kind}");
        assert_eq!(setting.store.get(&key).await.unwrap().unwrap().version, made, "{kind}");
        // Nothing is in the way of the same with another rider.
        setting.change(kind, mark("other").1).await.unwrap();
    }
}

/// A commit that was done without an answer is not done again: it is found out about, or its own
/// rider is in the way.
#[tokio::test(start_paused = true)]
async fn a_rider_keeps_a_change_from_being_made_twice() {
    for kind in CHANGES {
        let whole = Setting::new(Faults::none());
        whole.change(kind, mark(kind).1).await.unwrap();
        let calls = whole.engine.trace().into_iter().enumerate();
        let commits = calls.filter(|(_, (call, _))| *call == Call::Commit);
        for at in commits.map(|(at, _)| at as u64) {
            let faults = [When::Before, When::After].map(Fault::Unanswered);
            for fault in faults.into_iter().chain([Fault::Late(std::time::Duration::MAX)]) {
                let what = format!("{kind}, {fault:?} at call {at}");
                let setting = Setting::new(Faults::script([(at, fault)]));
                let (key, rider) = mark(kind);
                match setting.change(kind, rider).await {
                    Ok(()) | Err(Error::RiderRefused { .. }) => {}
                    Err(error) => panic!("{what}: {error}"),
                }
                assert!(setting.store.get(&key).await.unwrap().is_some(), "{what}");
                let content = setting.content().await;
                assert_eq!(content.len(), whole.content().await.len(), "{what}: {content:#?}");
                for landed in setting.engine.land().await {
                    assert!(!landed.unwrap().is_applied(), "{what}");
                }
            }
        }
    }
}
