//! Entries: made, changed, renamed, removed.

use std::time::Duration;

use keyward_agents::{Actor, Patch, Search};
use keyward_records::{Filter, Precondition, Relocated, Written};
use keyward_testkit::Meaning;

use super::place::InPlace;
use crate::fixture::{json, keys, put, set};

on_documents!(
    an_entry_is_made_changed_and_removed,
    metadata_is_merged_and_only_a_patch_removes,
    conditions_are_outcomes,
    a_state_that_is_written_again_within_a_second_is_another_one,
    several_entries_are_set_read_and_removed_together,
    a_renamed_entry_keeps_what_is_known_about_it,
    a_search_and_the_statistics_go_through_the_documents,
);

const ID: &str = "ada:files:apache-repo:c3JjL21haW4ucHk=";

async fn an_entry_is_made_changed_and_removed(place: InPlace) {
    let files = place.namespace("files:apache-repo").await;
    assert_eq!(files.get("src/main.py").await.unwrap(), None);
    let made = files.set("src/main.py", set(r#"{"lines":2}"#)).await.unwrap();
    assert!(matches!(made, Written::Applied { created: true, .. }), "{made:?}");
    let written = r#"{"userId":"ada","namespace":"files:apache-repo","key":"src/main.py","value":{"lines":2},"createdByAgent":"tester","accessCount":0,"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}"#;
    assert_eq!(place.meaning(ID).await, Meaning::of(written));
    let first = files.entry("src/main.py").await.unwrap().unwrap();
    assert_eq!(Some(&first.version), made.version());
    assert_eq!(first.id().compose(), ID);

    place.clock().advance(Duration::from_millis(60_400));
    let other = place.agents().await.user("ada", Actor::agent("other"));
    let other = other.use_namespace("files:apache-repo").unwrap();
    let metadata = json(r#"{"sha256":"abc"}"#);
    let changed = other.set("src/main.py", set("[]").metadata(metadata)).await.unwrap();
    assert!(matches!(changed, Written::Applied { created: false, .. }), "{changed:?}");
    let written = r#"{"userId":"ada","namespace":"files:apache-repo","key":"src/main.py","value":[],"metadata":{"sha256":"abc"},"createdByAgent":"tester","accessCount":0,"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:01:00Z"}"#;
    assert_eq!(place.meaning(ID).await, Meaning::of(written));
    let second = files.entry("src/main.py").await.unwrap().unwrap();
    assert_eq!(Some(&second.version), changed.version());
    assert_ne!(second.version, first.version);

    assert!(files.delete("src/main.py").await.unwrap());
    assert_eq!(place.document(ID).await, None);
    assert!(!files.delete("src/main.py").await.unwrap());
    assert_eq!(other.entry("src/main.py").await.unwrap(), None);
}

async fn metadata_is_merged_and_only_a_patch_removes(place: InPlace) {
    let notes = place.namespace("default").await;
    let said = async || {
        let metadata = notes.entry("k").await.unwrap().unwrap().metadata;
        metadata.map(|metadata| Meaning::of(metadata.as_str()))
    };
    for metadata in
        [r#"{"version":"1.0","author":"alice"}"#, r#"{"version":"2.0","reviewer":"bob"}"#]
    {
        let set = set("1").metadata(json(metadata));
        assert!(notes.set("k", set).await.unwrap().is_accepted());
    }
    let merged = r#"{"version":"2.0","author":"alice","reviewer":"bob"}"#;
    assert_eq!(said().await, Some(Meaning::of(merged)));
    put(&notes, "k", "2").await;
    assert_eq!(said().await, Some(Meaning::of(merged)));
    let patch = Patch::new().value(json(r#"{"a":1}"#)).metadata(json(r#"{"author":null,"n":1}"#));
    assert!(notes.patch("k", patch).await.unwrap().is_accepted());
    assert_eq!(said().await, Some(Meaning::of(r#"{"version":"2.0","reviewer":"bob","n":1}"#)));
    assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), r#"{"a":1}"#);
}

async fn a_state_that_is_written_again_within_a_second_is_another_one(place: InPlace) {
    let notes = place.namespace("default").await;
    let reader = place.agents().await;
    let mut versions = Vec::new();
    for round in 0..3 {
        for value in ["1", "2", "1"] {
            let written = notes.set("k", set(value)).await.unwrap();
            versions.push(written.version().unwrap().clone());
        }
        if round == 0 {
            // Another process has read the first entry, and counts it after the entry was made again.
            let reads =
                reader.user("ada", Actor::agent("reader")).use_namespace("default").unwrap();
            assert!(reads.get("k").await.unwrap().is_some());
        }
        if round < 2 {
            assert!(notes.delete("k").await.unwrap());
        }
    }
    for (n, version) in versions.iter().enumerate() {
        assert!(!versions[..n].contains(version), "{n}: {versions:?}");
        let current = n + 1 == versions.len();
        let stale = set("1").expecting(Precondition::Version(version.clone()));
        assert_eq!(notes.set("k", stale).await.unwrap().is_accepted(), current, "{n}");
    }
    reader.close().await.unwrap();
    let document = place.meaning("ada:default:aw==").await;
    assert_eq!(document.member("accessCount").unwrap().to_json(), "0");
    // Half a minute later, there is no reason for a fraction.
    place.clock().advance(Duration::from_secs(30));
    put(&notes, "k", "1").await;
    let updated = place.meaning("ada:default:aw==").await;
    assert_eq!(updated.member("updatedAt").unwrap().text(), Some("2026-01-01T00:00:30Z"));
}

async fn conditions_are_outcomes(place: InPlace) {
    let notes = place.namespace("default").await;
    let absent = || set("1").expecting(Precondition::Absent);
    let made = notes.set("k", absent()).await.unwrap();
    assert!(made.is_accepted());
    assert!(!notes.set("k", absent()).await.unwrap().is_accepted());
    // Counting an access is no change of the entry.
    assert!(notes.get("k").await.unwrap().is_some());
    notes_flush(&place, &notes).await;
    let version = || Precondition::Version(made.version().unwrap().clone());
    let changed = notes.set("k", set("2").expecting(version())).await.unwrap();
    assert!(changed.is_accepted());
    assert!(!notes.set("k", set("3").expecting(version())).await.unwrap().is_accepted());
    assert!(!notes.delete_expecting("k", version()).await.unwrap().is_accepted());
    let now = Precondition::Version(changed.version().unwrap().clone());
    assert_eq!(notes.delete_expecting("k", now).await.unwrap(), Written::Removed);
    assert!(!notes.set("k", set("4").expecting(version())).await.unwrap().is_accepted());
    let present = set("5").expecting(Precondition::Present);
    assert!(!notes.set("k", present).await.unwrap().is_accepted());
    assert_eq!(place.document("ada:default:aw==").await, None);
}

/// Counts an access by another process, at once.
async fn notes_flush(place: &InPlace, notes: &keyward_agents::Namespace) {
    let agents = place.agents().await;
    let others = agents.user("ada", Actor::agent("reader")).use_namespace(notes.name()).unwrap();
    assert!(others.get("k").await.unwrap().is_some());
    agents.close().await.unwrap();
}

async fn several_entries_are_set_read_and_removed_together(place: InPlace) {
    let notes = place.namespace("many").await;
    let names: Vec<String> = (0..150).map(|n| format!("k/{n:03}")).collect();
    let entries = names.iter().enumerate().map(|(n, name)| (name.clone(), set(&n.to_string())));
    let written = notes.set_many(entries.collect()).await.unwrap();
    assert!(written.iter().all(|it| matches!(it, Written::Applied { created: true, .. })));
    let mut asked = names.clone();
    asked.insert(7, "missing".to_owned());
    let values = notes.get_many(&asked).await.unwrap();
    for (n, (name, value)) in asked.iter().zip(&values).enumerate() {
        assert_eq!(value.is_none(), n == 7, "{name}");
    }
    assert_eq!(values[8].as_ref().unwrap().as_str(), "7");
    assert_eq!(keys(&notes, "k/01", 3).await.len(), 10);
    assert_eq!(notes.clear("k/01").await.unwrap(), 10);
    assert_eq!(notes.count("").await.unwrap(), 140);
    assert_eq!(notes.clear("").await.unwrap(), 140);
    assert_eq!(keys(&notes, "", 10).await, [] as [String; 0]);
}

async fn a_renamed_entry_keeps_what_is_known_about_it(place: InPlace) {
    let agents = place.agents().await;
    let notes = agents.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    let made = set(r#"{"n":1}"#).metadata(json(r#"{"a":1}"#));
    assert!(notes.set("old", made).await.unwrap().is_accepted());
    for _ in 0..3 {
        assert!(notes.get("old").await.unwrap().is_some());
    }
    let before = notes.entry("old").await.unwrap().unwrap();
    assert_eq!(before.access.count, 4);
    assert_eq!(notes.rename("old", "new").await.unwrap(), Relocated::Moved);
    assert_eq!(notes.rename("old", "newer").await.unwrap(), Relocated::Absent);
    assert_eq!(place.document("ada:default:b2xk").await, None);
    agents.close().await.unwrap();
    let document = place.meaning("ada:default:bmV3").await;
    assert_eq!(document.member("accessCount"), Some(&Meaning::of("4")));
    let after = place.namespace("default").await.entry("new").await.unwrap().unwrap();
    assert_eq!((after.value, after.metadata), (before.value, before.metadata));
    assert_eq!((after.created_at, after.access.count), (before.created_at, 5));
    put(&notes, "other", "1").await;
    assert_eq!(notes.rename("new", "other").await.unwrap(), Relocated::Taken);
}

async fn a_search_and_the_statistics_go_through_the_documents(place: InPlace) {
    let notes = place.namespace("tasks").await;
    for n in 0..20 {
        let value = format!(r#"{{"status":"{}","n":{n}}}"#, ["open", "done"][n % 2]);
        put(&notes, &format!("t{n:02}"), &value).await;
    }
    put(&place.namespace("other").await, "t99", r#"{"status":"open"}"#).await;
    place.settle().await;
    let open = Filter::parse(r#"{"value.status":"open","value.n":{"gte":10}}"#).unwrap();
    let found = notes.search(&Search::new().filter(open)).await.unwrap();
    let found: Vec<String> = found.entries.into_iter().map(|entry| entry.key).collect();
    assert_eq!(found, ["t10", "t12", "t14", "t16", "t18"]);
    let stats = notes.stats().await.unwrap();
    assert_eq!((stats.record_count, &stats.agents[..]), (20, &["tester".to_owned()][..]));
    assert_eq!(stats.updated_at.as_deref(), Some("2026-01-01T00:00:00Z"));
    let all = notes.get_all("t0", None, 100).await.unwrap();
    assert_eq!(all.entries.len(), 10);
}
