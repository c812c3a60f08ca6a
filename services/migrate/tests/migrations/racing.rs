//! Migrations with writers at the same records, and with each other.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use keyward_engine::{Json, Store, Tier};
use keyward_memory::{Memory, Options};
use keyward_migrate::{Doctor, Edit, Error as MigrateError, Migration, State};
use keyward_records::{Draft, Error, IndexState, Query, Record, Records, Space};
use keyward_stores::{Kind, Place, on_engines};
use keyward_testkit::{Fault, Faults, FaultyEngine, TestClock, When};

use crate::fixture::{
    Jumping, PLAIN, assert_done, found, indexed, json, key, migrate, open, operator, records, rows,
};
use crate::rekeying::rekey;
use crate::simulated::{World, count_up, migrator, simulate};
use crate::unique::check_slugs;

pub const RECORDS: usize = 8;
pub const WRITERS: usize = 3;
pub const OLD: &str = "notes:{id}";
const NEW: &str = "papers:{id}";

/// Notes that are counted up, by state; with one slug each, if that is declared.
pub fn schema(pattern: &str, slugs: bool) -> String {
    let slugs = if slugs {
        "[spaces.notes.indexes.slug]\nfield = \"slug\"\ntype = \"text\"\nunique = true\n"
    } else {
        ""
    };
    format!(
        r#"
[stores.app]
[spaces.notes]
key = "{pattern}"
ownership = "shared"
[spaces.notes.value]
type = "object"
[spaces.notes.value.properties]
n = {{ type = "integer" }}
state = {{ type = "string" }}
slug = {{}}
[spaces.notes.indexes.by_state]
field = "state"
{slugs}"#
    )
}

pub async fn fill(records: &Records) {
    for n in 0..RECORDS {
        let draft = Draft::new(json(&format!(r#"{{"n":0,"state":"old","slug":"s{n}"}}"#)));
        let at = key(&format!("notes:{n}"));
        assert!(operator(records, "notes").put(&at, draft).await.unwrap().is_accepted());
    }
}

/// What was counted, as it was acknowledged.
#[derive(Default)]
struct Tally([AtomicU64; RECORDS]);

impl Tally {
    /// That every record says what was counted, and none is there twice.
    fn check(&self, rows: &[(String, String)]) {
        let mut found = BTreeMap::new();
        for (at, value) in rows {
            let value: serde_json::Value = serde_json::from_str(value).unwrap();
            let id: usize = at.rsplit(':').next().unwrap().parse().unwrap();
            assert!(
                found.insert(id, value["n"].as_u64().unwrap()).is_none(),
                "{at} is there twice"
            );
        }
        let counted: BTreeMap<usize, u64> =
            self.0.iter().map(|n| n.load(Ordering::Relaxed)).enumerate().collect();
        assert_eq!(found, counted, "acknowledged changes are lost, or made twice");
    }
}

/// Counts up records until told to stop: under the old key, or the new one if the old one is gone.
async fn count_in_both(
    old: Space,
    new: Space,
    mut rng: Rng,
    tally: Arc<Tally>,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Relaxed) {
        let id = rng.usize(..RECORDS);
        for (space, at) in [(&old, format!("notes:{id}")), (&new, format!("papers:{id}"))] {
            if count_up(space, &key(&at)).await.unwrap() {
                tally.0[id].fetch_add(1, Ordering::Relaxed);
                break;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// That no record lacks an entry: what writers leave behind themselves does not matter.
pub async fn assert_nothing_missing(records: &Records) {
    let report = Doctor::new(records.clone()).repair(true).run(|_| ()).await.unwrap();
    for code in ["missing-entry", "wrong-entry", "taken-entry", "unknown-key"] {
        assert!(!report.counts.contains_key(code), "{:#?}", report.found);
    }
}

async fn moved_under_writers(world: World, mut rng: Rng) -> u64 {
    fill(&world.records(&schema(OLD, false))).await;
    let (tally, stop) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let old = operator(&world.process(&schema(OLD, false), &mut rng), "notes");
        let new = operator(&world.process(&schema(NEW, false), &mut rng), "notes");
        let (tally, stop, rng) = (tally.clone(), stop.clone(), rng.fork());
        writers.push(tokio::spawn(count_in_both(old, new, rng, tally, stop)));
    }
    let after = world.process(&schema(NEW, false), &mut rng);
    let done = migrator(&after).run(rekey(OLD, NEW, &[]), |_| ()).await.unwrap();
    assert_done(&done);
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let quiet = world.records(&schema(NEW, false));
    assert!(rows(quiet.store(), "notes").await.is_empty());
    tally.check(&rows(quiet.store(), "papers").await);
    assert_nothing_missing(&quiet).await;
    tally.0.iter().map(|n| n.load(Ordering::Relaxed)).sum()
}

#[test]
fn nothing_that_is_written_while_records_move_is_lost() {
    let path = "migrations::racing::nothing_that_is_written_while_records_move_is_lost";
    let counted = simulate(path, Tier::Atomic, moved_under_writers);
    assert!(counted.iter().all(|counted| *counted > 0));
}

#[test]
fn nothing_that_is_written_while_records_move_is_lost_key_by_key() {
    let path = "migrations::racing::nothing_that_is_written_while_records_move_is_lost_key_by_key";
    let counted = simulate(path, Tier::Recoverable, moved_under_writers);
    assert!(counted.iter().all(|counted| *counted > 0));
}

fn closed(record: &Record) -> keyward_records::Result<Option<Json>> {
    let edit = Edit::Set("state".parse().unwrap(), json(r#""new""#));
    edit.apply(&record.value).map(Some).map_err(Error::BadChange)
}

async fn changed_under_writers(world: World, mut rng: Rng) {
    let schema = schema(OLD, false);
    fill(&world.records(&schema)).await;
    let (tally, stop) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let notes = operator(&world.process(&schema, &mut rng), "notes");
        let (tally, stop, rng) = (tally.clone(), stop.clone(), rng.fork());
        writers.push(tokio::spawn(count_in_both(notes.clone(), notes, rng, tally, stop)));
    }
    let migrating = world.process(&schema, &mut rng);
    let done = migrator(&migrating).transform("notes", "close", &mut closed, |_| ()).await.unwrap();
    assert_done(&done);
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    check_changed(&world.records(&schema), &tally).await;
}

async fn check_changed(quiet: &Records, tally: &Tally) {
    let notes = rows(quiet.store(), "notes").await;
    tally.check(&notes);
    assert!(notes.iter().all(|(_, value)| value.contains(r#""state":"new""#)), "{notes:?}");
    assert_nothing_missing(quiet).await;
    let found = operator(quiet, "notes").query(&Query::index("by_state").equal("new")).await;
    assert_eq!(found.unwrap().records.len(), RECORDS);
}

#[test]
fn nothing_that_is_written_while_values_change_is_lost() {
    let path = "migrations::racing::nothing_that_is_written_while_values_change_is_lost";
    simulate(path, Tier::Atomic, changed_under_writers);
}

#[test]
fn nothing_that_is_written_while_values_change_is_lost_key_by_key() {
    let path = "migrations::racing::nothing_that_is_written_while_values_change_is_lost_key_by_key";
    simulate(path, Tier::Recoverable, changed_under_writers);
}

/// What became of two who ran the same.
fn ended(results: Vec<Result<Migration, MigrateError>>) -> usize {
    let mut overtaken = 0;
    let mut done = 0;
    for result in results {
        match result {
            Ok(migration) => {
                assert_done(&migration);
                done += 1;
            }
            Err(MigrateError::Overtaken { .. } | MigrateError::Running { .. }) => overtaken += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(done > 0, "nobody came to the end");
    overtaken
}

/// How many were overtaken, of two who start at once or one in the middle of the other.
async fn two_migrators(world: World, mut rng: Rng) -> usize {
    fill(&world.records(&schema(OLD, false))).await;
    let mut migrators = Vec::new();
    let second_late = rng.u64(..2) * rng.u64(..100);
    for late in [0, second_late] {
        let records = world.process(&schema(OLD, true), &mut rng);
        let late = std::time::Duration::from_millis(late);
        migrators.push(tokio::spawn(async move {
            tokio::time::sleep(late).await;
            let step = crate::fixture::add(&records, "notes", "slug");
            migrator(&records).run(step, |_| ()).await
        }));
    }
    let mut results = Vec::new();
    for migrator in migrators {
        results.push(migrator.await.unwrap());
    }
    let quiet = world.records(&schema(OLD, true));
    assert_eq!(quiet.catalog().await.unwrap().indexes["slug"].state, IndexState::Readable);
    check_slugs(&quiet).await;
    assert_nothing_missing(&quiet).await;
    let history = migrator(&quiet).history().await.unwrap();
    assert!(history.iter().all(|migration| migration.state != State::Running), "{history:#?}");
    let overtaken = ended(results);
    // Whoever starts at once with the other never gets to the end beside it.
    assert!(overtaken == 1 || second_late > 0, "both came to the end");
    overtaken
}

fn assert_overtaken(overtaken: &[usize]) {
    if std::env::var_os("KEYWARD_SEED").is_none() {
        let seen = overtaken.iter().filter(|overtaken| **overtaken == 1).count();
        assert!(seen > overtaken.len() / 4, "{overtaken:?}");
    }
}

#[test]
fn of_two_migrators_one_comes_to_the_end_and_the_other_is_told() {
    let path = "migrations::racing::of_two_migrators_one_comes_to_the_end_and_the_other_is_told";
    assert_overtaken(&simulate(path, Tier::Atomic, two_migrators));
}

#[test]
fn of_two_migrators_one_comes_to_the_end_and_the_other_is_told_key_by_key() {
    let path = "migrations::racing::of_two_migrators_one_comes_to_the_end_and_the_other_is_told_key_by_key";
    assert_overtaken(&simulate(path, Tier::Recoverable, two_migrators));
}

on_engines!(
    embedded: Embedded, postgres: Postgres;
    nothing_is_lost_while_records_move_under_threads,
    nothing_is_lost_while_values_change_under_threads,
);

pub fn migrator_of(records: &Records, place: &Place) -> keyward_migrate::Migrator {
    assert_ne!(place.kind(), Kind::Recoverable, "its catalog goes by the time that jumps");
    keyward_migrate::Migrator::new(records.clone(), Jumping(place.clock().clone())).page(3)
}

async fn nothing_is_lost_while_records_move_under_threads(place: Place) {
    fill(&open(&place, &schema(OLD, false)).await).await;
    let (tally, stop) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for seed in 0..WRITERS {
        let old = operator(&open(&place, &schema(OLD, false)).await, "notes");
        let new = operator(&open(&place, &schema(NEW, false)).await, "notes");
        let rng = Rng::with_seed(seed as u64);
        writers.push(tokio::spawn(count_in_both(old, new, rng, tally.clone(), stop.clone())));
    }
    let after = open(&place, &schema(NEW, false)).await;
    assert_done(&migrator_of(&after, &place).run(rekey(OLD, NEW, &[]), |_| ()).await.unwrap());
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(rows(after.store(), "notes").await.is_empty());
    tally.check(&rows(after.store(), "papers").await);
    assert_nothing_missing(&after).await;
}

async fn nothing_is_lost_while_values_change_under_threads(place: Place) {
    let records = open(&place, &schema(OLD, false)).await;
    fill(&records).await;
    let (tally, stop) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for seed in 0..WRITERS {
        let notes = operator(&open(&place, &schema(OLD, false)).await, "notes");
        let rng = Rng::with_seed(seed as u64);
        let (tally, stop) = (tally.clone(), stop.clone());
        writers.push(tokio::spawn(count_in_both(notes.clone(), notes, rng, tally, stop)));
    }
    let migrator = migrator_of(&records, &place);
    assert_done(&migrator.transform("notes", "close", &mut closed, |_| ()).await.unwrap());
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    check_changed(&records, &tally).await;
}

/// One call of a writer who creates a record is stuck for a minute, while an index is added: the index
/// is readable then, so it must have the record.
#[tokio::test(start_paused = true)]
async fn a_record_of_a_writer_who_was_stuck_is_in_an_index_that_was_added_meanwhile() {
    for call in 0..12 {
        let clock = TestClock::new();
        let memory = Memory::with(Options::tier(Tier::Recoverable), clock.clone());
        let stuck = Faults::script([(call, Fault::Delay(When::Before, Duration::from_secs(60)))]);
        let engine = FaultyEngine::new(Arc::new(memory.clone()), stuck);
        let writing = records(Store::new(engine), &clock, PLAIN);
        let writing = tokio::spawn(async move {
            let notes = operator(&writing, "notes");
            notes.create(&key("user:ada:notes:n1"), Draft::new(json(r#"{"title":"t"}"#))).await
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let migrating = records(Store::new(memory), &clock, &indexed());
        migrate(&migrating, &clock).await;
        assert!(writing.await.unwrap().unwrap().is_accepted());
        assert_eq!(found(&migrating, "ada", "by_title", "t").await, 1, "stuck at call {call}");
    }
}

/// Notes that take a minute to be moved.
async fn slowly(records: Records) -> Result<Migration, MigrateError> {
    let slow = migrator(&records).rate(NonZeroU32::new(1)).by("ada");
    slow.run(rekey(OLD, NEW, &[]), |_| ()).await
}

#[tokio::test(start_paused = true)]
async fn a_second_run_does_not_oust_a_living_first_one() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let clock = TestClock::new();
        let memory = Memory::with(Options::tier(tier), clock.clone());
        let opened = |pattern| records(Store::new(memory.clone()), &clock, &schema(pattern, false));
        fill(&opened(OLD)).await;
        let first = tokio::spawn(slowly(opened(NEW)));
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = opened(NEW);
        let second = migrator(&after).by("bob").run(rekey(OLD, NEW, &[]), |_| ()).await;
        let Err(error @ MigrateError::Running { .. }) = &second else { panic!("{second:?}") };
        assert!(error.to_string().contains("is being run by ada since "), "{error}");
        let done = first.await.unwrap().unwrap();
        assert_done(&done);
        let runs = (done.runs, done.counts.changed, done.runner);
        assert_eq!(runs, (1, RECORDS as u64, None), "{tier:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_killed_is_gone_on_with_after_a_silence() {
    let clock = TestClock::new();
    let memory = Memory::with(Options::default(), clock.clone());
    let opened = |pattern| records(Store::new(memory.clone()), &clock, &schema(pattern, false));
    fill(&opened(OLD)).await;
    let first = tokio::spawn(slowly(opened(NEW)));
    tokio::time::sleep(Duration::from_secs(3)).await;
    first.abort();
    let after = opened(NEW);
    let done = migrator(&after).by("bob").run(rekey(OLD, NEW, &[]), |_| ()).await.unwrap();
    assert_done(&done);
    assert_eq!((done.runs, done.by.as_str()), (2, "ada"));
    assert_eq!((done.counts.records, done.counts.changed), (RECORDS as u64, RECORDS as u64));
}
