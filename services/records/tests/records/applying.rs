//! Records set to what functions make of them.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded, Engine, Store, Tier};
use keyward_records::{Caller, Next, Precondition, Record, Ttl, Update, Written};
use keyward_stores::{Place, on_engines, on_every_engine};
use keyward_testkit::{Faults, FaultyEngine};

use crate::declared::{memory, open_store};
use crate::fixture::{Fixture, draft, json, key, own, put};

on_every_engine!(many_records_change_by_functions_in_one_commit, all_or_none_change_by_functions);

const MINUTE: Duration = Duration::from_secs(60);

/// Adds one to the votes of a note.
fn voted(record: Option<&Record>) -> keyward_records::Result<Option<Next>> {
    let votes = record.and_then(|record| {
        let (_, votes) = record.value.as_str().split_once(r#""votes":"#)?;
        votes.trim_end_matches('}').parse::<u64>().ok()
    });
    let value = format!(r#"{{"title":"t","votes":{}}}"#, votes.unwrap_or(0) + 1);
    Ok(Some(Next::new(json(&value))))
}

async fn many_records_change_by_functions_in_one_commit(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    put(&notes, "n7", r#"{"title":"t","votes":41}"#).await;
    let updates =
        |()| (0..100).map(|n| Update::new(own(&notes, &format!("n{n}")), voted)).collect();
    let written = notes.apply_together(updates(())).await.unwrap();
    let created = written.iter().filter(|it| matches!(it, Written::Applied { created: true, .. }));
    assert_eq!(created.count(), 99);
    // One commit has one version.
    assert!(
        written.iter().all(|it| it.version().is_some() && it.version() == written[0].version())
    );
    let note = notes.get(&own(&notes, "n7")).await.unwrap().unwrap();
    assert_eq!(note.value.as_str(), r#"{"title":"t","votes":42}"#);
}

async fn all_or_none_change_by_functions(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    put(&notes, "there", r#"{"title":"t","votes":1}"#).await;
    let fresh = Update::new(own(&notes, "new"), voted);
    let refused = Update::new(own(&notes, "there"), voted).expecting(Precondition::Absent);
    let written = notes.apply_together(vec![fresh, refused]).await.unwrap();
    assert!(matches!(written[1], Written::Conflicted { current: Some(_) }), "{written:?}");
    assert_eq!(notes.get(&own(&notes, "new")).await.unwrap(), None);
    let twice = vec![Update::new(own(&notes, "n"), voted), Update::new(own(&notes, "n"), voted)];
    assert_eq!(notes.apply_together(twice).await.unwrap_err().code(), Code::BadChange);
    let bob = fixture.space("notes", "bob");
    let foreign = bob.apply(Update::new(own(&notes, "there"), voted)).await;
    assert_eq!(foreign.unwrap_err().code(), Code::Forbidden);
}

/// Another writer comes between reading and writing.
#[tokio::test]
async fn functions_run_again_when_another_change_comes_between() {
    const NOTES: &str = "[stores.app]\n[spaces.notes]\nkey = 'user:{user}:notes:{note}'\n\
                         ownership = 'user'\n";
    let (memory, clock) = memory(Tier::Atomic);
    let engine = FaultyEngine::new(Arc::new(memory.clone()), Faults::none());
    let records = open_store(Store::new(engine), &clock, NOTES);
    let notes = records.space("notes", &Caller::user("ada")).unwrap();
    let note = key("user:ada:notes:n");
    let rival = memory.clone();
    let mut runs = 0;
    let update = Update::new(note.clone(), |record| {
        runs += 1;
        if runs == 1 {
            let put = keyward_engine::Put::new(json(r#"{"votes":9}"#));
            let commit = keyward_engine::Commit::new().put(note.clone(), put);
            let between = futures_util::FutureExt::now_or_never(rival.commit(commit));
            assert!(between.unwrap().unwrap().is_applied());
        }
        voted(record)
    });
    let written = notes.apply_together(vec![update]).await.unwrap();
    assert!(written[0].is_accepted());
    assert_eq!(runs, 2);
    let value = notes.get(&note).await.unwrap().unwrap().value;
    assert_eq!(value.as_str(), r#"{"title":"t","votes":10}"#);
}

// PostgreSQL goes by its own clock, which no test can move.
on_engines!(
    aging_memory: Memory, aging_embedded: Embedded, aging_recoverable: Recoverable;
    a_record_lives_on_by_being_read_though_its_space_has_no_lifetime,
    a_function_gives_a_record_an_end,
);

async fn a_record_lives_on_by_being_read_though_its_space_has_no_lifetime(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    let id = own(&notes, "n");
    let sliding = draft(r#"{"title":"t"}"#).ttl(Ttl::Sliding(10 * MINUTE));
    assert!(notes.put(&id, sliding).await.unwrap().is_accepted());
    for _ in 0..5 {
        fixture.place.clock().advance(6 * MINUTE);
        assert!(notes.get(&id).await.unwrap().is_some());
        // A change that keeps its end keeps it sliding.
        let kept = notes.update(&id, |_| Ok(Some(json(r#"{"title":"u"}"#)))).await.unwrap();
        assert!(kept.is_accepted());
    }
    fixture.place.clock().advance(11 * MINUTE);
    assert_eq!(notes.get(&id).await.unwrap(), None);
    // One with an end of another kind does not live on.
    let ending = draft(r#"{"title":"t"}"#).ttl(Ttl::After(10 * MINUTE));
    assert!(notes.put(&id, ending).await.unwrap().is_accepted());
    fixture.place.clock().advance(6 * MINUTE);
    assert!(notes.get(&id).await.unwrap().is_some());
    fixture.place.clock().advance(6 * MINUTE);
    assert_eq!(notes.get(&id).await.unwrap(), None);
}

async fn a_function_gives_a_record_an_end(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    let id = own(&notes, "n");
    let ending = Update::new(id.clone(), |_| {
        let next = Next::new(json(r#"{"title":"t"}"#)).ttl(Ttl::After(MINUTE));
        Ok(Some(next.with_metadata(Some(json(r#"{"a":1}"#)))))
    });
    assert!(notes.apply(ending).await.unwrap().is_accepted());
    let record = notes.get(&id).await.unwrap().unwrap();
    assert_eq!(record.metadata.unwrap().as_str(), r#"{"a":1}"#);
    let never = Update::new(id.clone(), |record| {
        Ok(record.map(|record| Next::new(record.value.clone()).ttl(Ttl::Never)))
    });
    assert!(notes.apply(never).await.unwrap().is_accepted());
    fixture.place.clock().advance(2 * MINUTE);
    let record = notes.get(&id).await.unwrap().unwrap();
    // What it does not speak of stays.
    assert_eq!(record.metadata.unwrap().as_str(), r#"{"a":1}"#);
}
