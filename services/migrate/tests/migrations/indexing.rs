//! Making, removing and remaking indexes.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use keyward_engine::Clock;
use keyward_migrate::{Definition, Phase, State};
use keyward_records::{CatalogedIndex, Draft, IndexState, Precondition, Space};
use keyward_stores::{Place, on_engines, on_every_engine};

use crate::fixture::{
    PLAIN, add, assert_done, assert_well, fill, found, indexed, json, migrate, migrator, note,
    open, operator, rows, scratch, slugged,
};

on_every_engine!(
    an_index_is_made_of_what_is_there,
    an_index_made_while_others_write_is_exact,
    a_unique_clash_is_told_and_the_index_is_given_up,
    neighbours_that_clash_are_told,
    a_dropped_index_leaves_nothing,
    a_changed_index_is_remade,
    a_record_leaves_a_unique_entry_to_the_one_that_has_it_while_the_index_is_made,
);
on_engines!(
    recoverable: Recoverable;
    an_index_is_made_of_what_is_there,
    an_index_made_while_others_write_is_exact,
    a_unique_clash_is_told_and_the_index_is_given_up,
    a_dropped_index_leaves_nothing,
    a_changed_index_is_remade,
);

async fn an_index_is_made_of_what_is_there(place: Place) {
    let before = open(&place, PLAIN).await;
    fill(&operator(&before, "notes"), 60).await;
    let after = open(&place, &indexed()).await;
    let steps = migrator(&after, place.clock()).plan().await.unwrap().build;
    assert_eq!(steps, ["by_tag", "by_title"].map(|name| add(&after, "notes", name)));
    let preview =
        migrator(&after, place.clock()).preview(&steps[0], &scratch(&place, &after)).await.unwrap();
    assert_eq!((preview.rows, preview.is_whole), (60, true));
    let done = migrate(&after, place.clock()).await;
    done.iter().for_each(assert_done);
    assert_eq!(done[0].counts.records, 60);
    assert_eq!(done[0].counts.checked, 60 + 120);
    for user in ["u0", "u1", "u2"] {
        assert_eq!(found(&after, user, "by_tag", "a").await, 20);
        assert_eq!(found(&after, user, "by_title", "t1").await, 4);
    }
    assert_well(&after).await;
    assert!(migrator(&after, place.clock()).plan().await.unwrap().is_empty());
    let history = migrator(&after, place.clock()).history().await.unwrap();
    let told: Vec<_> = history.iter().map(|m| (m.definition.kind(), m.state, &*m.by)).collect();
    assert_eq!(told, [("add-index", State::Done, "tests"); 2]);
}

/// Changes notes at random until told to stop, by a schema that knows nothing of the indexes.
async fn scribble(space: Space, mut rng: Rng, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let key = note(rng.usize(..40));
        let written = if rng.u8(..4) == 0 {
            space.delete(&key, Precondition::Any).await
        } else {
            let text = format!(r#"{{"title":"t{}","tags":["x{}"]}}"#, rng.u8(..5), rng.u8(..9));
            space.put(&key, Draft::new(json(&text))).await
        };
        assert!(written.unwrap().is_accepted());
        tokio::task::yield_now().await;
    }
}

async fn an_index_made_while_others_write_is_exact(place: Place) {
    let before = open(&place, PLAIN).await;
    let notes = operator(&before, "notes");
    fill(&notes, 40).await;
    let after = open(&place, &indexed()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|seed| tokio::spawn(scribble(notes.clone(), Rng::with_seed(seed), stop.clone())))
        .collect();
    for migration in migrate(&after, place.clock()).await {
        assert_done(&migration);
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    // Where commits take one key, writers leave entries that the next look removes.
    let doctor = keyward_migrate::Doctor::new(after.clone()).repair(true);
    let report = doctor.run(|_| ()).await.unwrap();
    assert!(!report.counts.contains_key("missing-entry"), "{:#?}", report.found);
    assert_well(&after).await;
}

async fn a_unique_clash_is_told_and_the_index_is_given_up(place: Place) {
    let before = open(&place, PLAIN).await;
    let notes = operator(&before, "notes");
    fill(&notes, 20).await;
    let twin = |n: usize| Draft::new(json(&format!(r#"{{"slug":"s{n}"}}"#)));
    assert!(notes.put(&note(19), twin(0)).await.unwrap().is_accepted());
    assert!(notes.put(&note(18), Draft::new(json(r#"{"slug":7}"#))).await.unwrap().is_accepted());
    let records = rows(before.store(), "user").await;
    let after = open(&place, &slugged()).await;
    let failed = migrate(&after, place.clock()).await.pop().unwrap();
    assert_eq!((failed.state, failed.counts.problems), (State::Failed, 2));
    let told = failed.problems.iter().map(|p| p.message.as_str()).collect::<Vec<_>>().join(" ");
    assert!(told.contains("already holds") && told.contains("must be text"), "{told}");
    assert!(rows(after.store(), "index").await.is_empty());
    assert_eq!(after.catalog().await.unwrap().indexes["slug"].state, IndexState::Disabled);
    assert_eq!(rows(after.store(), "user").await, records);
    // Once a person has decided, it can be made.
    for n in [18, 19] {
        assert!(notes.put(&note(n), twin(n)).await.unwrap().is_accepted());
    }
    let steps = migrator(&after, place.clock()).plan().await.unwrap().build;
    assert!(matches!(&steps[..], [Definition::RebuildIndex { .. }]), "{steps:?}");
    assert_done(&migrate(&after, place.clock()).await[0]);
    assert_eq!(rows(after.store(), "index").await.len(), 20);
    assert_well(&after).await;
}

/// Two records of one page, which go in one commit otherwise.
async fn neighbours_that_clash_are_told(place: Place) {
    let before = open(&place, PLAIN).await;
    let notes = operator(&before, "notes");
    for n in [0, 3, 6] {
        let draft = Draft::new(json(r#"{"slug":"one"}"#));
        assert!(notes.put(&note(n), draft).await.unwrap().is_accepted());
    }
    let after = open(&place, &slugged()).await;
    let failed = migrate(&after, place.clock()).await.pop().unwrap();
    let told: Vec<&str> = failed.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(told, ["user:u0:notes:n003", "user:u0:notes:n006"]);
    assert!(rows(after.store(), "index").await.is_empty());
}

async fn a_dropped_index_leaves_nothing(place: Place) {
    let before = open(&place, &indexed()).await;
    fill(&operator(&before, "notes"), 30).await;
    assert_eq!(rows(before.store(), "index").await.len(), 90);
    let after = open(&place, PLAIN).await;
    let done = migrate(&after, place.clock()).await;
    done.iter().for_each(assert_done);
    assert_eq!(done.iter().map(|migration| migration.counts.swept).sum::<u64>(), 90);
    assert!(rows(after.store(), "index").await.is_empty());
    assert!(after.catalog().await.unwrap().indexes.is_empty());
    assert_eq!(rows(after.store(), "user").await.len(), 30);
    assert_well(&after).await;
}

async fn a_changed_index_is_remade(place: Place) {
    let before = open(&place, &indexed()).await;
    fill(&operator(&before, "notes"), 30).await;
    let changed = indexed().replace(
        "[spaces.notes.indexes.by_title]\nfield = \"title\"",
        "[spaces.notes.indexes.by_title]\nfields = [\"title\", \"slug\"]\ntype = \"text\"",
    );
    let changed = changed.replace("tags = {", "slug = { type = \"string\" }\ntags = {");
    let changed = changed.replace("\ntype = \"text\"", "");
    let after = open(&place, &changed).await;
    let steps = migrator(&after, place.clock()).plan().await.unwrap().build;
    assert!(matches!(&steps[..], [Definition::RebuildIndex { .. }]), "{steps:?}");
    assert_done(&migrate(&after, place.clock()).await[0]);
    let entries = rows(after.store(), "index:by_title").await;
    assert_eq!(entries.len(), 30);
    assert!(entries[0].0.starts_with("index:by_title:u0:t0:s0:"), "{}", entries[0].0);
    assert_well(&after).await;
}

async fn a_record_leaves_a_unique_entry_to_the_one_that_has_it_while_the_index_is_made(
    place: Place,
) {
    let before = open(&place, PLAIN).await;
    let notes = operator(&before, "notes");
    let put = async |n: usize, slug: &str| {
        let text = format!(r#"{{"slug":{slug:?}}}"#);
        assert!(notes.put(&note(n), Draft::new(json(&text))).await.unwrap().is_accepted());
    };
    put(0, "one").await;
    put(3, "one").await;
    put(6, "one").await;
    let after = open(&place, &slugged()).await;
    let definition = after.declarations().next().unwrap().index("slug").unwrap().clone();
    let row = CatalogedIndex { space: "notes".into(), definition, state: IndexState::Building };
    after
        .change_catalog(|content| {
            content.indexes.insert("slug".into(), row.clone());
            Ok(())
        })
        .await
        .unwrap();
    let built = after.build_index("slug", None, 1).await.unwrap();
    assert_eq!(built.entries, 1);
    // Neither a change nor a removal of the others touches what the first one has.
    put(3, "other").await;
    assert!(
        notes.delete(&note(6), Precondition::Any).await.unwrap()
            == keyward_records::Written::Removed
    );
    let rest = after.build_index("slug", built.position, 100).await.unwrap();
    assert!(rest.clashes.is_empty() && rest.position.is_none(), "{:?}", rest.clashes);
    after.finish_index("slug").await.unwrap();
    assert_eq!(rows(after.store(), "index").await.len(), 2);
    assert_well(&after).await;
}

#[tokio::test]
async fn the_pace_is_kept() {
    let place = Place::new(keyward_stores::Kind::Memory);
    let before = open(&place, PLAIN).await;
    fill(&operator(&before, "notes"), 95).await;
    let after = open(&place, &indexed()).await;
    let began = place.clock().now();
    let migrator = migrator(&after, place.clock()).page(500).rate(NonZeroU32::new(10));
    let mut walked = Vec::new();
    let done = migrator.run(add(&after, "notes", "by_title"), |migration| {
        if migration.phase == Phase::Walk {
            walked.push((migration.counts.records, place.clock().now().duration_since(began)));
        }
    });
    assert_done(&done.await.unwrap());
    let (records, time) = *walked.last().unwrap();
    assert_eq!(records, 90);
    // The wait for the last page comes after it is told of.
    assert_eq!(time.as_secs(), 8);
}
