//! What is done in the same commit as a change.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{
    Code, Coded, Commit, Engine, Error as StoreError, ErrorKind, Expect, Limits, Put, Scan, Store,
    Tier,
};
use keyward_key::{Key, KeyRange};
use keyward_records::{
    Caller, Error, Merge, Operation, Precondition, Records, Result, Space, Written,
};
use keyward_stores::{Place, on_engines, on_every_engine};
use keyward_testkit::{Call, Fault, Faults, FaultyEngine, When};

use crate::fixture::{Fixture, declare, draft, json, key, memory, own, put};

on_every_engine!(
    every_change_carries_the_rider_in_its_commit,
    a_change_that_comes_to_nothing_leaves_the_rider_undone,
    a_refused_rider_is_told_and_nothing_is_changed,
    what_a_rider_must_not_touch_is_refused,
);
on_engines!(dynamodb: DynamoDb; every_change_carries_the_rider_in_its_commit);

on_engines!(
    recoverable: Recoverable, advisory: Advisory;
    where_commits_have_one_key_a_rider_is_refused,
);

const TASKS: &str = r#"
[stores.app]
[spaces.tasks]
key = "user:{user}:tasks:{task}"
ownership = "user"
[spaces.tasks.indexes.by_state]
field = "state"
type = "text"
[spaces.tasks.indexes.by_name]
field = "name"
type = "text"
unique = true
"#;

/// Makes a mark that must not be there yet.
fn once(mark: &str) -> Commit {
    let mark = key(mark);
    Commit::new().check(mark.clone(), Expect::Absent).put(mark, Put::new(json("true")))
}

async fn dump(store: &Store) -> String {
    let page = store.scan(&Scan::new(KeyRange::all()).limit(1_000)).await.unwrap();
    format!("{:?}", page.rows)
}

fn refused_checks<T: std::fmt::Debug>(result: Result<T>) -> Vec<usize> {
    match result.unwrap_err() {
        Error::RiderRefused { failed } => failed,
        other => panic!("{other:?}"),
    }
}

fn store_kind(error: &Error) -> Option<ErrorKind> {
    match error {
        Error::Store(error) => Some(StoreError::kind(error)),
        _ => None,
    }
}

fn merge(part: &str) -> Merge {
    Merge::new(json(part))
}

async fn every_change_carries_the_rider_in_its_commit(place: Place) {
    let fixture = Fixture::new(place).await;
    let pages = fixture.space("pages", "ada");
    let (p, q, r) = (own(&pages, "p"), own(&pages, "q"), own(&pages, "r"));
    let ride = |mark: &str| pages.clone().with_rider(once(mark));
    let slug = |text: &str| draft(&format!(r#"{{"slug":"{text}"}}"#));
    let any = Precondition::Any;
    let mut made = vec![
        ("m:put", ride("m:put").put(&p, slug("a")).await),
        ("m:create", ride("m:create").create(&q, slug("b")).await),
        ("m:merge", ride("m:merge").merge(&p, merge(r#"{"n":1}"#), any.clone()).await),
    ];
    let update = ride("m:update").update(&p, |_| Ok(Some(json(r#"{"slug":"c"}"#)))).await;
    made.push(("m:update", update));
    made.push(("m:restore", ride("m:restore").restore(&p, 1, any.clone()).await));
    for (mark, written) in made {
        let written = written.unwrap();
        // What one commit writes has one version.
        let entry = fixture.store().get(&key(mark)).await.unwrap();
        assert_eq!(entry.map(|entry| entry.version).as_ref(), written.version(), "{mark}");
        assert!(written.version().is_some(), "{mark}");
    }
    let deleted = ride("m:delete").delete(&q, any.clone()).await.unwrap();
    assert_eq!(deleted, Written::Removed);
    // One that is made is enough, and the rider goes once.
    let several =
        vec![Operation::Put(r.clone(), slug("d")), Operation::Delete(own(&pages, "none"), any)];
    let adding = once("m:together").add(key("m:count"), 1);
    let written = pages.clone().with_rider(adding).together(several).await.unwrap();
    assert_eq!(written[1], Written::Unchanged { version: None });
    let count = fixture.store().get(&key("m:count")).await.unwrap().unwrap();
    assert_eq!(count.value.as_integer(), Some(1));
    assert_eq!(Some(&count.version), written[0].version());
    for mark in ["m:delete", "m:together"] {
        assert!(fixture.store().get(&key(mark)).await.unwrap().is_some(), "{mark}");
    }
    // One by one, each carries it.
    let each = vec![Operation::Put(p, slug("e")), Operation::Put(q, slug("f"))];
    let mut each = pages.clone().with_rider(once("m:each")).each(each).await.into_iter();
    assert!(each.next().unwrap().unwrap().is_accepted());
    assert_eq!(refused_checks(each.next().unwrap()), [0]);
    // Only the space it was given to has it.
    assert!(pages.put(&r, slug("g")).await.unwrap().is_accepted());
}

async fn a_change_that_comes_to_nothing_leaves_the_rider_undone(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    put(&notes, "n1", r#"{"title":"one"}"#).await;
    let (n1, none) = (own(&notes, "n1"), own(&notes, "none"));
    let before = dump(fixture.store()).await;
    let riding = notes.clone().with_rider(once("m:nothing"));
    let present = draft(r#"{"title":"x"}"#).expecting(Precondition::Present);
    let absent = Written::Conflicted { current: None };
    assert_eq!(riding.put(&none, present).await.unwrap(), absent);
    let created = riding.create(&n1, draft(r#"{"title":"x"}"#)).await.unwrap();
    assert!(matches!(created, Written::Conflicted { current: Some(_) }), "{created:?}");
    let deleted = riding.delete(&none, Precondition::Any).await.unwrap();
    assert_eq!(deleted, Written::Unchanged { version: None });
    let updated = riding.update(&n1, |_| Ok(None)).await.unwrap();
    assert!(matches!(updated, Written::Unchanged { version: Some(_) }), "{updated:?}");
    let several = vec![
        Operation::Put(own(&notes, "n2"), draft(r#"{"title":"x"}"#)),
        Operation::Delete(n1.clone(), Precondition::Absent),
    ];
    let together = riding.together(several).await.unwrap();
    assert!(!together[1].is_accepted());
    let invalid = riding.put(&n1, draft(r#"{"title":7}"#)).await.unwrap_err();
    assert_eq!(invalid.code(), Code::SchemaMismatch);
    assert_eq!(dump(fixture.store()).await, before);
}

async fn a_refused_rider_is_told_and_nothing_is_changed(place: Place) {
    let fixture = Fixture::new(place).await;
    let people = fixture.records.space("people", &Caller::operator()).unwrap();
    let (ada, bob, eve) = (key("user:ada"), key("user:bob"), key("user:eve"));
    let email = |text: &str| draft(&format!(r#"{{"email":"{text}"}}"#));
    assert!(people.create(&ada, email("a")).await.unwrap().is_accepted());
    assert!(people.create(&bob, email("b")).await.unwrap().is_accepted());
    let store = fixture.store();
    let held = store.put(key("m:held"), Put::new(json("1"))).await.unwrap();
    store.put(key("m:moved"), Put::new(json("1"))).await.unwrap();
    let before = dump(store).await;
    let riding = people.clone().with_rider(
        Commit::new()
            .check(key("m:held"), Expect::Version(held.clone()))
            .check(key("m:moved"), Expect::Version(held))
            .check(key("m:none"), Expect::Absent)
            .put(key("m:new"), Put::new(json("1"))),
    );
    // Told before anything else: whether the change could be made or not.
    assert_eq!(refused_checks(riding.put(&ada, email("c")).await), [1]);
    assert_eq!(refused_checks(riding.create(&eve, email("e")).await), [1]);
    assert_eq!(refused_checks(riding.create(&ada, email("c")).await), [1]);
    assert_eq!(refused_checks(riding.create(&eve, email("b")).await), [1]);
    assert_eq!(refused_checks(riding.delete(&eve, Precondition::Any).await), [1]);
    assert_eq!(refused_checks(riding.update(&ada, |_| Ok(None)).await), [1]);
    let several = vec![
        Operation::Put(ada.clone(), email("c")),
        Operation::Delete(bob.clone(), Precondition::Any),
    ];
    assert_eq!(refused_checks(riding.together(several).await), [1]);
    assert_eq!(dump(store).await, before);
    let error = riding.put(&ada, email("c")).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), (Code::RiderRefused, false));
    assert!(error.to_string().contains("number 1"), "{error}");
}

async fn what_a_rider_must_not_touch_is_refused(place: Place) {
    let fixture = Fixture::new(place).await;
    let templates =
        fixture.records.space("templates", &Caller::user("e").with_role("editor")).unwrap();
    let pages = fixture.space("pages", "ada");
    put(&pages, "p", r#"{"slug":"s"}"#).await;
    let (t, u) = (key("shared:templates:t"), key("shared:templates:u"));
    assert!(templates.put(&t, draft("1")).await.unwrap().is_accepted());
    let before = dump(fixture.store()).await;
    let set = |key: &Key| Commit::new().put(key.clone(), Put::new(json("1")));
    for (rider, says) in [
        (set(&key("index:slug:ada:s")), "keep by themselves"),
        (Commit::new().delete(key("index:by_title:ada:x:user:ada:notes:n")), "keep by themselves"),
        (Commit::new().add(key("system:catalog"), 1), "keep by themselves"),
        (Commit::new().delete(key("system:cursor-secret")), "keep by themselves"),
        (set(&key("system:history:pages:user:ada:pages:p:1")), "keep by themselves"),
        (set(&own(&pages, "q")), "the space pages"),
        (set(&key("user:bob:notes:n")), "the space notes"),
        (set(&t), "a record of the change itself"),
        (Commit::new().check(t.clone(), Expect::Absent), "precondition"),
        (Commit::new().check(key("system:catalog"), Expect::Absent), "precondition"),
    ] {
        let error = templates.clone().with_rider(rider).put(&t, draft("2")).await.unwrap_err();
        assert_eq!(error.code(), Code::BadChange, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let together = vec![
        Operation::Put(u, draft("2")),
        Operation::Merge(t.clone(), merge("{}"), Precondition::Any),
    ];
    let error = templates.clone().with_rider(set(&t)).together(together).await.unwrap_err();
    assert_eq!(error.code(), Code::BadChange, "{error}");
    let notes = fixture.space("notes", "ada").with_rider(once("m:moving"));
    let moved = notes.relocate(&own(&notes, "a"), &notes, &own(&notes, "b")).await.unwrap_err();
    assert_eq!(moved.code(), Code::BadChange, "{moved}");
    let twice = set(&key("m:a")).delete(key("m:a"));
    let error = templates.clone().with_rider(twice).put(&t, draft("2")).await.unwrap_err();
    assert_eq!(store_kind(&error), Some(ErrorKind::Invalid), "{error}");
    assert_eq!(dump(fixture.store()).await, before);
    // A record that nothing follows is a key like any other, and a rider of nothing is none.
    let other = templates.clone().with_rider(set(&key("shared:templates:other")));
    assert!(other.put(&t, draft("3")).await.unwrap().is_accepted());
    assert!(other.with_rider(Commit::new()).put(&t, draft("4")).await.unwrap().version().is_some());
}

async fn where_commits_have_one_key_a_rider_is_refused(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    put(&notes, "n", r#"{"title":"t"}"#).await;
    let n = own(&notes, "n");
    // Reads may be late there.
    fixture.place.clock().advance(Duration::from_secs(60));
    let before = dump(fixture.store()).await;
    let riding = notes.clone().with_rider(once("m:one"));
    for error in [
        riding.put(&n, draft(r#"{"title":"u"}"#)).await.unwrap_err(),
        riding.delete(&n, Precondition::Any).await.unwrap_err(),
    ] {
        assert_eq!(store_kind(&error), Some(ErrorKind::Unsupported));
        assert!(error.to_string().contains("rider"), "{error}");
    }
    assert_eq!(dump(fixture.store()).await, before);
    assert!(riding.get(&n).await.unwrap().is_some());
    let none = riding.with_rider(Commit::new());
    assert!(none.put(&n, draft(r#"{"title":"u"}"#)).await.unwrap().is_accepted());
}

#[tokio::test]
async fn both_together_must_fit_one_commit() {
    let (memory, clock) = memory(Tier::Atomic);
    let limits = memory.capabilities().limits;
    let store = Store::new(memory).with_limits(Limits { commit_keys_max: 6, ..limits });
    let schema = keyward_schema::Schema::parse(TASKS, "schema.toml").unwrap();
    let records = Records::open(store, schema.spaces, clock).unwrap();
    let tasks = records.space("tasks", &Caller::user("ada")).unwrap();
    let marks = |count: usize| {
        (0..count)
            .fold(Commit::new(), |commit, n| commit.check(key(&format!("m:{n}")), Expect::Absent))
    };
    // The record, its two entries and the catalog are four.
    let value = draft(r#"{"state":"open","name":"n"}"#);
    let t = own(&tasks, "t");
    let error = tasks.clone().with_rider(marks(3)).put(&t, value.clone()).await.unwrap_err();
    assert_eq!(store_kind(&error), Some(ErrorKind::LimitExceeded), "{error}");
    assert_eq!(tasks.get(&t).await.unwrap(), None);
    assert!(tasks.clone().with_rider(marks(2)).put(&t, value).await.unwrap().is_accepted());
}

#[tokio::test]
async fn reading_carries_no_rider_though_it_prolongs_a_life() {
    let place = Place::new(keyward_stores::Kind::Memory);
    let fixture = Fixture::new(place).await;
    let sessions = fixture.space("sessions", "ada");
    let first = put(&sessions, "s", r#"{"device":"phone"}"#).await;
    fixture.place.clock().advance(Duration::from_secs(40 * 60));
    let riding = sessions.clone().with_rider(once("m:read"));
    let read = riding.get(&own(&sessions, "s")).await.unwrap().unwrap();
    assert_ne!(read.version, first);
    assert_eq!(fixture.store().get(&key("m:read")).await.unwrap(), None);
}

/// One who was slower is planned again; the rider goes along, once.
#[tokio::test(start_paused = true)]
async fn a_record_that_changes_meanwhile_is_tried_again_with_its_rider() {
    for call in 0..6 {
        let (memory, clock) = memory(Tier::Atomic);
        let other = declare(memory.clone(), &clock, TASKS);
        let other = other.space("tasks", &Caller::user("ada")).unwrap();
        let t = own(&other, "t");
        put(&other, "t", r#"{"n":0}"#).await;
        let late = Fault::Delay(When::Before, Duration::from_secs(2));
        let engine = FaultyEngine::new(Arc::new(memory.clone()), Faults::script([(call, late)]));
        let slow = declare(engine, &clock, TASKS).space("tasks", &Caller::user("ada")).unwrap();
        let slow = slow.with_rider(once("m:slow").add(key("m:count"), 1));
        let task = t.clone();
        let slow = tokio::spawn(async move {
            let add = |record: Option<&keyward_records::Record>| {
                let text = record.unwrap().value.as_str().replace('}', "");
                let n: u64 = text.split(':').nth(1).unwrap().parse().unwrap();
                Ok(Some(json(&format!(r#"{{"n":{}}}"#, n + 1))))
            };
            slow.update(&task, add).await
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = other.get(&t).await.unwrap().unwrap().value;
        let raised = if before.as_str() == r#"{"n":0}"# { r#"{"n":10}"# } else { r#"{"n":11}"# };
        put(&other, "t", raised).await;
        assert!(slow.await.unwrap().unwrap().version().is_some());
        let after = other.get(&t).await.unwrap().unwrap().value;
        assert_eq!(after.as_str(), r#"{"n":11}"#, "call {call}");
        let count = Store::new(memory).get(&key("m:count")).await.unwrap().unwrap();
        assert_eq!(count.value.as_integer(), Some(1), "call {call}");
    }
}

#[tokio::test]
async fn a_refused_rider_is_not_tried_again() {
    let (memory, clock) = memory(Tier::Atomic);
    let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
    let records = declare(engine.clone(), &clock, TASKS);
    let tasks = records.space("tasks", &Caller::user("ada")).unwrap();
    put(&tasks, "t", r#"{"state":"open"}"#).await;
    records.store().put(key("m:there"), Put::new(json("1"))).await.unwrap();
    let commits = || engine.trace().iter().filter(|(call, _)| *call == Call::Commit).count();
    let before = commits();
    let riding = tasks.clone().with_rider(once("m:there"));
    let refused = riding.put(&own(&tasks, "t"), draft(r#"{"state":"done"}"#)).await;
    assert_eq!(refused_checks(refused), [0]);
    assert_eq!(commits() - before, 1);
}

/// The change that is made again after a lost answer.
async fn change(tasks: &Space, what: usize) -> Result<Written> {
    let t = own(tasks, "t");
    match what {
        0 => tasks.put(&t, draft(r#"{"state":"done","name":"n"}"#)).await,
        1 => tasks.create(&own(tasks, "new"), draft(r#"{"state":"done","name":"m"}"#)).await,
        2 => tasks.delete(&t, Precondition::Any).await,
        _ => tasks.update(&t, |_| Ok(Some(json(r#"{"state":"done","name":"n"}"#)))).await,
    }
}

/// Whether a change was made, by what its records are.
async fn is_made(tasks: &Space, what: usize) -> bool {
    let t = tasks.get(&own(tasks, "t")).await.unwrap();
    let new = tasks.get(&own(tasks, "new")).await.unwrap();
    match what {
        1 => new.is_some(),
        2 => t.is_none(),
        _ => t.unwrap().value.as_str().contains("done"),
    }
}

/// An answer that is lost, and a process that dies, at every call: both or neither, what is told is
/// true, and asking again with the same rider ends with both done once.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_both_or_neither_and_asking_again_finds_out() {
    let mut lost = 0;
    for what in 0..4 {
        for call in 0..8 {
            for fault in [
                Fault::Unanswered(When::Before),
                Fault::Unanswered(When::After),
                Fault::Crash(When::Before),
                Fault::Crash(When::After),
            ] {
                let (memory, clock) = memory(Tier::Atomic);
                let healthy = declare(memory.clone(), &clock, TASKS);
                let healthy = healthy.space("tasks", &Caller::user("ada")).unwrap();
                put(&healthy, "t", r#"{"state":"open","name":"n"}"#).await;
                let faults = Faults::script([(call, fault)]);
                let engine = FaultyEngine::new(Arc::new(memory.clone()), faults);
                let tasks = declare(engine.clone(), &clock, TASKS);
                let tasks = tasks.space("tasks", &Caller::user("ada")).unwrap();
                let rider = once("m:once").add(key("m:count"), 1);
                let told = change(&tasks.with_rider(rider.clone()), what).await;
                let context = format!("change {what}, {fault:?} at call {call}: {told:?}");
                let store = Store::new(memory.clone());
                let mark = async || store.get(&key("m:once")).await.unwrap().is_some();
                let made = is_made(&healthy, what).await;
                assert_eq!(mark().await, made, "{context}");
                match &told {
                    Ok(written) => assert!(written.is_accepted() && made, "{context}"),
                    // Whoever is told that it is not known, learns it by asking again.
                    Err(error) if store_kind(error) == Some(ErrorKind::OutcomeUnknown) => lost += 1,
                    Err(error) => assert!(!made && error.retryable(), "{context}"),
                }
                let again = change(&healthy.clone().with_rider(rider), what).await;
                match again {
                    Err(Error::RiderRefused { failed }) => {
                        assert!(made && failed == [0], "{context}");
                    }
                    again => assert!(!made && again.unwrap().is_accepted(), "{context}"),
                }
                assert!(is_made(&healthy, what).await && mark().await, "{context}");
                let count = store.get(&key("m:count")).await.unwrap().unwrap();
                assert_eq!(count.value.as_integer(), Some(1), "{context}");
            }
        }
    }
    assert!(lost >= 12, "{lost}");
}
