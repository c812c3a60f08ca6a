//! Several processes push the same keys, and the network delays what they send.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::Store;
use keyward_testkit::{Fault, Faults, When};

use crate::setup::{GRACE, LAG, Setup, key, put, value};

#[tokio::test]
async fn processes_that_race_on_a_key_leave_the_last_committed_value() {
    let setup = Setup::new();
    let stores: Vec<Store> =
        [setup.open().await, setup.open().await, setup.open().await].map(Store::new).into();
    let slot = key("slot");
    for round in 0..50 {
        let puts = stores.iter().enumerate().map(|(n, store)| {
            let text = (round * 10 + n).to_string();
            let slot = slot.clone();
            async move {
                // Different pauses, so that pushes overtake each other.
                for _ in 0..(n * 7 + round) % 5 {
                    tokio::task::yield_now().await;
                }
                store.put(slot, put(&text)).await.unwrap();
            }
        });
        futures_util::future::join_all(puts).await;
        let committed = value(&stores[0], &slot).await;
        assert_eq!(setup.shown_value(&slot).await, committed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_that_overtakes_another_is_followed_by_the_newer_value() {
    // The first push waits in the network while another process commits and pushes.
    let delay = Fault::Delay(When::Before, Duration::from_secs(3));
    let setup = Setup::with(Faults::script([(1, delay)]), Faults::none());
    let (slow, quick) = (Store::new(setup.open().await), Store::new(setup.open().await));
    let slot = key("slot");
    let (first, second) = tokio::join!(slow.put(slot.clone(), put("1")), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        quick.put(slot.clone(), put("2")).await
    });
    assert!(first.is_ok() && second.is_ok());
    // The first push lands after both commits were acknowledged.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_later_push_of_the_same_process_is_not_undone_by_an_earlier_one() {
    for when in [When::Before, When::After] {
        let delay = Fault::Delay(when, Duration::from_secs(3));
        let setup = Setup::with(Faults::script([(1, delay)]), Faults::none());
        let engine = Arc::new(setup.open().await);
        let store = Store::from_arc(engine.clone());
        let slot = key("slot");
        store.put(slot.clone(), put("1")).await.unwrap();
        store.put(slot.clone(), put("2")).await.unwrap();
        assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("2"), "the first is under way");
        // However short the grace is, nothing is settled while an older value may land.
        setup.wait();
        engine.settle().await.unwrap();
        assert_eq!(setup.held().await, 1);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("2"), "{when:?}");
        setup.wait();
        assert_eq!(engine.settle().await.unwrap().waiting, 0);
        assert_eq!(value(&store, &slot).await.as_deref(), Some("2"));
    }
}

#[tokio::test]
async fn an_old_value_of_a_dead_process_that_lands_late_is_put_right() {
    let setup = Setup::with(Faults::script([(1, Fault::Late(Duration::MAX))]), Faults::none());
    let slot = key("slot");
    let dead = Store::new(setup.open().await);
    dead.put(slot.clone(), put("1")).await.unwrap();
    drop(dead);
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    store.put(slot.clone(), put("2")).await.unwrap();
    setup.values.land().await;
    assert_eq!(
        setup.shown_value(&slot).await.as_deref(),
        Some("1"),
        "the old value landed on the new one"
    );
    assert_eq!(
        value(&store, &slot).await.as_deref(),
        Some("2"),
        "which nobody sees through the store"
    );
    setup.clock.advance(GRACE);
    engine.settle().await.unwrap();
    assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("2"));
    setup.clock.advance(LAG);
    assert_eq!(engine.settle().await.unwrap().waiting, 0);
    assert_eq!(value(&store, &slot).await.as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stood_still_for_long_does_not_send_what_it_had_planned() {
    let calls = {
        let setup = Setup::new();
        setup.open().await;
        setup.coordinator.calls()
    };
    // It has committed, and stands still before it pushes.
    let pause = Fault::Delay(When::After, Duration::from_secs(3_600));
    let setup = Setup::with(Faults::none(), Faults::script([(calls, pause)]));
    let stopped = Store::new(setup.open().await);
    let slot = key("slot");
    let others = async {
        tokio::task::yield_now().await;
        let engine = Arc::new(setup.open().await);
        let store = Store::from_arc(engine.clone());
        store.put(slot.clone(), put("2")).await.unwrap();
        setup.wait();
        assert_eq!(engine.settle().await.unwrap().waiting, 0);
        store
    };
    let (first, store) = tokio::join!(stopped.put(slot.clone(), put("1")), others);
    assert!(first.is_ok(), "it was committed before the other");
    assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("2"));
    assert_eq!(value(&store, &slot).await.as_deref(), Some("2"));
}
