//! Entries of version 1.

use std::time::Duration;

use keyward_key::Key;
use keyward_registry::RunStatus;
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, counts, sync};

on_every_engine!(
    an_entry_under_its_title_moves_on_the_first_sync,
    a_migration_moves_at_once_and_tells_before,
    an_entry_that_fits_two_files_is_left_alone,
    a_migration_drops_deprecated_members_whose_time_is_over,
);

async fn an_entry_under_its_title_moves_on_the_first_sync(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("학칙.md", "# 한국교원대학교 학칙\n").write("b.md", "# B\n");
    let old = r#"{"title":"한국교원대학교 학칙","fileNo":"868","status":"active","own":[1,2]}"#;
    f.put("policy:한국교원대학교 학칙", old).await;
    f.put("policy:없는 규정", r#"{"title":"없는 규정","fileNo":"1"}"#).await;
    // It is readable before.
    let before = f.policy("한국교원대학교 학칙").await.unwrap();
    assert!(before.is_of_version_1());
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (1, 1, 1)));
    assert_eq!(f.names().await, ["b", "학칙"]);
    let entry = f.get("policy:학칙").await.unwrap();
    assert!(
        entry.starts_with(
            r#"{"title":"한국교원대학교 학칙","fileNo":"868","status":"active","own":[1,2],"policyName":"학칙""#
        ),
        "{entry}"
    );
    assert_eq!(f.get("policy:한국교원대학교 학칙").await, None);
    assert_eq!(f.queued().await, ["add b", "delete 없는 규정", "update 학칙"]);
    f.repository.write("학칙.md", "# 한국교원대학교 학칙\n\n개정\n");
    let run = f.push().await;
    assert_eq!((run.whole, counts(&run)), (false, (0, 1, 0)));
    assert!(f.get("policy:학칙").await.unwrap().contains(r#""own":[1,2]"#));
}

async fn a_migration_moves_at_once_and_tells_before(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# Title A\n").write("b.md", "# Title B\n").write("c.md", "# C\n");
    f.repository.commit("all");
    f.put("policy:Title A", r#"{"title":"Title A","fileNo":"1"}"#).await;
    f.put("policy:c", r#"{"title":"c","fileNo":"3"}"#).await;
    f.put("policy:Nowhere", r#"{"title":"Nowhere"}"#).await;
    let told = f.registry.migrate(true).await.unwrap();
    assert_eq!(f.get("policy:Title A").await.unwrap(), r#"{"title":"Title A","fileNo":"1"}"#);
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(told.moved, [pair("Title A", "a"), pair("c", "c")]);
    assert_eq!((told.scanned, told.problems.len()), (3, 1));
    let done = f.registry.migrate(false).await.unwrap();
    assert_eq!(done, told);
    // Nothing is added or deleted by it.
    assert_eq!(f.names().await, ["Nowhere", "a", "c"]);
    assert!(f.get("policy:a").await.unwrap().contains(r#""fileNo":"1""#));
    assert_eq!(f.queued().await, ["update a", "update c"]);
    assert!(f.registry.migrate(false).await.unwrap().moved.is_empty());
    let run = sync(&f.registry).await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (1, 0, 1)));
    assert_eq!(f.names().await, ["a", "b", "c"]);
}

async fn an_entry_that_fits_two_files_is_left_alone(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# Same\n").write("b.md", "# Same\n");
    f.put("policy:Same", r#"{"title":"Same","fileNo":"1"}"#).await;
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Partial, (2, 0, 0)));
    assert_eq!(run.errors[0].path, "Same");
    assert!(f.get("policy:Same").await.is_some());
    // Nor does a later run delete it: it stays and is reported until a person decides.
    for change in ["", "c", "d"] {
        if !change.is_empty() {
            f.repository.write(&format!("{change}.md"), "# Other\n");
        }
        let run = if change.is_empty() { sync(&f.registry).await } else { f.push().await };
        let added = u64::from(!change.is_empty());
        assert_eq!((run.status, counts(&run)), (RunStatus::Partial, (added, 0, 0)));
        assert_eq!(run.errors[0].path, "Same");
        assert!(f.get("policy:Same").await.unwrap().contains("fileNo"));
    }
    // Nor when the files have other titles by now.
    f.repository.write("a.md", "# One\n").write("b.md", "# Another\n");
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Partial, (0, 2, 0)));
    assert!(f.get("policy:Same").await.unwrap().contains("fileNo"));
    f.place.store().await.delete(Key::parse("policy:Same").unwrap()).await.unwrap();
    assert_eq!(sync(&f.registry).await.status, RunStatus::Success);
}

async fn a_migration_drops_deprecated_members_whose_time_is_over(place: Place) {
    let f = Fixture::with(place, |settings| {
        settings.deprecated_kept = Duration::from_secs(3_600);
    })
    .await;
    f.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    f.put("policy:a", r#"{"title":"A","fileNo":"1","own":1}"#).await;
    f.push().await;
    assert_eq!(f.registry.migrate(false).await.unwrap().cleaned, 0);
    f.place.clock().advance(Duration::from_secs(3_601));
    assert_eq!(f.registry.migrate(true).await.unwrap().cleaned, 1);
    assert!(f.get("policy:a").await.unwrap().contains("fileNo"));
    assert_eq!(f.registry.migrate(false).await.unwrap().cleaned, 1);
    let entry = f.get("policy:a").await.unwrap();
    assert!(!entry.contains("fileNo") && entry.contains(r#""own":1"#), "{entry}");
}
