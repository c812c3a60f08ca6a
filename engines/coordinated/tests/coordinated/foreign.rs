//! Other programs write into the value store.

use std::sync::Arc;

use keyward_coordinated::Coordinated;
use keyward_engine::{Commit, Expect, Scan, Store};
use keyward_key::KeyRange;

use crate::setup::{LAG, Setup, key, put, value};

/// A store with one settled key.
async fn settled(setup: &Setup) -> (Arc<Coordinated>, Store) {
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    store.put(key("slot"), put("1")).await.unwrap();
    setup.wait();
    assert_eq!(engine.settle().await.unwrap().settled, 1);
    (engine, store)
}

#[tokio::test]
async fn a_foreign_change_is_taken_over_with_a_new_version() {
    let setup = Setup::new();
    let (engine, store) = settled(&setup).await;
    let slot = key("slot");
    let before = store.get(&slot).await.unwrap().unwrap();
    setup.write_there(&slot, "7").await;
    setup.clock.advance(LAG);
    let after = store.get(&slot).await.unwrap().unwrap();
    assert_eq!(after.value.as_str(), "7");
    assert_ne!(after.version, before.version);
    assert_eq!(store.get(&slot).await.unwrap().unwrap(), after, "once");

    let late = Commit::new()
        .check(slot.clone(), Expect::Version(before.version))
        .put(slot.clone(), put("8"));
    assert!(!store.commit(late).await.unwrap().is_applied());
    let swap = Commit::new()
        .check(slot.clone(), Expect::Version(after.version))
        .put(slot.clone(), put("8"));
    assert!(store.commit(swap).await.unwrap().is_applied());
    setup.wait();
    engine.settle().await.unwrap();
    assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("8"));
}

#[tokio::test]
async fn a_foreign_change_shows_in_scans_too() {
    let setup = Setup::new();
    let (_, store) = settled(&setup).await;
    setup.write_there(&key("slot"), "7").await;
    setup.clock.advance(LAG);
    let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
    let values: Vec<_> =
        page.rows.iter().map(|row| row.entry.as_ref().unwrap().value.as_str()).collect();
    assert_eq!(values, ["7"]);
}

#[tokio::test]
async fn a_foreign_delete_is_taken_over() {
    let setup = Setup::new();
    let (engine, store) = settled(&setup).await;
    let slot = key("slot");
    setup.delete_there(&slot).await;
    setup.clock.advance(LAG);
    assert_eq!(value(&store, &slot).await, None);
    assert_eq!(store.scan(&Scan::new(KeyRange::all())).await.unwrap().rows, []);
    let create = Commit::new().check(slot.clone(), Expect::Absent).put(slot.clone(), put("2"));
    assert!(store.commit(create).await.unwrap().is_applied());
    setup.wait();
    engine.settle().await.unwrap();
    assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_change_that_was_taken_over_is_not_taken_back_by_a_late_reader() {
    let setup = Setup::new();
    let (_, store) = settled(&setup).await;
    let slot = key("slot");
    setup.write_there(&slot, "7").await;
    setup.clock.advance(LAG);
    // Somewhere else in the world, the value store still shows the value from before.
    let elsewhere = Setup::new();
    elsewhere.write_there(&slot, "1").await;
    elsewhere.clock.advance(LAG);
    let late = setup.open_with(elsewhere.values, setup.coordinator.revive()).await.unwrap();
    let late = Store::new(late);
    let taken_over = store.get(&slot).await.unwrap().unwrap();
    assert_eq!(taken_over.value.as_str(), "7");
    for store in [&late, &store] {
        assert_eq!(store.get(&slot).await.unwrap().as_ref(), Some(&taken_over));
    }
}

#[tokio::test]
async fn a_second_foreign_change_is_found_when_the_first_is_settled() {
    let setup = Setup::new();
    let (engine, store) = settled(&setup).await;
    let slot = key("slot");
    setup.write_there(&slot, "7").await;
    setup.clock.advance(LAG);
    assert_eq!(value(&store, &slot).await.as_deref(), Some("7"));
    setup.write_there(&slot, "9").await;
    setup.wait();
    engine.settle().await.unwrap();
    assert_eq!(value(&store, &slot).await.as_deref(), Some("9"));
    setup.wait();
    assert_eq!(engine.settle().await.unwrap().waiting, 0);
    assert_eq!(value(&store, &slot).await.as_deref(), Some("9"));
}

#[tokio::test]
async fn a_foreign_write_to_a_key_that_is_still_held_loses() {
    let setup = Setup::new();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let slot = key("slot");
    store.put(slot.clone(), put("1")).await.unwrap();
    setup.write_there(&slot, "7").await;
    setup.wait();
    assert_eq!(value(&store, &slot).await.as_deref(), Some("1"), "it was acknowledged");
    engine.settle().await.unwrap();
    assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("1"));
}
