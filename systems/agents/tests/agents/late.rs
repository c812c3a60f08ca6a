//! Where the last writer wins, and reads are late: best effort, and told so.

use std::time::Duration;

use keyward_agents::Patch;
use keyward_stores::{Kind, Place};

use crate::fixture::{Fixture, json, keys, namespaces, put, set};

#[tokio::test]
async fn everything_but_history_works_once_reads_have_caught_up() {
    let fixture = Fixture::new(Place::new(Kind::Advisory)).await;
    let later = || fixture.place.clock().advance(Duration::from_secs(60));
    let notes = fixture.namespace("notes");
    put(&notes, "k", "1").await;
    later();
    let said = set("2").metadata(json(r#"{"a":1}"#));
    assert!(notes.set("k", said).await.unwrap().is_accepted());
    later();
    assert!(
        notes.patch("k", Patch::new().metadata(json(r#"{"b":2}"#))).await.unwrap().is_accepted()
    );
    later();
    let entry = notes.entry("k").await.unwrap().unwrap();
    assert_eq!(entry.metadata.unwrap().as_str(), r#"{"a":1,"b":2}"#);
    assert_eq!(entry.created_at, "2026-01-01T00:00:00.000000Z");
    fixture.agents.close().await.unwrap();
    later();
    assert_eq!(notes.entry("k").await.unwrap().unwrap().access.count, 2);
    assert_eq!(keys(&notes, "", 10).await, ["k"]);
    assert_eq!(namespaces(&fixture.user("ada"), 10).await, ["notes"]);
    assert!(notes.history("k", None, 1).await.is_err());
    assert_eq!(notes.clear("").await.unwrap(), 1);
    later();
    assert_eq!(notes.get("k").await.unwrap(), None);
}
