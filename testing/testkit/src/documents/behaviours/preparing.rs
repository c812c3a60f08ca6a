//! The indexes that lists need.

use super::super::database::{Database, assert_same, entry};

pub async fn a_dry_run_says_what_is_missing_and_creates_nothing(database: Database) {
    let missing = database.documents.prepare(false).await.unwrap();
    assert!(missing.iter().all(|sentence| !sentence.trim().is_empty()), "{missing:?}");
    // What was not created is still missing, for another client too.
    assert_eq!(database.documents.prepare(false).await.unwrap(), missing);
    assert_eq!(database.another().await.prepare(false).await.unwrap(), missing);
    assert_eq!(database.documents.prepare(true).await.unwrap(), missing);
    let none: [String; 0] = [];
    assert_eq!(database.documents.prepare(false).await.unwrap(), none);
    assert_eq!(database.another().await.prepare(false).await.unwrap(), none);
}

pub async fn preparing_again_changes_nothing(database: Database) {
    database.prepare().await;
    let document = database.create("d1", &entry("ada", "n", "1")).await;
    for _ in 0..2 {
        assert_eq!(database.documents.prepare(true).await.unwrap(), [] as [String; 0]);
        assert_eq!(database.present("d1").await, document);
    }
    // Two at once are no trouble.
    let other = database.another().await;
    let (one, two) = tokio::join!(database.documents.prepare(true), other.prepare(true));
    assert_eq!((one.unwrap().len(), two.unwrap().len()), (0, 0));
    database.assert_listed("ada", Some("n"), &["d1"]).await;
}

pub async fn documents_that_were_there_before_are_listed(database: Database) {
    let fields = entry("ada", "n", "1");
    database.create("d1", &fields).await;
    database.prepare().await;
    assert_same(&database.present("d1").await.fields, &fields);
    database.assert_listed("ada", None, &["d1"]).await;
    database.assert_listed("ada", Some("n"), &["d1"]).await;
}
