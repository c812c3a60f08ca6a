//! Entries: made, changed, removed.

use std::time::Duration;

use keyward_agents::{Actor, Patch};
use keyward_engine::{Code, Coded, Version};
use keyward_records::{Precondition, Written};
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, json, put, set};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded, postgres: Postgres,
    cloudflare_kv: CloudflareKv, couchdb: CouchDb, dynamodb: DynamoDb, firestore: Firestore,
    forge_kvs: ForgeKvs;
    an_entry_is_made_changed_and_removed,
    metadata_is_merged_and_only_a_patch_removes,
    values_come_back_as_they_were_written,
    conditions_are_outcomes,
    several_entries_are_set_and_read_together,
);
// What lists what it has just written is left out: listings are a minute late there.
on_engines!(
    forge_entity: ForgeEntity;
    an_entry_is_made_changed_and_removed,
    metadata_is_merged_and_only_a_patch_removes,
    values_come_back_as_they_were_written,
    conditions_are_outcomes,
);

async fn an_entry_is_made_changed_and_removed(place: Place) {
    let fixture = Fixture::new(place).await;
    let files = fixture.namespace("files:apache/repo");
    assert_eq!(files.get("src/main.py").await.unwrap(), None);
    let made = files.set("src/main.py", set(r#"{"lines":2}"#)).await.unwrap();
    assert!(matches!(made, Written::Applied { created: true, .. }), "{made:?}");
    let first = files.entry("src/main.py").await.unwrap().unwrap();
    assert_eq!(first.created_by_agent.as_deref(), Some("tester"));
    assert_eq!(first.created_at, first.updated_at);
    assert_eq!(Some(&first.version), made.version());

    fixture.place.clock().advance(Duration::from_secs(60));
    let other = fixture.agents.user("ada", Actor::agent("other"));
    let other = other.use_namespace("files:apache/repo").unwrap();
    let changed = other.set("src/main.py", set("[]")).await.unwrap();
    assert!(matches!(changed, Written::Applied { created: false, .. }), "{changed:?}");
    let second = files.entry("src/main.py").await.unwrap().unwrap();
    // Who made it and when stays; when it was updated moves.
    assert_eq!(second.created_by_agent, first.created_by_agent);
    assert_eq!(second.created_at, first.created_at);
    assert_eq!(second.created_at, "2026-01-01T00:00:00.000000Z");
    assert_eq!(second.updated_at, "2026-01-01T00:01:00.000000Z");
    assert_eq!(second.value.as_str(), "[]");
    assert_ne!(second.version, first.version);

    assert!(files.delete("src/main.py").await.unwrap());
    assert!(!files.delete("src/main.py").await.unwrap());
    assert_eq!(files.entry("src/main.py").await.unwrap(), None);
}

async fn metadata_is_merged_and_only_a_patch_removes(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("default");
    let said = async |key: &str| {
        let entry = notes.entry(key).await.unwrap().unwrap();
        entry.metadata.map(|metadata| metadata.to_string())
    };
    put(&notes, "k", "1").await;
    assert_eq!(said("k").await, None);
    for metadata in
        [r#"{"version":"1.0","author":"alice"}"#, r#"{"version":"2.0","reviewer":"bob"}"#]
    {
        let set = set("1").metadata(json(metadata));
        assert!(notes.set("k", set).await.unwrap().is_accepted());
    }
    let merged = r#"{"version":"2.0","author":"alice","reviewer":"bob"}"#;
    assert_eq!(said("k").await.as_deref(), Some(merged));
    // A set that says nothing about it leaves it; null is a value.
    put(&notes, "k", "2").await;
    assert_eq!(said("k").await.as_deref(), Some(merged));
    let null = set("3").metadata(json(r#"{"author":null}"#));
    assert!(notes.set("k", null).await.unwrap().is_accepted());
    let patch = Patch::new().metadata(json(r#"{"author":null,"version":null,"n":1}"#));
    assert!(notes.patch("k", patch).await.unwrap().is_accepted());
    assert_eq!(said("k").await.as_deref(), Some(r#"{"reviewer":"bob","n":1}"#));
    assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), "3");

    put(&notes, "o", r#"{"a":{"b":1,"c":2},"d":[1]}"#).await;
    let patch = Patch::new().value(json(r#"{"a":{"b":null},"d":[2]}"#));
    assert!(notes.patch("o", patch).await.unwrap().is_accepted());
    assert_eq!(notes.get("o").await.unwrap().unwrap().as_str(), r#"{"a":{"c":2},"d":[2]}"#);
    let nothing = notes.patch("absent", Patch::new().value(json("1"))).await.unwrap();
    assert_eq!(nothing, Written::Unchanged { version: None });
    assert_eq!(notes.get("absent").await.unwrap(), None);
    let wrong = notes.set("k", set("1").metadata(json("[1]"))).await.unwrap_err();
    assert_eq!(wrong.code(), Code::BadChange);
}

async fn values_come_back_as_they_were_written(place: Place) {
    let fixture = Fixture::new(place).await;
    let values = fixture.namespace("values");
    for value in [
        "null",
        "true",
        "3.140",
        "12345678901234567890123456789012345678901234567890",
        "-0.0",
        "1e400",
        r#""Hangul 학칙 \u0000 \ud83d\ude00""#,
        r#"{"z":1,"a":{"y":[1.0,{"b":null}]},"m":"x"}"#,
        "[]",
    ] {
        put(&values, "k", value).await;
        assert_eq!(values.get("k").await.unwrap().unwrap().as_str(), value);
        let entry = values.entry("k").await.unwrap().unwrap();
        assert_eq!(entry.value.as_str(), value);
        assert!(entry.to_document().as_str().contains(&format!(r#""value":{value}"#)));
    }
    let said = set("1").metadata(json(r#"{"big":98765432109876543210987654321,"f":1.10}"#));
    assert!(values.set("k", said).await.unwrap().is_accepted());
    let entry = values.entry("k").await.unwrap().unwrap();
    assert_eq!(
        entry.metadata.unwrap().as_str(),
        r#"{"big":98765432109876543210987654321,"f":1.10}"#
    );
}

async fn conditions_are_outcomes(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("default");
    let absent = || set("1").expecting(Precondition::Absent);
    let version = notes.set("k", absent()).await.unwrap().version().cloned().unwrap();
    let second = notes.set("k", absent()).await.unwrap();
    assert_eq!(second, Written::Conflicted { current: Some(version.clone()) });
    let there = set("2").expecting(Precondition::Version(version.clone()));
    assert!(notes.set("k", there.clone()).await.unwrap().is_accepted());
    assert!(!notes.set("k", there).await.unwrap().is_accepted());
    let patch = Patch::new().value(json("3")).expecting(Precondition::Version(version.clone()));
    assert!(!notes.patch("k", patch).await.unwrap().is_accepted());
    let expect = Precondition::Version(Version::parse("nonsense"));
    assert!(!notes.delete_expecting("k", expect).await.unwrap().is_accepted());
    assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), "2");
}

async fn several_entries_are_set_and_read_together(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("default");
    put(&notes, "k1", "0").await;
    let entries = |n: usize| -> Vec<_> {
        let metadata = json(r#"{"m":1}"#);
        (0..n).map(|n| (format!("k{n}"), set(&n.to_string()).metadata(metadata.clone()))).collect()
    };
    let written = notes.set_many(entries(20)).await.unwrap();
    let created = written.iter().filter(|it| matches!(it, Written::Applied { created: true, .. }));
    assert_eq!(created.count(), 19);
    let values = notes.get_many(&["k19", "none", "k1", "k0"]).await.unwrap();
    let values: Vec<Option<&str>> =
        values.iter().map(|value| value.as_ref().map(keyward_engine::Json::as_str)).collect();
    assert_eq!(values, [Some("19"), None, Some("1"), Some("0")]);
    assert_eq!(notes.set_many(Vec::new()).await.unwrap(), []);
    let many = notes.set_many(entries(1_001)).await.unwrap_err();
    assert_eq!((many.code(), many.to_string().contains("1001")), (Code::LimitExceeded, true));
    assert_eq!(notes.count("").await.unwrap(), 20);
}
