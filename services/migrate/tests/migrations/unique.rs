//! Unique indexes, made while others write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use keyward_engine::Tier;
use keyward_migrate::State;
use keyward_records::{Draft, Error, IndexState, Query, Records, Space};
use keyward_stores::{Place, on_engines};

use crate::fixture::{add, json, key, open, operator, rows};
use crate::racing::{OLD, RECORDS, WRITERS, assert_nothing_missing, fill, migrator_of, schema};
use crate::simulated::{World, migrator, simulate};

/// How writers choose slugs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Slugs {
    /// Each record has slugs of its own: nothing clashes.
    Apart,
    /// The first two records keep one slug, whatever is written to the others.
    Twins,
    /// So many for all records: what clashes is chance.
    Few(usize),
}

impl Slugs {
    /// Before anybody writes.
    async fn begin(self, records: &Records) {
        fill(records).await;
        if self == Self::Twins {
            let notes = operator(records, "notes");
            for at in ["notes:0", "notes:1"] {
                let twin = Draft::new(json(r#"{"n":0,"state":"old","slug":"twin"}"#));
                assert!(notes.put(&key(at), twin).await.unwrap().is_accepted());
            }
        }
    }

    /// A record to rename, and its new slug.
    fn choose(self, rng: &mut Rng) -> (usize, String) {
        match self {
            Self::Apart => {
                let record = rng.usize(..RECORDS);
                (record, format!("s{record} {}", rng.usize(..4)))
            }
            Self::Twins => (rng.usize(2..RECORDS), format!("s{}", rng.usize(..400))),
            Self::Few(slugs) => (rng.usize(..RECORDS), format!("s{}", rng.usize(..slugs))),
        }
    }

    /// How making the index must end, if that is sure.
    fn end(self) -> Option<State> {
        match self {
            Self::Apart => Some(State::Done),
            Self::Twins => Some(State::Failed),
            Self::Few(_) => None,
        }
    }
}

/// Gives records other slugs until told to stop.
async fn rename(space: Space, mut rng: Rng, slugs: Slugs, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let (record, slug) = slugs.choose(&mut rng);
        let at = key(&format!("notes:{record}"));
        let value = format!(r#"{{"n":0,"state":"old","slug":"{slug}"}}"#);
        match space.put(&at, Draft::new(json(&value))).await {
            Ok(_) | Err(Error::UniqueClash { .. } | Error::Contended { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        tokio::task::yield_now().await;
    }
}

/// That no two records have one slug, and each is found by it.
pub async fn check_slugs(quiet: &Records) {
    let notes = operator(quiet, "notes");
    let mut held = BTreeMap::new();
    for (at, value) in rows(quiet.store(), "notes").await {
        let value: serde_json::Value = serde_json::from_str(&value).unwrap();
        let slug = value["slug"].as_str().unwrap().to_owned();
        if let Some(other) = held.insert(slug.clone(), at.clone()) {
            panic!("{other} and {at} both have {slug}");
        }
        let found = notes.query(&Query::index("slug").equal(slug)).await.unwrap().records;
        assert_eq!(found.iter().map(|it| it.key.to_string()).collect::<Vec<_>>(), [at]);
    }
}

async fn unique_under_writers(world: World, mut rng: Rng) -> State {
    let every = [Slugs::Apart, Slugs::Twins, Slugs::Few(RECORDS + 2), Slugs::Few(400)];
    let slugs = every[rng.usize(..every.len())];
    slugs.begin(&world.records(&schema(OLD, false))).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let notes = operator(&world.process(&schema(OLD, false), &mut rng), "notes");
        writers.push(tokio::spawn(rename(notes, rng.fork(), slugs, stop.clone())));
    }
    let after = world.process(&schema(OLD, true), &mut rng);
    let step = add(&after, "notes", "slug");
    let done = migrator(&after).run(step, |_| ()).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(slugs.end().is_none_or(|end| end == done.state), "{slugs:?}: {done:?}");
    let quiet = world.records(&schema(OLD, true));
    let state = quiet.catalog().await.unwrap().indexes["slug"].state;
    match done.state {
        State::Done => {
            assert_eq!(state, IndexState::Readable);
            check_slugs(&quiet).await;
            assert_nothing_missing(&quiet).await;
        }
        State::Failed => {
            assert_eq!(state, IndexState::Disabled);
            assert!(done.counts.problems > 0);
            let left = rows(quiet.store(), "index:slug").await;
            assert!(left.is_empty(), "{left:?}");
        }
        other => panic!("{other:?}"),
    }
    done.state
}

fn assert_both(states: &[State]) {
    if std::env::var_os("KEYWARD_SEED").is_none() {
        assert!(states.contains(&State::Done) && states.contains(&State::Failed), "{states:?}");
    }
}

#[test]
fn a_unique_index_made_under_writers_is_exact_or_given_up() {
    let path = "migrations::unique::a_unique_index_made_under_writers_is_exact_or_given_up";
    assert_both(&simulate(path, Tier::Atomic, unique_under_writers));
}

#[test]
fn a_unique_index_made_under_writers_is_exact_or_given_up_key_by_key() {
    let path =
        "migrations::unique::a_unique_index_made_under_writers_is_exact_or_given_up_key_by_key";
    assert_both(&simulate(path, Tier::Recoverable, unique_under_writers));
}

on_engines!(
    embedded: Embedded, postgres: Postgres;
    a_unique_index_made_under_threads_is_exact_or_given_up,
);

async fn a_unique_index_made_under_threads_is_exact_or_given_up(place: Place) {
    let slugs = Slugs::Few(1_000);
    slugs.begin(&open(&place, &schema(OLD, false)).await).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for seed in 0..WRITERS {
        let notes = operator(&open(&place, &schema(OLD, false)).await, "notes");
        writers.push(tokio::spawn(rename(notes, Rng::with_seed(seed as u64), slugs, stop.clone())));
    }
    let after = open(&place, &schema(OLD, true)).await;
    let step = add(&after, "notes", "slug");
    let done = migrator_of(&after, &place).run(step, |_| ()).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    match done.state {
        State::Done => {
            check_slugs(&after).await;
            assert_nothing_missing(&after).await;
        }
        _ => assert!(rows(after.store(), "index:slug").await.is_empty()),
    }
}
