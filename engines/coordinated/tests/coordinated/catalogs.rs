//! Lock catalogs lie under keys of the callers, and stay in the coordinator all the same.

use std::sync::Arc;

use keyward_engine::{Commit, Expect, Scan, Store};
use keyward_key::KeyRange;
use keyward_testkit::Call;

use crate::setup::{GRACE, LAG, Setup, key, put, value};

/// A catalog as the lock service writes it, with one holder.
pub fn catalog(beat: u64) -> String {
    format!(
        r#"{{"keyward":"locks","format":1,"next_token":2,"mark":1001,"holders":[{{"token":1,"id":"a1","owner":"a1","paths":["policy:leave:fr"],"mode":"exclusive","ttl_ms":30000,"beat":{beat},"since":"2026-01-01T00:00:00.000000Z","who":{{"name":"7"}}}}],"waiters":[]}}"#
    )
}

fn writes_there(setup: &Setup) -> usize {
    setup.values.trace().iter().filter(|(call, _)| *call == Call::Commit).count()
}

#[tokio::test]
async fn a_lock_catalog_never_reaches_the_value_store() {
    let setup = Setup::new();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let page = key("page:7");
    let create =
        Commit::new().check(page.clone(), Expect::Absent).put(page.clone(), put(&catalog(0)));
    let mut version = store.commit(create).await.unwrap().versions().unwrap()[0].clone().unwrap();
    for beat in 1..20 {
        let renewed = Commit::new()
            .check(page.clone(), Expect::Version(version))
            .put(page.clone(), put(&catalog(beat)));
        let outcome = store.commit(renewed).await.unwrap();
        version = outcome.versions().unwrap()[0].clone().unwrap();
        setup.clock.advance(GRACE / 4);
        engine.settle().await.unwrap();
    }
    store.put(page.clone(), put(&catalog(20))).await.unwrap();
    assert_eq!(value(&store, &page).await, Some(catalog(20)));
    let rows = store.scan(&Scan::new(KeyRange::all())).await.unwrap().rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].entry.as_ref().unwrap().value.as_str(), catalog(20));
    assert_eq!(store.stats().await.unwrap().entries, 1);
    assert_eq!(setup.held().await, 0);

    store.delete(page.clone()).await.unwrap();
    assert_eq!(value(&store, &page).await, None);
    assert_eq!(engine.settle().await.unwrap().waiting, 0);
    assert_eq!((writes_there(&setup), setup.shown().await), (0, vec![]));
}

#[tokio::test]
async fn a_catalog_that_replaces_an_entry_takes_it_out_of_the_value_store() {
    // As earlier versions left it there, too: their catalogs were entries like any other.
    for before in ["1".to_owned(), catalog(0)] {
        for adopted in [false, true] {
            let setup = Setup::new();
            let page = key("page:7");
            if adopted {
                setup.write_there(&page, &before).await;
                setup.clock.advance(LAG);
            }
            let engine = Arc::new(setup.open().await);
            let store = Store::from_arc(engine.clone());
            if !adopted {
                store.put(page.clone(), put(&before)).await.unwrap();
            }
            let version = store.get(&page).await.unwrap().unwrap().version;
            let taken = Commit::new()
                .check(page.clone(), Expect::Version(version))
                .put(page.clone(), put(&catalog(1)));
            assert!(store.commit(taken).await.unwrap().is_applied());
            store.put(page.clone(), put(&catalog(2))).await.unwrap();
            assert_eq!(setup.shown().await, []);
            for _ in 0..2 {
                setup.wait();
                engine.settle().await.unwrap();
            }
            assert_eq!(setup.held().await, 0);
            assert_eq!(value(&store, &page).await, Some(catalog(2)));

            // And back: an entry that replaces a catalog is there again.
            store.put(page.clone(), put("2")).await.unwrap();
            assert_eq!(setup.shown_value(&page).await.as_deref(), Some("2"));
        }
    }
}

#[tokio::test]
async fn what_another_program_writes_under_a_catalogs_key_stays_there_and_comes_up_after_it() {
    let setup = Setup::new();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let page = key("page:7");
    store.put(page.clone(), put(&catalog(1))).await.unwrap();
    setup.write_there(&page, "7").await;
    setup.wait();
    engine.settle().await.unwrap();
    engine.adopt_new().await.unwrap();
    store.put(page.clone(), put(&catalog(2))).await.unwrap();
    assert_eq!(value(&store, &page).await, Some(catalog(2)));
    store.delete(page.clone()).await.unwrap();
    assert_eq!(setup.shown_value(&page).await.as_deref(), Some("7"), "it was not deleted");
    assert_eq!(engine.adopt_new().await.unwrap().added, 1);
    assert_eq!(value(&store, &page).await.as_deref(), Some("7"));
}

#[tokio::test]
async fn a_foreign_value_that_comes_after_a_foreign_delete_does_not_replace_a_catalog() {
    let setup = Setup::new();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let page = key("page:7");
    store.put(page.clone(), put("1")).await.unwrap();
    setup.wait();
    engine.settle().await.unwrap();
    setup.delete_there(&page).await;
    setup.clock.advance(LAG);
    assert_eq!(value(&store, &page).await, None);
    store.put(page.clone(), put(&catalog(1))).await.unwrap();
    setup.write_there(&page, "7").await;
    for _ in 0..2 {
        setup.wait();
        engine.settle().await.unwrap();
    }
    assert_eq!(value(&store, &page).await, Some(catalog(1)));
    assert_eq!(setup.shown_value(&page).await.as_deref(), Some("7"));
    assert_eq!(setup.held().await, 0);
}
