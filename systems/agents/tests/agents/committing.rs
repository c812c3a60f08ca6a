//! What is one commit, and what is none of an entry's.

use futures_util::StreamExt;
use keyward_engine::Event;
use keyward_key::{KeyRange, Prefix};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, json, put, set};

on_every_engine!(a_thousand_entries_are_one_commit, tracking_is_not_among_the_changes_of_entries);

/// A commit has one version, which no other has.
async fn a_thousand_entries_are_one_commit(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("default");
    let entries = |value: &str| -> Vec<_> {
        let metadata = json(&format!(r#"{{"m{value}":1}}"#));
        (0..1_000).map(|n| (format!("k{n:04}"), set(value).metadata(metadata.clone()))).collect()
    };
    for value in ["1", "2"] {
        let written = notes.set_many(entries(value)).await.unwrap();
        assert_eq!(written.len(), 1_000);
        assert!(written[0].version().is_some());
        assert!(written.iter().all(|it| it.version() == written[0].version()));
    }
    let entry = notes.entry("k0999").await.unwrap().unwrap();
    assert_eq!(entry.metadata.unwrap().as_str(), r#"{"m1":1,"m2":1}"#);
    assert_eq!(notes.count("").await.unwrap(), 1_000);
}

async fn tracking_is_not_among_the_changes_of_entries(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("notes");
    put(&notes, "k", "1").await;
    let entries = KeyRange::under(&Prefix::from_segments(["agents"]));
    let mut watch = fixture.store().watch(entries, None);
    // It stands at what is there now.
    assert!(matches!(watch.next().await.unwrap().unwrap(), Event::Reached { .. }));
    for _ in 0..3 {
        assert!(notes.get("k").await.unwrap().is_some());
        fixture.agents.flush().await.unwrap();
    }
    put(&notes, "last", "1").await;
    loop {
        if let Event::Changed { changes, .. } = watch.next().await.unwrap().unwrap() {
            let keys: Vec<String> = changes.iter().map(|change| change.key.to_string()).collect();
            assert_eq!(keys, ["agents:ada:notes:last"]);
            break;
        }
    }
}
