//! Entries that others wrote, or wrote into.

use std::time::Duration;

use keyward_engine::{Json, Put};
use keyward_key::Key;
use keyward_registry::RunStatus;
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, counts, sync};

on_every_engine!(
    what_is_not_known_survives_updates,
    deprecated_members_stay_ninety_days_and_then_go,
    a_sync_drops_deprecated_members_of_policies_that_never_change,
    rows_that_the_original_wrote_are_replaced,
    an_entry_that_somebody_broke_is_mended,
);

async fn what_is_not_known_survives_updates(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n");
    f.push().await;
    let sha = f.repository.id_of("a.md");
    let value = format!(
        r#"{{"x":1.50,"policyName":"a","title":"A","status":"active","lastUpdated":"then","sha":"{sha}","path":"a.md","tags":["b","a"],"n":123456789012345678901234567890}}"#
    );
    let put = Put::new(Json::parse(value).unwrap())
        .with_metadata(Json::parse(r#"{"by":"somebody"}"#).unwrap());
    let key = Key::parse("policy:a").unwrap();
    f.registry.store().put(key.clone(), put).await.unwrap();
    f.repository.write("a.md", "# A 2\n");
    let run = f.push().await;
    assert_eq!((counts(&run), run.whole), ((0, 1, 0), false));
    let sha = f.repository.id_of("a.md");
    let entry = f.registry.store().get(&key).await.unwrap().unwrap();
    assert_eq!(
        entry.value.as_str(),
        format!(
            r#"{{"x":1.50,"policyName":"a","title":"A 2","status":"active","lastUpdated":"2026-01-01T00:00:00.000000Z","sha":"{sha}","path":"a.md","tags":["b","a"],"n":123456789012345678901234567890}}"#
        )
    );
    assert_eq!(entry.metadata.unwrap().as_str(), r#"{"by":"somebody"}"#);
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn deprecated_members_stay_ninety_days_and_then_go(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    f.put("policy:a", r#"{"title":"A","fileNo":"868","previewUrl":"p","downloadUrl":"d","own":1}"#)
        .await;
    f.push().await;
    let entry = f.get("policy:a").await.unwrap();
    assert!(
        entry.contains(r#""fileNo":"868","previewUrl":"p","downloadUrl":"d","own":1"#),
        "{entry}"
    );
    assert!(f.get("queue:a").await.unwrap().contains(r#""fileNo":"868""#));

    f.place.clock().advance(89 * DAY);
    f.repository.write("a.md", "# A 2\n");
    f.push().await;
    assert!(f.get("policy:a").await.unwrap().contains("fileNo"));
    f.place.clock().advance(2 * DAY);
    f.repository.write("a.md", "# A 3\n");
    f.push().await;
    let entry = f.get("policy:a").await.unwrap();
    assert!(!entry.contains("fileNo") && !entry.contains("Url"), "{entry}");
    assert!(entry.contains(r#""own":1"#) && entry.contains("A 3"), "{entry}");
}

async fn a_sync_drops_deprecated_members_of_policies_that_never_change(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n");
    f.put("policy:a", r#"{"title":"A","fileNo":"868"}"#).await;
    f.put("policy:a:note", r#"{"fileNo":"1"}"#).await;
    f.push().await;
    f.consume().await;
    f.place.clock().advance(91 * DAY);
    // Nothing changed in the repository.
    let run = sync(&f.registry).await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (0, 0, 0)));
    assert!(!f.get("policy:a").await.unwrap().contains("fileNo"));
    assert_eq!(f.get("policy:a:note").await.unwrap(), r#"{"fileNo":"1"}"#);
    assert!(f.queued().await.is_empty());
    // Once.
    let options = keyward_registry::SyncOptions::default();
    let again = f.registry.sync(keyward_registry::Trigger::Hand, &options, |_| ()).await.unwrap();
    assert!(matches!(again, keyward_registry::Synced::Unchanged { .. }));
}

async fn rows_that_the_original_wrote_are_replaced(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    let row = r#"{"policyName":"a","sha":"00","operation":"add","retryCount":0,"createdAt":"2025-10-20T16:00:00Z","errorMessage":null}"#;
    f.put("queue:a", row).await;
    f.put("dead-letter:a", row).await;
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (2, 0, 0)));
    assert_eq!(f.queued().await, ["add a", "add b"]);
    assert_eq!(f.get("dead-letter:a").await, None);
}

async fn an_entry_that_somebody_broke_is_mended(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n").write("b.md", "# B\n").write("c.md", "# C\n");
    f.push().await;
    f.put("policy:a", "null").await;
    f.put("policy:stray", r#"{"policyName":"stray","title":"S","sha":"1","path":"s.md"}"#).await;
    // What lies deeper is nobody's policy.
    f.put("policy:b:note", "1").await;
    // A change to it shows that the registry is not as it was left; the rest is found as well.
    f.repository.write("a.md", "# A 2\n");
    let run = f.push().await;
    assert_eq!((run.whole, counts(&run)), (true, (0, 1, 1)));
    assert_eq!(f.names().await, ["a", "b", "c"]);
    assert_eq!(f.get("policy:b:note").await.unwrap(), "1");
}
