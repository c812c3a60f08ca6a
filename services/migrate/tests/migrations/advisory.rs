//! Where the last writer wins, and reads are a second late: what is done is labelled, what could lose something is refused.

use std::time::Duration;

use keyward_engine::{Code, Coded};
use keyward_migrate::{Edit, State};
use keyward_stores::{Kind, Place};

use crate::fixture::{
    PLAIN, assert_well, fill, found, indexed, json, migrate, migrator, open, operator, rows,
};
use crate::rekeying::rekey;
use crate::transforming::edits;

#[tokio::test]
async fn an_index_is_made_and_dropped_as_well_as_can_be_and_labelled_so() {
    let place = Place::new(Kind::Advisory);
    fill(&operator(&open(&place, PLAIN).await, "notes"), 30).await;
    place.clock().advance(Duration::from_secs(2));
    let after = open(&place, &indexed()).await;
    let made = migrate(&after, place.clock()).await;
    place.clock().advance(Duration::from_secs(2));
    assert_eq!(made.len(), 2);
    for migration in &made {
        assert!(migration.best_effort && migration.state == State::Done, "{migration:?}");
    }
    assert_eq!(found(&after, "u1", "by_tag", "a").await, 10);
    assert_well(&after).await;
    let told = migrator(&after, place.clock()).history().await.unwrap();
    assert!(told.iter().all(|migration| migration.best_effort));
    let dropped = migrate(&open(&place, PLAIN).await, place.clock()).await;
    assert_eq!(dropped.iter().filter(|migration| migration.best_effort).count(), 2);
    place.clock().advance(Duration::from_secs(2));
    assert!(rows(after.store(), "index").await.is_empty());
}

#[tokio::test]
async fn elsewhere_nothing_is_labelled() {
    for kind in [Kind::Memory, Kind::Recoverable] {
        let place = Place::new(kind);
        fill(&operator(&open(&place, PLAIN).await, "notes"), 5).await;
        let made = migrate(&open(&place, &indexed()).await, place.clock()).await;
        assert!(made.iter().all(|migration| !migration.best_effort));
        let row = rows(&place.store().await, "system:migration").await.remove(0).1;
        assert!(!row.contains("best_effort"), "{row}");
    }
}

#[tokio::test]
async fn what_could_undo_the_work_of_others_is_refused() {
    let place = Place::new(Kind::Advisory);
    let before = open(&place, &indexed()).await;
    fill(&operator(&before, "notes"), 5).await;
    place.clock().advance(Duration::from_secs(2));
    let there = rows(before.store(), "").await;
    let mut change = edits(vec![Edit::Set("title".parse().unwrap(), json(r#""new""#))]);
    let migrating = migrator(&before, place.clock());
    let refused = migrating.transform("notes", "edits", &mut change, |_| ()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Refused);
    assert!(refused.to_string().contains("the last writer wins"), "{refused}");
    let moved = indexed().replace("user:{user}:notes:{note}", "user:{user}:papers:{note}");
    let after = open(&place, &moved).await;
    let step = rekey("user:{user}:notes:{note}", "user:{user}:papers:{note}", &[]);
    let refused = migrator(&after, place.clock()).run(step, |_| ()).await.unwrap_err();
    assert!(refused.to_string().contains("the last writer wins"), "{refused}");
    assert_eq!(rows(before.store(), "").await, there);
}
