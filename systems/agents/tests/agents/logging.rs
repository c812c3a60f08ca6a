//! What runs did.

use std::sync::Arc;
use std::time::Duration;

use keyward_agents::{Actor, Agents, LoggedOperation, Options, Set, UserData};
use keyward_engine::{Code, Coded, Json, Store, Version};
use keyward_records::{Precondition, Written};
use keyward_stores::{Place, on_engines};
use keyward_testkit::{Faults, FaultyEngine, Rates};

use crate::fixture::{Fixture, put, set};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded,
    postgres: Postgres;
    a_refused_change_is_logged_as_refused,
    a_run_is_logged_in_the_order_of_time,
);

async fn all(user: &UserData, run: &str) -> Vec<LoggedOperation> {
    let (mut lines, mut after) = (Vec::new(), None);
    loop {
        let page = user.operations(run, after, 2).await.unwrap();
        lines.extend(page.operations);
        after = page.next;
        if after.is_none() {
            return lines;
        }
    }
}

async fn a_refused_change_is_logged_as_refused(place: Place) {
    let fixture = Fixture::new(place).await;
    let ada = fixture.agents.user("ada", Actor::agent("planner").in_run("r"));
    let notes = ada.use_namespace("notes").unwrap();
    put(&notes, "k", "1").await;
    let absent = |value: &str| {
        Set::new(Json::parse(value.to_owned()).unwrap()).expecting(Precondition::Absent)
    };
    let refused = notes.set("k", absent("2")).await.unwrap();
    assert!(matches!(refused, Written::Conflicted { .. }));
    let other = Precondition::Version(Version::parse("no-such-version"));
    let refused = notes.delete_expecting("k", other).await.unwrap();
    assert!(matches!(refused, Written::Conflicted { .. }));
    let together = vec![("k".to_owned(), absent("3")), ("l".to_owned(), absent("4"))];
    let written = notes.set_many(together).await.unwrap();
    let done = written.iter().filter(|one| matches!(one, Written::Applied { .. })).count();
    fixture.agents.flush().await.unwrap();
    let lines = all(&ada, "r").await;
    let mut told = lines.iter().map(|line| (line.op.as_str(), line.refused, line.found));
    assert!(told.any(|it| it == ("set", true, Some(true))), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.op == "delete" && line.refused && line.found == Some(true))
    );
    let many = lines.iter().find(|line| line.op == "set_many").unwrap();
    assert!(many.refused && many.count == Some(done as u64), "{many:?}");
    assert!(lines.iter().all(|line| !line.refused || line.preview.is_none()), "{lines:?}");
}

async fn a_run_is_logged_in_the_order_of_time(place: Place) {
    let fixture = Fixture::new(place).await;
    let ada = fixture.agents.user("ada", Actor::agent("planner").in_run("r:1"));
    let notes = ada.use_namespace("notes").unwrap();
    let clock = fixture.place.clock();
    let long = format!("\"{}\"", "é".repeat(300));
    put(&notes, "k", &long).await;
    clock.advance(Duration::from_millis(1));
    assert!(notes.get("k").await.unwrap().is_some());
    clock.advance(Duration::from_millis(1));
    assert!(notes.get("none").await.unwrap().is_none());
    clock.advance(Duration::from_millis(1));
    assert!(notes.delete("k").await.unwrap());
    clock.advance(Duration::from_millis(1));
    ada.list_namespaces(None, 10).await.unwrap();
    // Not of this run, or of none.
    put(&fixture.namespace("notes"), "x", "1").await;
    let other = fixture.agents.user("ada", Actor::agent("planner").in_run("r2"));
    put(&other.use_namespace("notes").unwrap(), "y", "1").await;

    // As another process reads it.
    fixture.agents.flush().await.unwrap();
    let again = fixture.again().await;
    let lines = all(&again.user("ada", Actor::nobody()), "r:1").await;
    let told: Vec<(&str, Option<&str>, Option<bool>)> =
        lines.iter().map(|line| (line.op.as_str(), line.key.as_deref(), line.found)).collect();
    assert_eq!(
        told,
        [
            ("set", Some("k"), Some(false)),
            ("get", Some("k"), Some(true)),
            ("get", Some("none"), Some(false)),
            ("delete", Some("k"), Some(true)),
            ("list_namespaces", None, None),
        ]
    );
    assert_eq!(lines[1].preview.as_ref().unwrap().chars().count(), 200);
    assert_eq!(lines[1].agent.as_deref(), Some("planner"));
    assert_eq!(lines[1].namespace.as_deref(), Some("notes"));
    assert_eq!(lines[1].at, "2026-01-01T00:00:00.001000Z");
    let page = again.user("ada", Actor::nobody()).runs(None, 1).await.unwrap();
    assert_eq!(page.runs, ["r2"]);
    let rest = again.user("ada", Actor::nobody()).runs(page.next, 1).await.unwrap();
    assert_eq!((rest.runs, rest.next), (vec!["r:1".to_owned()], None));
    assert!(again.user("bob", Actor::nobody()).runs(None, 9).await.unwrap().runs.is_empty());
    // Another user's run of the same name is another one, and a cursor of one run is none of another.
    assert!(all(&again.user("bob", Actor::nobody()), "r:1").await.is_empty());
    let page = ada.operations("r:1", None, 1).await.unwrap();
    let stolen = ada.operations("r2", page.next.clone(), 1).await.unwrap_err();
    assert_eq!(stolen.code(), Code::BadCursor);
    let bob = fixture.agents.user("bob", Actor::nobody());
    assert_eq!(bob.operations("r:1", page.next, 1).await.unwrap_err().code(), Code::BadCursor);
}

#[tokio::test]
async fn lines_end_after_a_month_and_too_many_are_counted() {
    let place = Place::new(keyward_stores::Kind::Memory);
    let options = keyward_agents::Options { logged_max: 4, ..Default::default() };
    let store = place.store().await;
    let agents = keyward_agents::Agents::alone(store, options, place.clock().clone()).unwrap();
    let ada = agents.user("ada", Actor::agent("a").in_run("r"));
    let notes = ada.use_namespace("notes").unwrap();
    for n in 0..6 {
        assert!(notes.set(&n.to_string(), set("1")).await.unwrap().is_accepted());
    }
    assert_eq!((agents.gathered().lines, agents.gathered().lines_lost), (4, 2));
    assert_eq!(all(&ada, "r").await.len(), 4);
    assert_eq!(agents.gathered().lines, 0);
    place.clock().advance(Duration::from_secs(31 * 24 * 60 * 60));
    assert!(all(&ada, "r").await.is_empty());
}

/// What one flush writes, another one must not take for its own.
#[tokio::test(start_paused = true)]
async fn flushes_at_the_same_time_lose_no_line() {
    for seed in 0..20 {
        let clock = keyward_testkit::TestClock::new();
        let memory = keyward_memory::Memory::new();
        let rates = Rates { delay: 1.0, delay_max: Duration::from_millis(50), ..Rates::default() };
        let engine = FaultyEngine::new(Arc::new(memory), Faults::seeded(seed, rates));
        let store = Store::new(engine);
        let agents = Agents::alone(store, Options::default(), clock.clone()).unwrap();
        let ada = agents.user("ada", Actor::agent("a").in_run("r"));
        let notes = ada.use_namespace("notes").unwrap();
        let reads = async {
            for _ in 0..10 {
                let _ = notes.get("none").await.unwrap();
            }
        };
        let flushes = async {
            for _ in 0..5 {
                let (one, two) = tokio::join!(agents.flush(), ada.operations("r", None, 1));
                one.unwrap();
                two.unwrap();
            }
        };
        tokio::join!(reads, flushes);
        assert_eq!(all(&ada, "r").await.len(), 10, "seed {seed}");
    }
}
