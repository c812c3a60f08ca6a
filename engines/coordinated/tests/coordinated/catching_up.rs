//! Values that a process could not push reach the value store by others, however many there are.

use std::sync::Arc;
use std::time::Duration;

use keyward_coordinated::Coordinated;
use keyward_engine::Store;
use keyward_key::Key;

use crate::setup::{GRACE, Setup, key, put};

/// How many values the value store takes before it fails, and how many follow.
const SOUND: usize = 400;
const LEFT: usize = 250;

fn policy(n: usize) -> Key {
    key(&format!("policy:{n:04}"))
}

/// An import of a process that ends: the value store is out of reach for the last part of it.
async fn import(setup: &Setup) {
    let values = setup.values.revive();
    let engine = setup.open_with(values.clone(), setup.coordinator.revive()).await.unwrap();
    let store = Store::new(engine);
    for n in 0..SOUND + LEFT {
        if n == SOUND {
            values.kill();
        }
        store.put(policy(n), put("1")).await.unwrap();
    }
    drop(store);
    assert_eq!(setup.shown().await.len(), SOUND);
}

#[tokio::test]
async fn the_next_opening_pushes_everything_that_an_earlier_process_could_not() {
    let setup = Setup::new();
    import(&setup).await;
    drop(setup.open().await);
    assert_eq!(setup.shown().await.len(), SOUND + LEFT);
}

#[tokio::test(start_paused = true)]
async fn an_opening_does_not_wait_for_a_value_store_that_hangs() {
    let setup = Setup::new();
    import(&setup).await;
    let values = setup.values.revive();
    values.pause();
    // Neither for the second listing nor for what is left to push.
    let began = tokio::time::Instant::now();
    let opened = setup.open_with(values.clone(), setup.coordinator.revive()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    // The process goes on to push what is left.
    values.resume();
    setup.clock.advance(Duration::from_secs(10));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(setup.shown().await.len(), SOUND + LEFT);
    drop(opened);
}

#[tokio::test(start_paused = true)]
async fn an_open_store_pushes_what_other_processes_left_page_by_page() {
    let setup = Setup::new();
    let engine: Coordinated = setup.open().await;
    import(&setup).await;
    // It looks once in a grace, and then page after page; nobody commits anything.
    setup.clock.advance(GRACE);
    for _ in 0..10 {
        setup.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(setup.shown().await.len(), SOUND + LEFT);
    drop(engine);
}

#[tokio::test(start_paused = true)]
async fn an_open_store_settles_everything_without_a_commit_and_stops_when_it_is_closed() {
    let setup = Setup::new();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    for n in 0..SOUND {
        store.put(policy(n), put("1")).await.unwrap();
    }
    assert_eq!(setup.held().await, SOUND);
    setup.wait();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(setup.held().await, 0);

    store.put(policy(0), put("2")).await.unwrap();
    drop((engine, store));
    setup.wait();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(setup.held().await, 1, "nobody settles it");
}
