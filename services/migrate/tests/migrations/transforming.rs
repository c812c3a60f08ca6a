//! Changing values.

use keyward_engine::Json;
use keyward_migrate::{Edit, State};
use keyward_records::{Error, Record, Result};
use keyward_stores::{Place, on_engines, on_every_engine};

use crate::fixture::{
    assert_done, assert_well, fill, found, indexed, json, key, migrator, open, operator, rows,
    scratch,
};

on_every_engine!(values_change_with_their_entries, what_the_schema_refuses_is_told_and_stays);
on_engines!(
    recoverable: Recoverable;
    values_change_with_their_entries,
    what_the_schema_refuses_is_told_and_stays,
);

/// The edits as a function.
pub fn edits(edits: Vec<Edit>) -> impl FnMut(&Record) -> Result<Option<Json>> {
    move |record| Edit::apply_all(&edits, &record.value).map(Some).map_err(Error::BadChange)
}

async fn values_change_with_their_entries(place: Place) {
    let records = open(&place, &indexed()).await;
    fill(&operator(&records, "notes"), 30).await;
    let mut change = edits(vec![
        Edit::Set("title".parse().unwrap(), json(r#""new""#)),
        Edit::SetDefault("slug".parse().unwrap(), json("1")),
        Edit::Rename("slug".parse().unwrap(), "names.slug".parse().unwrap()),
        Edit::Remove("tags".parse().unwrap()),
    ]);
    let migrator = migrator(&records, place.clock());
    let preview =
        migrator.preview_transform("notes", &mut change, &scratch(&place, &records)).await.unwrap();
    assert_eq!((preview.rows, preview.changed), (30, 30));
    let done = migrator.transform("notes", "edits", &mut change, |_| ()).await.unwrap();
    assert_done(&done);
    assert_eq!((done.counts.records, done.counts.changed), (30, 30));
    let values = rows(records.store(), "user").await;
    assert_eq!(values[0].1, r#"{"title":"new","names":{"slug":"s0"}}"#);
    assert!(rows(records.store(), "index:by_tag").await.is_empty());
    assert_eq!(found(&records, "u1", "by_title", "new").await, 10);
    assert_well(&records).await;
    // The same words again are a new migration, which finds nothing to change.
    let again = edits(vec![Edit::Set("title".parse().unwrap(), json(r#""new""#))]);
    let mut again = again;
    let again = migrator.transform("notes", "edits", &mut again, |_| ()).await.unwrap();
    assert_eq!((again.counts.changed, again.runs), (0, 1));
}

async fn what_the_schema_refuses_is_told_and_stays(place: Place) {
    let records = open(&place, &indexed()).await;
    fill(&operator(&records, "notes"), 10).await;
    let before = rows(records.store(), "user").await;
    let mut change = |record: &Record| {
        let wrong = record.key == key("user:u1:notes:n001");
        Ok(Some(json(if wrong { r#"{"title":7}"# } else { r#"{"title":"ok"}"# })))
    };
    let migrator = migrator(&records, place.clock());
    let done = migrator.transform("notes", "by hand", &mut change, |_| ()).await.unwrap();
    assert_eq!((done.state, done.counts.changed, done.counts.problems), (State::Failed, 9, 1));
    assert_eq!(done.problems[0].key, "user:u1:notes:n001");
    let after = rows(records.store(), "user").await;
    let unchanged = before.iter().zip(&after).filter(|(before, after)| before == after);
    assert_eq!(unchanged.count(), 1);
}
