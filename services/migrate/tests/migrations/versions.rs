//! Versions that history keeps, when their record gets another key.

use std::sync::Mutex;

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Limits, Outcome, Page, Result, Scan, Stats,
    Store, Tier,
};
use keyward_key::Key;
use keyward_memory::{Memory, Options};
use keyward_migrate::{Definition, State};
use keyward_records::{Draft, Precondition, Records, Written};
use keyward_stores::{Kind, Place, on_every_engine};
use keyward_testkit::TestClock;

use crate::crashing::crash_everywhere;
use crate::fixture::{
    assert_done, assert_well, json, key, migrator, open, operator, records, rows,
};
use crate::rekeying::rekey;

on_every_engine!(
    versions_move_with_their_record,
    numbers_go_on_after_those_of_a_record_that_was_there,
    an_equal_record_keeps_its_own_history,
);

const OLD: &str = "notes:{id}";
const NEW: &str = "papers:{id}";

fn schema(pattern: &str, history: usize) -> String {
    format!(
        r#"
[stores.app]
[spaces.notes]
key = "{pattern}"
ownership = "shared"
history = {history}
[spaces.notes.value]
type = "object"
[spaces.notes.value.properties]
n = {{ type = "integer" }}
[spaces.notes.indexes.by_n]
field = "n"
"#
    )
}

fn moving() -> Definition {
    rekey(OLD, NEW, &[])
}

async fn put(records: &Records, at: &str, n: usize) {
    let draft = Draft::new(json(&format!(r#"{{"n":{n}}}"#)));
    let written = operator(records, "notes").put(&key(at), draft).await.unwrap();
    assert!(written.is_accepted());
}

/// Numbers and values of a record's versions, the newest first.
async fn versions(records: &Records, at: &str) -> Vec<(u64, Option<String>)> {
    let history = operator(records, "notes").history(&key(at), None, 1_000).await.unwrap();
    history.into_iter().map(|past| (past.seq, past.value.map(|value| value.to_string()))).collect()
}

fn told(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, Option<String>)> {
    numbers.into_iter().map(|n| (n, Some(format!(r#"{{"n":{n}}}"#)))).collect()
}

async fn versions_move_with_their_record(place: Place) {
    let before = open(&place, &schema(OLD, 3)).await;
    for n in 1..=5 {
        put(&before, "notes:a", n).await;
    }
    put(&before, "notes:b", 1).await;
    put(&before, "notes:deleted", 1).await;
    let notes = operator(&before, "notes");
    assert_eq!(
        notes.delete(&key("notes:deleted"), Precondition::Any).await.unwrap(),
        Written::Removed
    );
    let after = open(&place, &schema(NEW, 3)).await;
    assert_done(&migrator(&after, place.clock()).run(moving(), |_| ()).await.unwrap());
    assert_eq!(versions(&after, "papers:a").await, told([5, 4, 3]));
    assert_eq!(versions(&after, "papers:b").await, told([1]));
    // Nothing is left but what is of no record any more.
    let left = rows(after.store(), "system:history:notes:notes").await;
    assert!(left.iter().all(|(key, _)| key.contains(":deleted:")), "{left:?}");
    assert_eq!(left.len(), 2);
    // They go on, and are trimmed, as if the record had always been there.
    put(&after, "papers:a", 6).await;
    assert_eq!(versions(&after, "papers:a").await, told([6, 5, 4]));
    let restored = operator(&after, "notes").restore(&key("papers:a"), 4, Precondition::Any).await;
    assert!(restored.unwrap().is_accepted());
    assert_well(&after).await;
}

async fn numbers_go_on_after_those_of_a_record_that_was_there(place: Place) {
    let before = open(&place, &schema(OLD, 10)).await;
    for n in 1..=3 {
        put(&before, "notes:a", n).await;
    }
    let after = open(&place, &schema(NEW, 10)).await;
    put(&after, "papers:a", 7).await;
    let papers = operator(&after, "notes");
    assert_eq!(papers.delete(&key("papers:a"), Precondition::Any).await.unwrap(), Written::Removed);
    assert_done(&migrator(&after, place.clock()).run(moving(), |_| ()).await.unwrap());
    let told: Vec<(u64, Option<String>)> =
        [(5, Some(3)), (4, Some(2)), (3, Some(1)), (2, None), (1, Some(7))]
            .map(|(seq, n): (u64, Option<u64>)| (seq, n.map(|n| format!(r#"{{"n":{n}}}"#))))
            .into();
    assert_eq!(versions(&after, "papers:a").await, told);
    put(&after, "papers:a", 9).await;
    assert_eq!(versions(&after, "papers:a").await[0].0, 6);
}

async fn an_equal_record_keeps_its_own_history(place: Place) {
    let before = open(&place, &schema(OLD, 10)).await;
    put(&before, "notes:a", 1).await;
    let after = open(&place, &schema(NEW, 10)).await;
    put(&after, "papers:a", 1).await;
    assert_done(&migrator(&after, place.clock()).run(moving(), |_| ()).await.unwrap());
    assert_eq!(versions(&after, "papers:a").await, told([1]));
    assert!(after.store().get(&key("notes:a")).await.unwrap().is_none());
    assert_well(&after).await;
}

/// A store that takes few keys in one commit.
async fn small(place: &Place, schema: &str) -> Records {
    let store = place.store().await;
    let limits = Limits { commit_keys_max: 20, ..*store.limits() };
    records(store.with_limits(limits), place.clock(), schema)
}

#[tokio::test]
async fn more_versions_than_fit_one_commit_go_ahead_of_their_record() {
    let place = Place::new(Kind::Memory);
    let before = open(&place, &schema(OLD, 300)).await;
    for n in 1..=250 {
        put(&before, "notes:a", n).await;
    }
    let after = small(&place, &schema(NEW, 300)).await;
    assert_done(&migrator(&after, place.clock()).run(moving(), |_| ()).await.unwrap());
    assert_eq!(versions(&after, "papers:a").await, told((1..=250).rev()));
    assert!(rows(after.store(), "system:history:notes:notes").await.is_empty());
    put(&after, "papers:a", 251).await;
    assert_eq!(versions(&after, "papers:a").await[0].0, 251);
}

#[tokio::test]
async fn versions_larger_than_a_commit_go_ahead_too_or_are_told() {
    let place = Place::new(Kind::Memory);
    let before = open(&place, &schema(OLD, 50)).await;
    let long = "x".repeat(1_000);
    for n in 0..30 {
        let draft = Draft::new(json(&format!(r#"{{"n":{n},"text":"{long}"}}"#)));
        assert!(
            operator(&before, "notes").put(&key("notes:a"), draft).await.unwrap().is_accepted()
        );
    }
    let with = async |bytes: usize| {
        let store = place.store().await;
        let limits = Limits { commit_bytes_max: bytes, ..*store.limits() };
        records(store.with_limits(limits), place.clock(), &schema(NEW, 50))
    };
    let tight = with(1_500).await;
    let failed = migrator(&tight, place.clock()).run(moving(), |_| ()).await.unwrap();
    assert_eq!((failed.state, failed.counts.problems), (State::Failed, 1));
    assert!(tight.store().get(&key("notes:a")).await.unwrap().is_some());
    let after = with(5_000).await;
    assert_done(&migrator(&after, place.clock()).run(moving(), |_| ()).await.unwrap());
    assert_eq!(versions(&after, "papers:a").await.len(), 30);
    assert!(rows(after.store(), "system:history:notes:notes").await.is_empty());
}

#[tokio::test]
async fn no_version_is_lost_wherever_moving_them_crashed() {
    crash_everywhere(
        Tier::Atomic,
        [OLD, NEW].map(|pattern| schema(pattern, 30)),
        async |records| {
            for n in 1..=25 {
                put(records, "notes:a", n).await;
            }
            put(records, "notes:b", 1).await;
        },
        async |crashing, clock| {
            let limits = Limits { commit_keys_max: 20, ..*crashing.store().limits() };
            let store = crashing.store().clone().with_limits(limits);
            migrator(&records(store, clock, &schema(NEW, 30)), clock).run(moving(), |_| ()).await
        },
    )
    .await;
}

/// A memory engine where others do something as soon as versions of `papers:old` were written.
struct Overtaken {
    inner: Memory,
    others: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Engine for Overtaken {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.inner.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.inner.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            let ahead = "system:history:notes:papers:old";
            let ahead = commit.writes.iter().any(|it| it.key().to_string().starts_with(ahead));
            let outcome = self.inner.commit(commit).await?;
            let others = if ahead { self.others.lock().unwrap().take() } else { None };
            if let Some(others) = others {
                others.await;
            }
            Ok(outcome)
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

const BY_STATE: &str = "papers:{state}:{id}";

/// Moves a record of 250 versions by its state, which is `old`. Others change or delete it after its first versions
/// went ahead.
async fn overtaken(deleted: bool) -> Records {
    let clock = TestClock::new();
    let inner = Memory::with(Options::tier(Tier::Atomic), clock.clone());
    let before = records(Store::new(inner.clone()), &clock, &schema(OLD, 300));
    let state =
        |n: usize, state: &str| Draft::new(json(&format!(r#"{{"n":{n},"state":"{state}"}}"#)));
    let notes = operator(&before, "notes");
    for n in 1..=250 {
        assert!(notes.put(&key("notes:a"), state(n, "old")).await.unwrap().is_accepted());
    }
    let changed = state(251, "new");
    let others = async move {
        let written = match deleted {
            true => notes.delete(&key("notes:a"), Precondition::Any).await,
            false => notes.put(&key("notes:a"), changed).await,
        };
        assert!(written.unwrap().is_accepted());
    };
    let store = Store::new(Overtaken { inner, others: Mutex::new(Some(Box::pin(others))) });
    let limits = Limits { commit_keys_max: 20, ..*store.limits() };
    let after = records(store.with_limits(limits), &clock, &schema(BY_STATE, 300));
    let definition = rekey(OLD, BY_STATE, &[("state", "state")]);
    assert_done(&migrator(&after, &clock).run(definition, |_| ()).await.unwrap());
    assert!(rows(after.store(), "system:history:notes:papers:old").await.is_empty());
    after
}

#[tokio::test]
async fn versions_that_went_ahead_follow_a_record_that_then_belongs_elsewhere() {
    let after = overtaken(false).await;
    let numbers: Vec<u64> =
        versions(&after, "papers:new:a").await.into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(numbers, (1..=251).rev().collect::<Vec<u64>>());
    assert!(rows(after.store(), "system:history:notes:notes").await.is_empty());
    assert_well(&after).await;
}

#[tokio::test]
async fn versions_that_went_ahead_go_back_to_a_record_that_is_then_deleted() {
    let after = overtaken(true).await;
    assert!(rows(after.store(), "papers").await.is_empty());
    // And one that says that it was deleted.
    assert_eq!(rows(after.store(), "system:history:notes:notes").await.len(), 251);
}
