//! Records whose new keys are made of their values, with writers that change these.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use keyward_engine::Tier;
use keyward_migrate::Edit;
use keyward_records::{Error, Space, Written};

use crate::fixture::{assert_done, json, key, operator, rows};
use crate::racing::{OLD, RECORDS, WRITERS, assert_nothing_missing, fill, schema};
use crate::rekeying::rekey;
use crate::simulated::{World, migrator, simulate};

/// Where records go by what they say.
const BY_STATE: &str = "papers:{state}:{id}";

/// Gives records another state until told to stop, as long as they have their old key.
async fn relabel(old: Space, mut rng: Rng, stop: Arc<AtomicBool>) -> u64 {
    let mut changed = 0;
    while !stop.load(Ordering::Relaxed) {
        let at = key(&format!("notes:{}", rng.usize(..RECORDS)));
        let state = json(&format!("\"s{}\"", rng.u8(..4)));
        let edit = Edit::Set("state".parse().unwrap(), state);
        let update = old.update(&at, |current| {
            let Some(current) = current else { return Ok(None) };
            edit.apply(&current.value).map(Some).map_err(Error::BadChange)
        });
        changed += u64::from(matches!(update.await.unwrap(), Written::Applied { .. }));
        tokio::task::yield_now().await;
    }
    changed
}

async fn moved_while_their_keys_change(world: World, mut rng: Rng) -> u64 {
    fill(&world.records(&schema(OLD, false))).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let old = operator(&world.process(&schema(OLD, false), &mut rng), "notes");
        writers.push(tokio::spawn(relabel(old, rng.fork(), stop.clone())));
    }
    let after = world.process(&schema(BY_STATE, false), &mut rng);
    let definition = rekey(OLD, BY_STATE, &[("state", "state")]);
    let done = migrator(&after).run(definition, |_| ()).await.unwrap();
    assert_done(&done);
    stop.store(true, Ordering::Relaxed);
    let mut changed = 0;
    for writer in writers {
        changed += writer.await.unwrap();
    }
    let quiet = world.records(&schema(BY_STATE, false));
    assert!(rows(quiet.store(), "notes").await.is_empty());
    let moved = rows(quiet.store(), "papers").await;
    let ids: BTreeSet<&str> = moved.iter().filter_map(|(at, _)| at.rsplit(':').next()).collect();
    assert_eq!((moved.len(), ids.len()), (RECORDS, RECORDS), "{moved:#?}");
    for (at, value) in &moved {
        let value: serde_json::Value = serde_json::from_str(value).unwrap();
        let state = at.split(':').nth(1).unwrap();
        assert_eq!(state, value["state"], "{at} has the key of an older value");
    }
    assert_eq!((done.counts.records, done.counts.changed), (RECORDS as u64, RECORDS as u64));
    assert_nothing_missing(&quiet).await;
    changed
}

#[test]
fn a_record_that_is_changed_while_it_moves_gets_the_key_of_its_new_value() {
    let path = "migrations::changing_keys::a_record_that_is_changed_while_it_moves_gets_the_key_of_its_new_value";
    let changed = simulate(path, Tier::Atomic, moved_while_their_keys_change);
    assert!(changed.iter().any(|changed| *changed > 0));
}

#[test]
fn a_record_that_is_changed_while_it_moves_gets_the_key_of_its_new_value_key_by_key() {
    let path = "migrations::changing_keys::a_record_that_is_changed_while_it_moves_gets_the_key_of_its_new_value_key_by_key";
    let changed = simulate(path, Tier::Recoverable, moved_while_their_keys_change);
    assert!(changed.iter().any(|changed| *changed > 0));
}
