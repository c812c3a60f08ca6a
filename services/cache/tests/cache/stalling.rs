//! Answers that come late or never, callers that wait, and those that die half way; in simulated time.

use std::sync::Arc;
use std::time::Duration;

use keyward_cache::{Cache, Fetch, Options, Origin, Presence, Purge, PurgeOptions, Purged, Source};
use keyward_engine::{Code, Coded, Engine, Json, Put, Store};
use keyward_locks::{LockPath, Mode, Request};
use keyward_memory::Memory;
use keyward_testkit::{Fault, Faults, FaultyEngine, VirtualClock, When};
use tokio::time::{Instant, sleep};

use crate::{json, key, version};

fn memory() -> Arc<dyn Engine> {
    Arc::new(Memory::with(keyward_memory::Options::default(), VirtualClock::new()))
}

fn cache(store: Store) -> Cache {
    Cache::new(store, VirtualClock::new(), Options::default()).unwrap()
}

fn purge(cache: &Cache) -> Purge {
    Purge::new(cache.locks().clone(), VirtualClock::new(), PurgeOptions::default()).unwrap()
}

async fn give(text: &str) -> Result<Json, String> {
    Ok(json(text))
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_asked_for() {
    let cache = cache(Store::from_arc(memory()));
    let root = cache.locks().root(key("page")).unwrap();
    let paths = [LockPath::root()];
    let _held = root.acquire(&paths, Mode::Exclusive, &Request::default()).await.unwrap();
    let fetch = version("1").under(root, LockPath::root()).wait_max(Duration::from_secs(10));
    let mut callers = Vec::new();
    for _ in 0..3 {
        let (cache, fetch) = (cache.clone(), fetch.clone());
        callers.push(tokio::spawn(async move {
            let begun = Instant::now();
            let error = cache.get_or_compute(&key("k"), &fetch, || give("1")).await.unwrap_err();
            assert_eq!(error.code(), Code::Computing);
            begun.elapsed()
        }));
        sleep(Duration::from_millis(10)).await;
    }
    for caller in callers {
        let waited = caller.await.unwrap();
        assert!(waited < Duration::from_secs(11), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_may_wait_for_ever() {
    let cache = cache(Store::from_arc(memory()));
    let fetch = version("1").wait_max(Duration::MAX);
    cache.get_or_compute(&key("k"), &fetch, || give("1")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_published_while_its_parent_is_dropped_goes_with_it() {
    let engine = memory();
    let direct = cache(Store::from_arc(engine.clone()));
    let (parent, child) = (key("parent"), key("child"));
    direct.get_or_compute(&parent, &version("1"), || give("1")).await.unwrap();
    // The commit that drops the parent takes a second to arrive.
    let late = Fault::Delay(When::Before, Duration::from_secs(1));
    let slow = FaultyEngine::new(engine.clone(), Faults::script([(3, late)]));
    let dropper = cache(Store::new(slow.clone()));
    let dropping = async {
        dropper.invalidate(&parent).await.unwrap();
    };
    let computing = async {
        let fetch = Fetch::of(Source::Constant).depends_on(parent.clone());
        let compute = || async {
            sleep(Duration::from_millis(500)).await;
            give("2").await
        };
        let made = direct.get_or_compute(&child, &fetch, compute).await.unwrap();
        assert!(made.version.is_some());
    };
    tokio::join!(dropping, computing);
    assert!(slow.trace().contains(&(keyward_testkit::Call::Commit, late)), "{:?}", slow.trace());
    assert_eq!(direct.show(&parent).await.unwrap(), None);
    assert_eq!(direct.show(&child).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn what_was_made_from_something_else_is_never_given_out() {
    let store = Store::from_arc(memory());
    let cache = cache(store.clone());
    let (parent, child) = (key("parent"), key("child"));
    cache.get_or_compute(&parent, &version("1"), || give("1")).await.unwrap();
    let fetch = Fetch::of(Source::Constant).depends_on(parent.clone());
    cache.get_or_compute(&child, &fetch, || give("2")).await.unwrap();
    // Whoever dropped the parent died before it came to the child.
    store.delete(parent.clone()).await.unwrap();
    assert_eq!(cache.get(&child, &Source::Constant).await.unwrap(), None);
    let stale = cache.get_or_refresh(&child, &fetch, || give("3")).await.unwrap();
    assert_eq!((stale.origin, stale.value), (Origin::Stale, json("2")));
    let anew = cache.get_or_compute(&child, &fetch, || give("3")).await.unwrap();
    assert_eq!(anew.value, json("3"));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_dies_leaves_no_children_of_the_old() {
    for call in 0..40 {
        let engine = memory();
        let direct = cache(Store::from_arc(engine.clone()));
        let (parent, child) = (key("parent"), key("parent:child"));
        direct.get_or_compute(&parent, &version("1"), || give("1")).await.unwrap();
        direct.get_or_compute(&child, &Fetch::default(), || give("1")).await.unwrap();
        let faulty = FaultyEngine::new(engine.clone(), Faults::crash_at(call, When::Before));
        let dying = cache(Store::new(faulty));
        let _ = dying.get_or_refresh(&parent, &version("2"), || give("2")).await;
        sleep(Duration::from_secs(600)).await;
        let now = direct.get_or_compute(&parent, &version("2"), || give("2")).await.unwrap();
        assert_eq!(now.value, json("2"));
        assert_eq!(direct.show(&child).await.unwrap(), None, "after a crash at call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn asking_for_what_is_stale_does_not_pile_up_tasks() {
    let cache = cache(Store::from_arc(memory()));
    cache.get_or_compute(&key("k"), &version("1"), || give("1")).await.unwrap();
    for _ in 0..1_000 {
        let slow = || async {
            sleep(Duration::from_secs(60)).await;
            give("2").await
        };
        let got = cache.get_or_refresh(&key("k"), &version("2"), slow).await.unwrap();
        assert_eq!(got.origin, Origin::Stale);
    }
    sleep(Duration::from_secs(1)).await;
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert!(tasks < 50, "{tasks} tasks for one computation");
}

#[tokio::test(start_paused = true)]
async fn one_root_that_cannot_be_purged_does_not_keep_the_others() {
    let store = Store::from_arc(memory());
    for text in ["a", "a:x", "b:x"] {
        store.put(key(text), Put::new(json("1"))).await.unwrap();
    }
    let purge = purge(&cache(store.clone()));
    let swept = purge.sweep(|_| async { Presence::Gone }).await.unwrap().unwrap();
    assert_eq!((swept.roots, swept.entries), (2, 1));
    let (root, purged) = &swept.told[0];
    assert!(*root == key("a") && matches!(purged, Purged::Failed(_)), "{swept:?}");
    assert_eq!(store.get(&key("b:x")).await.unwrap(), None);
    assert!(store.get(&key("a:x")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_is_lost_still_sweeps() {
    for when in [When::Before, When::After] {
        let engine = memory();
        let store = Store::from_arc(engine.clone());
        store.put(key("b:x"), Put::new(json("1"))).await.unwrap();
        let faults = Faults::script([(0, Fault::Unanswered(when))]);
        let purge = purge(&cache(Store::new(FaultyEngine::new(engine, faults))));
        let swept = purge.sweep(|_| async { Presence::Gone }).await.unwrap();
        assert_eq!(swept.is_some(), when == When::After);
        // One that was not done does not stand in the way.
        if when == When::Before {
            assert!(purge.sweep(|_| async { Presence::Gone }).await.unwrap().is_some());
        }
        assert_eq!(store.get(&key("b:x")).await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_key_can_be_cached_and_dropped_with_its_dependants() {
    let cache = cache(Store::from_arc(memory()));
    let long = key(&format!("page:{}", "x".repeat(1_100)));
    let other = key(&format!("page:{}", "x".repeat(1_101)));
    cache.get_or_compute(&long, &version("1"), || give("1")).await.unwrap();
    let fetch = version("1").depends_on(long.clone());
    cache.get_or_compute(&other, &fetch, || give("2")).await.unwrap();
    assert_eq!(cache.invalidate(&long).await.unwrap().values, 2);
    assert_eq!(cache.show(&other).await.unwrap(), None);
}
