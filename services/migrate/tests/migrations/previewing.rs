//! A dry run tells what the real run then does.

use keyward_engine::Json;
use keyward_migrate::{Definition, Error, Migration, Preview, State};
use keyward_records::{Record, Records};
use keyward_stores::{Place, on_engines, on_every_engine};

use crate::fixture::{
    PLAIN, add, fill, indexed, json, key, migrator, note, open, operator, put_raw, rows, scratch,
    slugged,
};
use crate::rekeying::{self, NEW, OLD, rekey};

on_every_engine!(
    what_cannot_be_indexed_is_told_beforehand,
    what_cannot_be_moved_is_told_beforehand,
    what_cannot_be_changed_is_told_beforehand,
    a_unique_value_that_is_taken_is_told_beforehand,
    a_dry_run_writes_nowhere_but_into_an_empty_store,
);
on_engines!(
    recoverable: Recoverable;
    what_cannot_be_indexed_is_told_beforehand,
    what_cannot_be_moved_is_told_beforehand,
    what_cannot_be_changed_is_told_beforehand,
);

/// The dry run and the real one tell the same problems.
fn assert_told(preview: &Preview, done: &Migration) {
    let told = done.problems.iter().take(Preview::PROBLEMS_MAX);
    assert!(preview.problems.iter().eq(told), "{preview:?} {done:?}");
    assert_eq!(preview.problem_count, done.counts.problems);
    assert_eq!((preview.rows, preview.changed), (done.counts.records, done.counts.changed));
    assert!(preview.is_whole);
}

/// Runs a migration after its dry run.
async fn both(place: &Place, records: &Records, definition: Definition) -> Migration {
    let migrator = migrator(records, place.clock());
    let stored = rows(records.store(), "").await;
    let preview = migrator.preview(&definition, &scratch(place, records)).await.unwrap();
    assert_eq!(rows(records.store(), "").await, stored, "a dry run leaves everything as it is");
    let done = migrator.run(definition, |_| ()).await.unwrap();
    assert_told(&preview, &done);
    done
}

async fn what_cannot_be_indexed_is_told_beforehand(place: Place) {
    let before = open(&place, PLAIN).await;
    fill(&operator(&before, "notes"), 20).await;
    put_raw(before.store(), "user:u1:notes:odd", r#"{"title":7}"#).await;
    let after = open(&place, &indexed()).await;
    let done = both(&place, &after, add(&after, "notes", "by_title")).await;
    assert_eq!((done.state, done.counts.problems), (State::Failed, 1));
    assert_eq!(done.problems[0].key, "user:u1:notes:odd");
    // Two of one slug.
    let slug = r#"{"slug":"s3"}"#;
    put_raw(before.store(), "user:u2:notes:twin", slug).await;
    let after = open(&place, &slugged()).await;
    let done = both(&place, &after, add(&after, "notes", "slug")).await;
    assert_eq!((done.state, done.counts.problems), (State::Failed, 1));
}

async fn what_cannot_be_moved_is_told_beforehand(place: Place) {
    let before = open(&place, &rekeying::schema(OLD, place.kind())).await;
    rekeying::fill(&before, 6).await;
    // Without a user, with a value that the schema refuses, and with a key that is taken.
    put_raw(before.store(), "notes:homeless", r#"{"title":"x"}"#).await;
    put_raw(before.store(), "notes:odd", r#"{"userId":"u1","slug":[]}"#).await;
    put_raw(before.store(), "notes:taken", r#"{"userId":"u1","title":"x"}"#).await;
    put_raw(before.store(), "user:u1:notes:taken", r#"{"title":"there first"}"#).await;
    let after = open(&place, &rekeying::schema(NEW, place.kind())).await;
    let done = both(&place, &after, rekey(OLD, NEW, &[("userId", "userId")])).await;
    assert_eq!((done.counts.changed, done.counts.problems), (6, 3));
}

/// Changes values after a dry run of it.
async fn both_transform(
    place: &Place,
    records: &Records,
    mut change: impl FnMut(&Record) -> keyward_records::Result<Option<Json>> + Send + Sync,
) -> Migration {
    let migrator = migrator(records, place.clock());
    let stored = rows(records.store(), "").await;
    let scratch = scratch(place, records);
    let preview = migrator.preview_transform("notes", &mut change, &scratch).await.unwrap();
    assert_eq!(rows(records.store(), "").await, stored, "a dry run leaves everything as it is");
    let done = migrator.transform("notes", "by hand", &mut change, |_| ()).await.unwrap();
    assert_told(&preview, &done);
    done
}

async fn what_cannot_be_changed_is_told_beforehand(place: Place) {
    let records = open(&place, &indexed()).await;
    fill(&operator(&records, "notes"), 10).await;
    let done = both_transform(&place, &records, |_| Ok(Some(json(r#"{"title":7}"#)))).await;
    assert_eq!((done.counts.changed, done.counts.problems), (0, 10));
    // A title that no key has room for.
    let far_too_long = format!(r#"{{"title":"{}"}}"#, "t".repeat(5_000));
    let done = both_transform(&place, &records, |record| {
        let long = record.key == key("user:u1:notes:n001");
        Ok(Some(json(if long { &far_too_long } else { r#"{"title":"ok"}"# })))
    })
    .await;
    assert_eq!((done.counts.changed, done.counts.problems), (9, 1));
}

async fn a_unique_value_that_is_taken_is_told_beforehand(place: Place) {
    let records = open(&place, &slugged()).await;
    fill(&operator(&records, "notes"), 10).await;
    // The first one wants what the last one has; the others keep theirs.
    let last = rows(records.store(), "user").await.pop().unwrap().1;
    let done =
        both_transform(&place, &records, |record| Ok((record.key == note(0)).then(|| json(&last))))
            .await;
    assert_eq!((done.counts.changed, done.counts.problems), (0, 1));
    assert!(done.problems[0].message.contains("the unique index slug already holds"));
}

async fn a_dry_run_writes_nowhere_but_into_an_empty_store(place: Place) {
    let records = open(&place, &indexed()).await;
    fill(&operator(&records, "notes"), 3).await;
    let migrator = migrator(&records, place.clock());
    let refused = migrator.preview(&add(&records, "notes", "by_title"), &records).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
}
