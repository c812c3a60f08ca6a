//! Giving records other keys.

use std::collections::BTreeMap;
use std::time::Duration;

use keyward_migrate::{Definition, Source, State};
use keyward_records::{Draft, Records, Ttl};
use keyward_stores::{Kind, Place, on_engines, on_every_engine};

use crate::fixture::{
    assert_done, assert_well, json, key, migrate, migrator, open, operator, put_raw, rows,
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
    let preview = migrator(&after, place.clock()).preview(&definition).await.unwrap();
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
        assert_eq!(refused.code(), "refused");
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
