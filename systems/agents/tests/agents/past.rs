//! Earlier versions of entries.

use std::time::Duration;

use keyward_agents::Actor;
use keyward_engine::{Code, Coded};
use keyward_records::{PastAct, Precondition};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, json, put, set};

on_every_engine!(
    history_tells_who_did_what_in_which_run,
    an_earlier_version_is_restored_as_it_was_and_updated_now,
    a_version_is_redacted_for_good,
    a_page_of_versions_ends_after_so_many_bytes,
);

async fn history_tells_who_did_what_in_which_run(place: Place) {
    let fixture = Fixture::new(place).await;
    let by = |agent: &str, run: &str| {
        let user = fixture.agents.user("ada", Actor::agent(agent).in_run(run));
        user.use_namespace("notes").unwrap()
    };
    let said = set("1").metadata(json(r#"{"a":1}"#));
    assert!(by("planner", "r1").set("k", said).await.unwrap().is_accepted());
    put(&by("writer", "r2"), "k", "2").await;
    assert!(by("cleaner", "r3").delete("k").await.unwrap());
    let past = by("reader", "r4").history("k", None, 10).await.unwrap();
    let told: Vec<_> = past
        .iter()
        .map(|it| (it.seq, it.act, it.agent.as_deref().unwrap(), it.run.as_deref().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            (3, PastAct::Delete, "cleaner", "r3"),
            (2, PastAct::Update, "writer", "r2"),
            (1, PastAct::Update, "planner", "r1"),
        ]
    );
    // As they were, with nothing of how they are kept.
    assert_eq!(past[0].value, None);
    assert_eq!(past[1].value.as_ref().unwrap().as_str(), "2");
    assert_eq!(past[1].metadata.as_ref().unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(past[2].user.as_deref(), Some("ada"));
    assert_eq!(by("reader", "r4").history("k", Some(2), 10).await.unwrap().len(), 1);
    let notes = fixture.namespace("notes");
    for n in 0..30 {
        put(&notes, "many", &n.to_string()).await;
    }
    assert_eq!(notes.history("many", None, 100).await.unwrap().len(), 20);
}

async fn an_earlier_version_is_restored_as_it_was_and_updated_now(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("notes");
    let said = set("1").metadata(json(r#"{"a":1}"#));
    assert!(notes.set("k", said).await.unwrap().is_accepted());
    let more = set("2").metadata(json(r#"{"b":2}"#));
    assert!(notes.set("k", more).await.unwrap().is_accepted());
    fixture.place.clock().advance(Duration::from_secs(1));
    assert!(notes.restore("k", 1, Precondition::Any).await.unwrap().is_accepted());
    let entry = notes.entry("k").await.unwrap().unwrap();
    assert_eq!(entry.value.as_str(), "1");
    assert_eq!(entry.metadata.as_ref().unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(entry.created_at, "2026-01-01T00:00:00.000000Z");
    assert_eq!(entry.updated_at, "2026-01-01T00:00:01.000000Z");
    assert_eq!(notes.history("k", None, 1).await.unwrap()[0].act, PastAct::Restore);
    // Also of one that was deleted.
    assert!(notes.delete("k").await.unwrap());
    assert!(notes.restore("k", 2, Precondition::Absent).await.unwrap().is_accepted());
    let entry = notes.entry("k").await.unwrap().unwrap();
    assert_eq!(
        (entry.value.as_str(), entry.created_at.as_str()),
        ("2", "2026-01-01T00:00:00.000000Z")
    );
    assert!(!notes.restore("k", 1, Precondition::Absent).await.unwrap().is_accepted());
    assert_eq!(notes.restore("k", 4, Precondition::Any).await.unwrap_err().code(), Code::BadChange);
}

async fn a_version_is_redacted_for_good(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("notes");
    put(&notes, "k", r#""hunter2""#).await;
    assert_eq!(notes.redact("k", 1).await.unwrap_err().code(), Code::BadChange);
    put(&notes, "k", r#""***""#).await;
    assert!(notes.redact("k", 1).await.unwrap());
    let past = notes.history("k", None, 10).await.unwrap();
    assert_eq!((past[1].seq, past[1].value.as_ref()), (1, None));
    assert_eq!(past[1].agent.as_deref(), Some("tester"));
    assert_eq!(past[1].redacted.as_ref().unwrap().agent.as_deref(), Some("tester"));
    let restored = notes.restore("k", 1, Precondition::Any).await.unwrap_err();
    assert!(restored.to_string().contains("redacted"), "{restored}");
    let everything = keyward_engine::Scan::new(keyward_key::KeyRange::all()).limit(1_000);
    for row in fixture.store().scan(&everything).await.unwrap().rows {
        assert!(!row.entry.unwrap().value.as_str().contains("hunter2"), "{}", row.key);
    }
}

async fn a_page_of_versions_ends_after_so_many_bytes(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("notes");
    for n in 0..20 {
        put(&notes, "k", &format!("[{n},\"{}\"]", "x".repeat(2_000))).await;
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = notes.history_page("k", before, 100, 10_000).await.unwrap();
        assert!((1..=5).contains(&page.versions.len()), "{}", page.versions.len());
        seen.extend(page.versions.iter().map(|past| past.seq));
        let Some(next) = page.next else { break };
        before = Some(next);
    }
    assert_eq!(seen, (1..=20).rev().collect::<Vec<u64>>());
}
