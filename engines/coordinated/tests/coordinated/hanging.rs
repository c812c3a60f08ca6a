//! A value store that neither takes nor answers anything.

use std::sync::Arc;
use std::time::Duration;

use keyward_coordinated::{Coordinated, finish_pushes};
use keyward_engine::{Commit, Expect, Store};
use keyward_testkit::FaultyEngine;
use tokio::time::Instant;

use crate::catalogs::catalog;
use crate::setup::{LAG, Setup, key, put, value};

/// Longer than a commit waits for the value store.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A store whose value store hangs from now on, until its handle is resumed.
async fn hanging(setup: &Setup) -> (Arc<Coordinated>, Store, FaultyEngine) {
    let values = setup.values.revive();
    let engine = setup.open_with(values.clone(), setup.coordinator.revive()).await.unwrap();
    let engine = Arc::new(engine);
    values.pause();
    (engine.clone(), Store::from_arc(engine), values)
}

#[tokio::test(start_paused = true)]
async fn commits_wait_a_moment_for_a_value_store_that_hangs_and_values_follow() {
    let setup = Setup::new();
    let (_engine, store, values) = hanging(&setup).await;
    // More than may be under way at once.
    for n in 0..300 {
        let began = Instant::now();
        store.put(key(&format!("slot:{n}")), put("1")).await.unwrap();
        assert!(began.elapsed() < WAIT_MAX, "commit {n} took {:?}", began.elapsed());
    }
    assert_eq!(value(&store, &key("slot:0")).await.as_deref(), Some("1"));
    assert_eq!(setup.shown().await, []);

    values.resume();
    setup.clock.advance(Duration::from_secs(60));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(setup.shown().await.len(), 300);
}

#[tokio::test(start_paused = true)]
async fn locks_and_queues_do_not_wait_for_a_value_store_that_hangs() {
    let setup = Setup::new();
    let (_engine, store, values) = hanging(&setup).await;
    // What waits to be pushed is not their business.
    for n in 0..8 {
        store.put(key(&format!("slot:{n}")), put("1")).await.unwrap();
    }
    setup.clock.advance(Duration::from_secs(60));
    let began = Instant::now();
    let page = key("page:7");
    let mut version = store.put(page.clone(), put(&catalog(0))).await.unwrap();
    for beat in 1..50 {
        let renewed = Commit::new()
            .check(page.clone(), Expect::Version(version))
            .put(page.clone(), put(&catalog(beat)))
            .put(key("lock:page%3A7:00000000000000000001:lease"), put("1"));
        let outcome = store.commit(renewed).await.unwrap();
        version = outcome.versions().unwrap()[0].clone().unwrap();
        let claimed = Commit::new()
            .delete(key(&format!("queue:mail:{}", beat - 1)))
            .put(key(&format!("queue:mail:{beat}")), put("1"));
        assert!(store.commit(claimed).await.unwrap().is_applied());
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    values.resume();
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_can_wait_for_its_pushes() {
    let setup = Setup::new();
    let (engine, store, values) = hanging(&setup).await;
    store.put(key("slot"), put("1")).await.unwrap();
    drop((engine, store));
    let began = Instant::now();
    let resumed = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        values.resume();
    };
    tokio::join!(finish_pushes(Duration::from_secs(20)), resumed);
    // Not less; and more where other tests of this process push at the same time.
    assert!(began.elapsed() >= Duration::from_secs(3));
    setup.clock.advance(LAG);
    assert_eq!(setup.shown_value(&key("slot")).await.as_deref(), Some("1"));
}
