//! Giving records other keys.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use keyward_engine::{Clock, Code, Coded, Store};
use keyward_memory::{Memory, Options};
use keyward_migrate::{Definition, Migrator, Phase, Source, State};
use keyward_records::{Draft, Records, Ttl};
use keyward_stores::{Kind, Place, on_engines, on_every_engine};
use keyward_testkit::{Faults, FaultyEngine, TestClock};

use crate::fixture::{
    Jumping, assert_done, assert_well, json, key, migrate, migrator, open, operator, put_raw,
    records, rows, scratch,
};

on_every_engine!(
    records_move_with_their_entries,
    what_cannot_move_is_told_and_stays,
    a_literal_is_renamed,
);
on_engines!(
    recoverable: Recoverable;
    records_move_with_their_entries,
    what_cannot_move_is_told_and_stays,
    a_literal_is_renamed,
);

/// Notes with a key of this pattern, by title, and with one slug each where the engine can move it.
pub fn schema(pattern: &str, kind: Kind) -> String {
    let owned = pattern.starts_with("user:{userId}");
    let ownership = if owned { "hybrid\"\nshare = [\"title\", \"slug\"]" } else { "shared\"" };
    let unique = kind != Kind::Recoverable;
    format!(
        r#"
[stores.app]
[spaces.notes]
key = "{pattern}"
ownership = "{ownership}
[spaces.notes.value]
type = "object"
[spaces.notes.value.properties]
title = {{ type = "string" }}
slug = {{ type = "string" }}
[spaces.notes.indexes.by_title]
field = "title"
scope = "shared"
[spaces.notes.indexes.slug]
field = "slug"
unique = {unique}
scope = "shared"
"#
    )
}

pub const OLD: &str = "notes:{id}";
pub const NEW: &str = "user:{userId}:notes:{id}";

pub fn rekey(from: &str, to: &str, fields: &[(&str, &str)]) -> Definition {
    let sources: BTreeMap<String, Source> =
        fields.iter().map(|(v, f)| ((*v).to_owned(), Source::Field((*f).to_owned()))).collect();
    Definition::Rekey { space: "notes".into(), from: from.into(), to: to.into(), sources }
}

pub async fn fill(records: &Records, notes: usize) {
    let space = operator(records, "notes");
    for n in 0..notes {
        let text = format!(r#"{{"userId":"u{}","title":"t{}","slug":"s{n}"}}"#, n % 3, n % 5);
        let at = key(&format!("notes:n{n:02}"));
        let draft = Draft::new(json(&text)).with_metadata(json(r#"{"by":"me"}"#));
        let draft =
            draft.ttl(if n == 0 { Ttl::After(Duration::from_secs(60)) } else { Ttl::Never });
        assert!(space.put(&at, draft).await.unwrap().is_accepted());
    }
}

async fn records_move_with_their_entries(place: Place) {
    let before = open(&place, &schema(OLD, place.kind())).await;
    fill(&before, 30).await;
    let after = open(&place, &schema(NEW, place.kind())).await;
    let definition = rekey(OLD, NEW, &[("userId", "userId")]);
    let preview = migrator(&after, place.clock())
        .preview(&definition, &scratch(&place, &after))
        .await
        .unwrap();
    assert_eq!((preview.rows, preview.changed, preview.problem_count), (30, 30, 0));
    assert_eq!(preview.examples[1], ("notes:n01".into(), "user:u1:notes:n01".into()));
    assert_eq!(rows(after.store(), "user").await.len(), 0);
    let done = migrator(&after, place.clock()).run(definition, |_| ()).await.unwrap();
    assert_done(&done);
    assert_eq!((done.counts.changed, done.counts.checked), (30, 0));
    assert!(rows(after.store(), "notes").await.is_empty());
    assert_eq!(rows(after.store(), "user").await.len(), 30);
    assert_eq!(rows(after.store(), "index").await.len(), 60);
    let moved = operator(&after, "notes").get(&key("user:u0:notes:n00")).await.unwrap().unwrap();
    assert_eq!(moved.metadata, Some(json(r#"{"by":"me"}"#)));
    assert!(moved.expires.is_some());
    assert!(migrate(&after, place.clock()).await.is_empty());
    assert_well(&after).await;
}

async fn what_cannot_move_is_told_and_stays(place: Place) {
    let before = open(&place, &schema(OLD, place.kind())).await;
    fill(&before, 10).await;
    let space = operator(&before, "notes");
    let put = async |id: &str, value: &str| {
        let written = space.put(&key(&format!("notes:{id}")), Draft::new(json(value))).await;
        assert!(written.unwrap().is_accepted());
    };
    put("homeless", r#"{"title":"x"}"#).await;
    put("odd", r#"{"userId":[1],"title":"x"}"#).await;
    put("taken", r#"{"userId":"u1","title":"x"}"#).await;
    put_raw(before.store(), "user:u1:notes:taken", r#"{"title":"there first"}"#).await;
    let after = open(&place, &schema(NEW, place.kind())).await;
    let definition = rekey(OLD, NEW, &[("userId", "userId")]);
    let done = migrator(&after, place.clock()).run(definition.clone(), |_| ()).await.unwrap();
    assert_eq!((done.state, done.counts.changed, done.counts.problems), (State::Failed, 10, 3));
    let told: Vec<&str> = done.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(told, ["notes:homeless", "notes:odd", "notes:taken"]);
    assert_eq!(rows(after.store(), "notes").await.len(), 3);
    let there = after.store().get(&key("user:u1:notes:taken")).await.unwrap().unwrap();
    assert_eq!(there.value.as_str(), r#"{"title":"there first"}"#);
    // What makes no sense is refused before anything is done.
    for wrong in [
        rekey(OLD, NEW, &[]),
        rekey(OLD, NEW, &[("userId", "userId"), ("nobody", "x")]),
        rekey(OLD, "user:{userId}:papers:{id}", &[("userId", "userId")]),
        rekey(NEW, NEW, &[]),
        rekey("notes:", NEW, &[]),
    ] {
        let refused = migrator(&after, place.clock()).run(wrong, |_| ()).await.unwrap_err();
        assert_eq!(refused.code(), Code::Refused);
    }
    assert_eq!(migrator(&after, place.clock()).history().await.unwrap().len(), 1);
}

async fn a_literal_is_renamed(place: Place) {
    let before = open(&place, &schema(OLD, place.kind())).await;
    fill(&before, 10).await;
    let papers = "papers:{id}";
    let after = open(&place, &schema(papers, place.kind())).await;
    let done = migrator(&after, place.clock()).run(rekey(OLD, papers, &[]), |_| ()).await.unwrap();
    assert_done(&done);
    assert!(rows(after.store(), "notes").await.is_empty());
    assert_eq!(rows(after.store(), "papers").await.len(), 10);
    assert_well(&after).await;
}

/// Notes that have nothing to make a new key of.
async fn homeless(before: &Records, notes: usize) {
    for n in 0..notes {
        let at = key(&format!("notes:n{n:02}"));
        let written = operator(before, "notes").put(&at, Draft::new(json("{}"))).await;
        assert!(written.unwrap().is_accepted());
    }
}

#[tokio::test]
async fn the_last_look_keeps_to_the_pace() {
    let place = Place::new(Kind::Memory);
    homeless(&open(&place, &schema(OLD, Kind::Memory)).await, 20).await;
    let after = open(&place, &schema(NEW, Kind::Memory)).await;
    let mut looked = Vec::new();
    let slow = migrator(&after, place.clock()).rate(NonZeroU32::new(5));
    let definition = rekey(OLD, NEW, &[("userId", "userId")]);
    let done = slow.run(definition, |migration| {
        if migration.phase == Phase::CheckRecords {
            looked.push((migration.counts.checked, place.clock().now()));
        }
    });
    let done = done.await.unwrap();
    assert_eq!((done.counts.problems, done.counts.checked), (20, 20));
    let counted: Vec<u64> = looked.iter().map(|(checked, _)| *checked).collect();
    assert_eq!(counted, [0, 5, 10, 15]);
    let took = looked[3].1.duration_since(looked[1].1);
    assert_eq!(took.as_secs(), 2);
}

#[tokio::test]
async fn the_last_look_goes_on_where_it_was_killed() {
    let clock = TestClock::new();
    let memory = Memory::with(Options::default(), clock.clone());
    let opened =
        |pattern| records(Store::new(memory.clone()), &clock, &schema(pattern, Kind::Memory));
    homeless(&opened(OLD), 20).await;
    let definition = rekey(OLD, NEW, &[("userId", "userId")]);
    let engine = FaultyEngine::new(Arc::new(memory.clone()), Faults::none());
    let dying = records(Store::new(engine.clone()), &clock, &schema(NEW, Kind::Memory));
    let dying = migrator(&dying, &clock);
    let killed = dying.run(definition.clone(), |migration| {
        if migration.phase == Phase::CheckRecords && migration.counts.checked == 7 {
            engine.kill();
        }
    });
    assert!(killed.await.is_err());
    let after = opened(NEW);
    let mut looked = Vec::new();
    let again = migrator(&after, &clock);
    let done = again.run(definition, |migration| {
        looked.push((migration.phase, migration.counts.checked));
    });
    let done = done.await.unwrap();
    // Nothing is counted twice, and the walk is not done again.
    assert_eq!((done.runs, done.counts.records, done.counts.checked), (2, 20, 20));
    assert_eq!(looked, [(Phase::CheckRecords, 14), (Phase::End, 20)]);
}

#[tokio::test]
async fn what_is_written_behind_the_walk_is_told() {
    let place = Place::new(Kind::Memory);
    let before = open(&place, &schema(OLD, place.kind())).await;
    fill(&before, 20).await;
    let after = open(&place, &schema(NEW, Kind::Memory)).await;
    let definition = rekey(OLD, NEW, &[("userId", "userId")]);
    let store = place.store().await;
    let mut late = false;
    let first = migrator(&after, place.clock());
    let done = first.run(definition.clone(), |migration| {
        if migration.counts.records == 14 && !late {
            late = true;
            let late = put_raw(&store, "notes:a", r#"{"userId":"u1"}"#);
            late.now_or_never().unwrap();
        }
    });
    let done = done.await.unwrap();
    assert_eq!((done.state, done.counts.checked), (State::Failed, 1));
    assert_eq!(done.problems[0].key, OLD);
    // Run again, it moves that one too.
    assert_done(&migrator(&after, place.clock()).run(definition, |_| ()).await.unwrap());
    assert!(rows(after.store(), "notes").await.is_empty());
}

#[tokio::test]
async fn many_records_move_in_few_commits() {
    let clock = TestClock::new();
    let memory = Memory::with(Options::default(), clock.clone());
    let opened =
        |pattern| records(Store::new(memory.clone()), &clock, &schema(pattern, Kind::Memory));
    fill(&opened(OLD), 300).await;
    let engine = FaultyEngine::new(Arc::new(memory.clone()), Faults::none());
    let counted = records(Store::new(engine.clone()), &clock, &schema(NEW, Kind::Memory));
    let migrator = Migrator::new(counted, Jumping(clock.clone()));
    let definition = rekey(OLD, NEW, &[("userId", "userId")]);
    assert_done(&migrator.run(definition, |_| ()).await.unwrap());
    assert!(engine.calls() < 60, "{} calls", engine.calls());
    let after = opened(NEW);
    assert_eq!(rows(after.store(), "user").await.len(), 300);
    assert_well(&after).await;
}

/// Records of one page that want one new key, or one that is taken.
#[tokio::test]
async fn records_that_are_in_each_others_way_are_told_apart() {
    let place = Place::new(Kind::Memory);
    let before = open(&place, &schema("notes:{id}:{part}", Kind::Memory)).await;
    for (at, slug) in [("n1:a", "s1"), ("n1:b", "s2"), ("n2:a", "s3"), ("n3:a", "s4")] {
        let note = Draft::new(json(&format!(r#"{{"slug":"{slug}"}}"#)));
        let written = operator(&before, "notes").put(&key(&format!("notes:{at}")), note).await;
        assert!(written.unwrap().is_accepted());
    }
    // Another is where one of them would go.
    put_raw(before.store(), "papers:n2", r#"{"slug":"s9"}"#).await;
    let after = open(&place, &schema("papers:{id}", Kind::Memory)).await;
    let definition = rekey("notes:{id}:{part}", "papers:{id}", &[]);
    let done = migrator(&after, place.clock()).run(definition, |_| ()).await.unwrap();
    assert_eq!((done.state, done.counts.records, done.counts.changed), (State::Failed, 4, 2));
    let told: Vec<&str> = done.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(told, ["notes:n1:b", "notes:n2:a"], "{:#?}", done.problems);
    assert!(after.store().get(&key("papers:n3")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_dry_run_names_every_problem_up_to_its_bound() {
    let place = Place::new(Kind::Memory);
    homeless(&open(&place, &schema(OLD, Kind::Memory)).await, 7).await;
    let after = open(&place, &schema(NEW, Kind::Memory)).await;
    let definition = rekey(OLD, NEW, &[("userId", "userId")]);
    let scratch = scratch(&place, &after);
    let preview = migrator(&after, place.clock()).preview(&definition, &scratch).await.unwrap();
    assert_eq!((preview.problem_count, preview.problems.len()), (7, 7));
}
