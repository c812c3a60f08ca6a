//! Runs that take long: a second one does not take over while they work.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use keyward_engine::{Clock, Store, Tier};
use keyward_memory::{Memory, Options};
use keyward_migrate::{Definition, Error, Migration, Migrator, Result};
use keyward_records::{Draft, Record, Records};
use keyward_testkit::{Fault, Faults, FaultyEngine, TestClock, VirtualClock, When};

use crate::fixture::{
    Jumping, PLAIN, add, assert_done, fill, indexed, json, note, operator, records, rows,
};
use crate::simulated::Sleeping;

/// More than are worked off in the time after which a silent run counts as dead.
const NOTES: usize = 300;
/// How long each call to the engine takes the first run.
const CALL: Duration = Duration::from_millis(25);
const CALLS_MAX: u64 = 1_000_000;

/// A run of a migration.
type Run = BoxFuture<'static, Result<Migration>>;
/// What is run, by somebody.
type Work = fn(Migrator, Records) -> Run;

/// Runs something on a slow engine, and the same again and again on a quick one meanwhile: all of these are
/// refused.
async fn second_runs_are_refused(tier: Tier, schemas: [&str; 2], work: Work) {
    let clock = VirtualClock::new();
    let memory = Memory::with(Options::tier(tier), clock);
    let opened = |store: Store, schema: &str| {
        let schema = keyward_schema::Schema::parse(schema, "schema.toml").unwrap();
        Records::open(store, schema.spaces, clock).unwrap()
    };
    let before = operator(&opened(Store::new(memory.clone()), schemas[0]), "notes");
    for n in 0..NOTES {
        let draft = Draft::new(json(&format!(r#"{{"title":"t{n}","tags":["a"]}}"#)));
        assert!(before.put(&note(n), draft).await.unwrap().is_accepted());
    }
    let slow = Faults::script((0..CALLS_MAX).map(|at| (at, Fault::Delay(When::Before, CALL))));
    let slow = FaultyEngine::new(Arc::new(memory.clone()), slow);
    let slow = opened(Store::new(slow), schemas[1]);
    let first = work(Migrator::new(slow.clone(), Sleeping).by("ada"), slow);
    let first = tokio::spawn(first);
    let mut refused = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        if first.is_finished() {
            break;
        }
        let quick = opened(Store::new(memory.clone()), schemas[1]);
        match work(Migrator::new(quick.clone(), Sleeping).by("bob"), quick).await {
            Err(Error::Running { by, .. }) => {
                assert_eq!(by, "ada");
                refused += 1;
            }
            second => assert!(first.is_finished(), "a second run took over: {second:?}"),
        }
    }
    let done = first.await.unwrap().unwrap();
    assert_done(&done);
    assert_eq!((done.runs, done.by.as_str()), (1, "ada"));
    assert!(refused > 2, "{refused}");
}

fn transform(migrator: Migrator, _: Records) -> Run {
    Box::pin(async move {
        let mut change = |_: &Record| Ok(Some(json(r#"{"title":"new"}"#)));
        migrator.transform("notes", "rewrite", &mut change, |_| ()).await
    })
}

fn add_index(migrator: Migrator, records: Records) -> Run {
    Box::pin(async move { migrator.run(add(&records, "notes", "by_title"), |_| ()).await })
}

fn drop_index(migrator: Migrator, _: Records) -> Run {
    let drop = Definition::DropIndex { space: "notes".into(), index: "by_title".into() };
    Box::pin(async move { migrator.run(drop, |_| ()).await })
}

#[tokio::test(start_paused = true)]
async fn a_second_run_does_not_oust_one_that_changes_values_slowly() {
    let schema = indexed();
    for tier in [Tier::Atomic, Tier::Recoverable] {
        second_runs_are_refused(tier, [&schema, &schema], transform).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_run_does_not_oust_one_that_builds_an_index_slowly() {
    second_runs_are_refused(Tier::Recoverable, [PLAIN, &indexed()], add_index).await;
}

#[tokio::test(start_paused = true)]
async fn a_second_run_does_not_oust_one_that_drops_an_index_slowly() {
    second_runs_are_refused(Tier::Recoverable, [&indexed(), PLAIN], drop_index).await;
}

/// The function that changes values takes the time, and no call to the engine waits.
#[tokio::test]
async fn a_slow_change_of_values_gives_signs_of_life_between_two_records() {
    let clock = TestClock::new();
    let memory = Memory::with(Options::default(), clock.clone());
    let store = Store::new(memory);
    let records = records(store.clone(), &clock, PLAIN);
    fill(&operator(&records, "notes"), 40).await;
    let row = || {
        let rows = rows(&store, "system:migration").now_or_never().unwrap();
        let at = keyward_key::Key::parse(&rows[0].0).unwrap();
        store.get(&at).now_or_never().unwrap().unwrap().unwrap().version
    };
    let (mut last, mut since, mut silent_max) = (None, clock.now(), Duration::ZERO);
    let mut change = |_: &Record| {
        let now = Some(row());
        if now != last {
            (last, since) = (now, clock.now());
        }
        clock.advance(Duration::from_secs(1));
        silent_max = silent_max.max(clock.now().duration_since(since).unsigned_abs());
        Ok(Some(json(r#"{"title":"new"}"#)))
    };
    let migrator = Migrator::new(records.clone(), Jumping(clock.clone()));
    let done = migrator.transform("notes", "slowly", &mut change, |_| ()).await.unwrap();
    assert_done(&done);
    assert_eq!((done.counts.records, done.counts.changed), (40, 40));
    assert!(silent_max <= Duration::from_secs(3), "{silent_max:?}");
}

#[tokio::test]
async fn what_was_counted_before_a_kill_in_the_middle_of_a_page_is_counted_once() {
    let clock = TestClock::new();
    let memory = Memory::with(Options::default(), clock.clone());
    let opened = |store| records(store, &clock, PLAIN);
    fill(&operator(&opened(Store::new(memory.clone())), "notes"), 20).await;
    let engine = FaultyEngine::new(Arc::new(memory.clone()), Faults::none());
    let slowly = |engine: Option<FaultyEngine>| {
        let (clock, mut seen) = (clock.clone(), 0);
        move |record: &Record| {
            seen += 1;
            clock.advance(Duration::from_secs(1));
            if let Some(engine) = engine.as_ref().filter(|_| seen == 6) {
                engine.kill();
            }
            let fails = record.key == note(0);
            Ok(Some(json(if fails { r#"{"title":1}"# } else { r#"{"title":"new"}"# })))
        }
    };
    let dying = Migrator::new(opened(Store::new(engine.clone())), Jumping(clock.clone()));
    let killed = dying.transform("notes", "slowly", &mut slowly(Some(engine)), |_| ()).await;
    assert!(killed.is_err());
    let again = Migrator::new(opened(Store::new(memory)), Jumping(clock.clone()));
    let done = again.transform("notes", "slowly", &mut slowly(None), |_| ()).await.unwrap();
    assert_eq!((done.runs, done.counts.records, done.counts.problems), (2, 20, 1));
}
