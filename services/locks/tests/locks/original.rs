//! The faults of the program that these locks replace, one test each: every one of them fails on
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use keyward_engine::{Store, Tier};
use keyward_locks::{Mode, Request};
use keyward_memory::Memory;
use keyward_stores::{Place, on_engines, on_every_engine};
use keyward_testkit::VirtualClock;

use crate::fixture::{locks, locks_on, page, path, take, taken_by_the_dead, try_take};

on_every_engine!(
    two_simultaneous_acquirers_hold_one_after_the_other,
    a_waiter_sees_that_the_holder_is_dead,
    tokens_rise_for_ever_also_after_the_last_release,
    all_policies_and_one_of_them_exclude_each_other,
    a_release_of_what_somebody_else_holds_changes_nothing,
);
on_engines!(recoverable: Recoverable;
    two_simultaneous_acquirers_hold_one_after_the_other,
    a_waiter_sees_that_the_holder_is_dead,
    tokens_rise_for_ever_also_after_the_last_release,
    all_policies_and_one_of_them_exclude_each_other,
    a_release_of_what_somebody_else_holds_changes_nothing,
);

async fn two_simultaneous_acquirers_hold_one_after_the_other(place: Place) {
    let inside = Arc::new(AtomicBool::new(false));
    let last = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let root = page(&locks(&place).await);
        let (inside, last) = (inside.clone(), last.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..2 {
                let guard = take(&root, "policies:1").await;
                assert!(!inside.swap(true, Ordering::SeqCst), "two holders");
                let before = last.swap(guard.token(), Ordering::SeqCst);
                assert!(before < guard.token(), "{before} then {}", guard.token());
                tokio::task::yield_now().await;
                inside.store(false, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_acquirer_is_not_born_expired() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let options = keyward_memory::Options::tier(tier);
        let store = Store::new(Memory::with(options, VirtualClock::new()));
        let (ours, theirs) = (page(&locks_on(store.clone())), page(&locks_on(store)));
        let held = take(&ours, "policies:1").await;
        let lease = Duration::from_secs(30);
        let request = Request::default().ttl(lease).wait_forever();
        let waited = tokio::spawn(async move {
            let asked = [path("policies:1")];
            theirs.acquire(&asked, Mode::Exclusive, &request).await.unwrap()
        });
        // The waiter's own lease would have ended by then, were it counted from when it came.
        tokio::time::sleep(lease * 4).await;
        assert!(!waited.is_finished(), "{tier}");
        held.release().await.unwrap();
        let guard = waited.await.unwrap();
        assert!(guard.is_held(), "{tier}");
        assert!(try_take(&ours, "policies:1", Mode::Exclusive).await.is_none(), "{tier}");
        // And it lives on.
        tokio::time::sleep(lease * 4).await;
        assert!(guard.is_held(), "{tier}");
        assert!(try_take(&ours, "policies:1", Mode::Exclusive).await.is_none(), "{tier}");
    }
}

async fn a_waiter_sees_that_the_holder_is_dead(place: Place) {
    let dead = taken_by_the_dead(&place, "policies");
    let locks = locks(&place).await;
    let root = page(&locks);
    // However long this took, nobody but this test could have taken it out.
    assert_eq!(root.list().await.unwrap().holders[0].token, dead);
    let in_time = Duration::from_secs(60);
    let guard = tokio::time::timeout(in_time, take(&root, "policies:1")).await.unwrap();
    assert!(guard.token() > dead);
    assert_eq!(locks.metrics().takeovers.get(), 1);
}

async fn tokens_rise_for_ever_also_after_the_last_release(place: Place) {
    let mut last = 0;
    for _ in 0..3 {
        // Each time another process, which remembers nothing.
        let root = page(&locks(&place).await);
        let guard = take(&root, "policies").await;
        assert!(guard.token() > last, "{} after {last}", guard.token());
        last = guard.token();
        guard.release().await.unwrap();
        assert_eq!(root.list().await.unwrap().holders, []);
    }
}

async fn all_policies_and_one_of_them_exclude_each_other(place: Place) {
    let root = page(&locks(&place).await);
    let all = take(&root, "policies").await;
    assert!(try_take(&root, "policies:123", Mode::Exclusive).await.is_none());
    all.release().await.unwrap();
    let one = take(&root, "policies:123").await;
    assert!(try_take(&root, "policies", Mode::Exclusive).await.is_none());
    one.release().await.unwrap();
}

async fn a_release_of_what_somebody_else_holds_changes_nothing(place: Place) {
    let (ours, theirs) = (page(&locks(&place).await), page(&locks(&place).await));
    let old = take(&ours, "policies").await;
    let token = keyward_locks::Target::Token(old.token());
    theirs.break_lock(&token, "bob", "").await.unwrap();
    let new = take(&theirs, "policies").await;
    old.release().await.unwrap();
    assert!(try_take(&ours, "policies", Mode::Exclusive).await.is_none());
    assert_eq!(ours.list().await.unwrap().holders[0].token, new.token());
}
