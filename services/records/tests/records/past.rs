//! Earlier versions.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded, Store, Tier};
use keyward_key::Key;
use keyward_records::{Caller, PastAct, Precondition, Space, Ttl, Written};
use keyward_stores::{Place, on_databases, on_every_engine};
use keyward_testkit::{Faults, FaultyEngine};

use crate::declared::{memory, open, open_store};
use crate::fixture::{Fixture, draft, key, own, put};

on_every_engine!(the_last_versions_are_kept, an_earlier_version_comes_back);
on_databases!(the_last_versions_are_kept);

async fn the_last_versions_are_kept(place: Place) {
    let fixture = Fixture::new(place).await;
    let caller = Caller::user("ada").with_agent("editor");
    let pages = fixture.records.space("pages", &caller).unwrap();
    let key = own(&pages, "p");
    for n in 1..=4 {
        put(&pages, "p", &format!(r#"{{"slug":"s","n":{n}}}"#)).await;
    }
    assert_eq!(pages.delete(&key, Precondition::Any).await.unwrap(), Written::Removed);
    put(&pages, "p", "null").await;
    let history = pages.history(&key, None, 10).await.unwrap();
    let told: Vec<(u64, &str, Option<String>)> = history
        .iter()
        .map(|past| (past.seq, past.act.as_str(), past.value.as_ref().map(ToString::to_string)))
        .collect();
    // Three are kept; a value of null is a value.
    assert_eq!(
        told,
        [
            (6, "put", Some("null".to_owned())),
            (5, "delete", None),
            (4, "put", Some(r#"{"slug":"s","n":4}"#.to_owned())),
        ]
    );
    assert_eq!(history[0].user.as_deref(), Some("ada"));
    assert_eq!(history[0].agent.as_deref(), Some("editor"));
    assert_eq!(pages.history(&key, Some(5), 10).await.unwrap().len(), 1);
    let bob = fixture.space("pages", "bob");
    assert_eq!(bob.history(&key, None, 10).await.unwrap_err().code(), Code::Forbidden);
}

async fn an_earlier_version_comes_back(place: Place) {
    let fixture = Fixture::new(place).await;
    let pages = fixture.space("pages", "ada");
    let key = own(&pages, "p");
    put(&pages, "p", r#"{"slug":"one"}"#).await;
    put(&pages, "p", r#"{"slug":"two"}"#).await;
    assert!(pages.restore(&key, 1, Precondition::Any).await.unwrap().is_accepted());
    assert_eq!(pages.history(&key, None, 1).await.unwrap()[0].act, PastAct::Restore);
    let record = pages.get(&key).await.unwrap().unwrap();
    assert_eq!(record.value.as_str(), r#"{"slug":"one"}"#);
    // Its entries come back with it, and what another record took meanwhile stays taken.
    put(&pages, "q", r#"{"slug":"two"}"#).await;
    let clash = pages.restore(&key, 2, Precondition::Any).await.unwrap_err();
    assert_eq!(clash.code(), Code::UniqueClash);
    assert_eq!(
        pages.restore(&key, 9, Precondition::Any).await.unwrap_err().code(),
        Code::BadChange
    );
    let other = own(&pages, "r");
    let put = pages.create(&other, draft(r#"{"slug":"three"}"#)).await.unwrap();
    assert!(put.is_accepted());
}

const DOCUMENTS: &str = r#"
[stores.app]
[spaces.documents]
key = "shared:documents:{document}[:{part}]"
ownership = "shared"
history = 3
"#;

#[tokio::test]
async fn versions_are_found_at_once_beside_those_of_many_parts() {
    let (memory, clock) = memory(Tier::Atomic);
    let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
    let records = open_store(Store::new(engine.clone()), &clock, DOCUMENTS);
    let documents = records.space("documents", &Caller::operator()).unwrap();
    for n in 0..100 {
        for part in [format!("part{n}"), n.to_string()] {
            let part = key(&format!("shared:documents:d:{part}"));
            assert!(documents.put(&part, draft("1")).await.unwrap().is_accepted());
        }
    }
    // One whose name looks like a number is passed over.
    let part = key("shared:documents:d:00000000000000000002");
    assert!(documents.put(&part, draft("1")).await.unwrap().is_accepted());
    let before = engine.calls();
    let document = key("shared:documents:d");
    assert!(documents.put(&document, draft("1")).await.unwrap().is_accepted());
    let calls = engine.calls() - before;
    assert!(calls < 10, "{calls} engine calls for one put");
    assert!(documents.put(&document, draft("2")).await.unwrap().is_accepted());
    let before = engine.calls();
    let past = documents.history(&document, None, 10).await.unwrap();
    let calls = engine.calls() - before;
    assert_eq!(past.iter().map(|past| past.seq).collect::<Vec<_>>(), [2, 1]);
    assert!(calls < 10, "{calls} engine calls for one history");
}

const SESSIONS: &str = r#"
[stores.app]
[spaces.sessions]
key = "user:{user}:sessions:{id}"
ownership = "user"
ttl = "1h"
sliding = true
history = 10
"#;

const MINUTE: Duration = Duration::from_secs(60);

async fn seqs(space: &Space, key: &Key) -> Vec<u64> {
    space.history(key, None, 100).await.unwrap().iter().map(|past| past.seq).collect()
}

#[tokio::test]
async fn versions_live_as_long_as_a_record_that_is_read() {
    let (memory, clock) = memory(Tier::Atomic);
    let sessions = open(&memory, &clock, SESSIONS).space("sessions", &Caller::user("ada")).unwrap();
    let id = own(&sessions, "s");
    put(&sessions, "s", r#"{"n":1}"#).await;
    put(&sessions, "s", r#"{"n":2}"#).await;
    for _ in 0..6 {
        clock.advance(40 * MINUTE);
        assert!(sessions.get(&id).await.unwrap().is_some());
        assert_eq!(seqs(&sessions, &id).await, [2, 1]);
    }
    clock.advance(121 * MINUTE);
    assert_eq!(sessions.get(&id).await.unwrap(), None);
    assert!(seqs(&sessions, &id).await.is_empty());
}

#[tokio::test]
async fn versions_live_as_long_as_a_record_that_is_changed() {
    let (memory, clock) = memory(Tier::Atomic);
    let sessions = open(&memory, &clock, SESSIONS).space("sessions", &Caller::user("ada")).unwrap();
    let id = own(&sessions, "s");
    for n in 1..=8 {
        put(&sessions, "s", &format!(r#"{{"n":{n}}}"#)).await;
        clock.advance(50 * MINUTE);
    }
    assert_eq!(seqs(&sessions, &id).await, [8, 7, 6, 5, 4, 3, 2, 1]);
    // What has no end any more keeps its versions without one.
    let ever = sessions.put(&id, draft("{}").ttl(Ttl::Never)).await.unwrap();
    assert!(ever.is_accepted());
    clock.advance(600_000 * MINUTE);
    assert_eq!(seqs(&sessions, &id).await, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
}

#[tokio::test]
async fn the_versions_of_a_record_that_ended_end() {
    let (memory, clock) = memory(Tier::Atomic);
    let sessions = open(&memory, &clock, SESSIONS).space("sessions", &Caller::user("ada")).unwrap();
    let id = own(&sessions, "s");
    put(&sessions, "s", "{}").await;
    assert_eq!(sessions.delete(&id, Precondition::Any).await.unwrap(), Written::Removed);
    clock.advance(61 * MINUTE);
    assert_eq!(seqs(&sessions, &id).await, [2, 1]);
    clock.advance(60 * MINUTE);
    assert!(seqs(&sessions, &id).await.is_empty());
}

#[tokio::test]
async fn fewer_versions_are_kept_once_the_schema_asks_for_fewer() {
    let (memory, clock) = memory(Tier::Atomic);
    let many = SESSIONS.replace("history = 10", "history = 40");
    let sessions = open(&memory, &clock, &many).space("sessions", &Caller::user("ada")).unwrap();
    let id = own(&sessions, "s");
    for _ in 0..40 {
        put(&sessions, "s", "{}").await;
    }
    assert_eq!(seqs(&sessions, &id).await.len(), 40);
    let few = SESSIONS.replace("history = 10", "history = 2");
    let sessions = open(&memory, &clock, &few).space("sessions", &Caller::user("ada")).unwrap();
    for left in [25, 10, 2] {
        put(&sessions, "s", "{}").await;
        assert_eq!(seqs(&sessions, &id).await.len(), left);
    }
    assert_eq!(seqs(&sessions, &id).await, [43, 42]);
    // Also of a record that was deleted and made again.
    assert_eq!(sessions.delete(&id, Precondition::Any).await.unwrap(), Written::Removed);
    put(&sessions, "s", "{}").await;
    assert_eq!(seqs(&sessions, &id).await, [45, 44]);
}

#[tokio::test]
async fn a_key_whose_versions_do_not_fit_is_refused_with_the_reason() {
    let (memory, clock) = memory(Tier::Atomic);
    let records = open(&memory, &clock, SESSIONS);
    let sessions = records.space("sessions", &Caller::user("ada")).unwrap();
    let bytes_max = records.store().limits().key_bytes_max;
    let around = "system:history:sessions:user:ada:sessions::00000000000000000001".len();
    put(&sessions, &"x".repeat(bytes_max - around), "{}").await;
    let long = own(&sessions, &"x".repeat(bytes_max - around + 1));
    let refused = sessions.put(&long, draft("{}")).await.unwrap_err();
    assert_eq!(refused.code(), Code::BadChange);
    assert!(
        refused.to_string().contains("1 bytes too long for a space that keeps history"),
        "{refused}"
    );
}
