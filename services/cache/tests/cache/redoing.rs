//! A result that is computed again although it is good.

use std::sync::Arc;

use jiff::Timestamp;
use keyward_cache::{Fetch, Source};
use keyward_engine::Json;
use keyward_stores::{Place, on_engines, on_every_engine};
use tokio::sync::Semaphore;

use crate::{Runs, cache, json, key, version};

on_every_engine!(
    a_result_is_replaced_and_what_was_made_from_it_goes,
    the_same_result_stays_with_everything_that_was_made_from_it,
    all_who_ask_again_at_once_share_one_computation,
    a_result_of_a_newer_source_is_not_replaced_by_one_of_an_older,
    a_newer_source_that_comes_while_one_waits_to_compute_again_wins,
);
on_engines!(recoverable: Recoverable;
    a_result_is_replaced_and_what_was_made_from_it_goes,
    the_same_result_stays_with_everything_that_was_made_from_it,
    all_who_ask_again_at_once_share_one_computation,
    a_result_of_a_newer_source_is_not_replaced_by_one_of_an_older,
    a_newer_source_that_comes_while_one_waits_to_compute_again_wins,
);

async fn a_result_is_replaced_and_what_was_made_from_it_goes(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let (original, other) = (key("p:policy:1"), key("p:policy:2"));
    let french = original.child("fr");
    let from_original = version("1").depends_on(original.clone());
    let failing = |_| async { Err::<Json, _>("no") };
    // Where nothing is there, it is computed as ever.
    let make = runs.make("1");
    let wanted = version("1");
    let first = cache.redo(&original, &wanted, |held| {
        assert_eq!(held, None);
        make()
    });
    assert_eq!(first.await.unwrap().value, json("1"));
    cache.get_or_compute(&french, &from_original, runs.make("10")).await.unwrap();
    cache.get_or_compute(&other, &version("1"), runs.make("2")).await.unwrap();
    // What fails changes nothing.
    cache.redo(&original, &version("1"), failing).await.unwrap_err();
    assert!(cache.get(&french, &version("1").source).await.unwrap().is_some());
    let make = runs.make("7");
    let again = cache.redo(&original, &wanted, |held| {
        assert_eq!(held, Some(json("1")));
        make()
    });
    assert_eq!(again.await.unwrap().value, json("7"));
    let shown = cache.get(&original, &version("1").source).await.unwrap().unwrap();
    assert_eq!(shown.value, json("7"));
    assert_eq!(cache.show(&french).await.unwrap(), None);
    assert_eq!(cache.show(&other).await.unwrap().unwrap().value, json("2"));
    assert_eq!(runs.count(), 4);
}

async fn the_same_result_stays_with_everything_that_was_made_from_it(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let original = key("p:policy:1");
    let french = original.child("fr");
    let from_original = version("1").depends_on(original.clone());
    cache.get_or_compute(&original, &version("1"), runs.make("1")).await.unwrap();
    cache.get_or_compute(&french, &from_original, runs.make("10")).await.unwrap();
    for _ in 0..2 {
        let make = runs.make("1");
        let same = cache.redo(&original, &version("1"), |_| make()).await.unwrap();
        assert_eq!(same.value, json("1"));
    }
    assert_eq!(runs.count(), 4);
    let kept = cache.get(&french, &version("1").source).await.unwrap();
    assert_eq!(kept.unwrap().value, json("10"));
}

async fn all_who_ask_again_at_once_share_one_computation(place: Place) {
    const CALLERS: usize = 3;
    for (value, what) in [("2", "another value"), ("1", "the same value")] {
        let (runs, gate) = (Runs::default(), Arc::new(Semaphore::new(0)));
        let original = key("p:policy").child(what);
        let first = cache(&place).await;
        let root = first.locks().root(key("p")).unwrap();
        let path = keyward_locks::LockPath::parse("policies").unwrap();
        let fetch = version("1").under(root.clone(), path.clone());
        first.get_or_compute(&original, &fetch, runs.make("1")).await.unwrap();
        let mut asking = Vec::new();
        for _ in 0..CALLERS {
            let (cache, runs, gate) = (cache(&place).await, runs.clone(), gate.clone());
            let fetch = version("1").under(cache.locks().root(key("p")).unwrap(), path.clone());
            let original = original.clone();
            asking.push(tokio::spawn(async move {
                let compute = |_| async move {
                    runs.run();
                    gate.acquire().await.unwrap().forget();
                    Ok::<_, String>(json(value))
                };
                cache.redo(&original, &fetch, compute).await.unwrap().value
            }));
        }
        while root.list().await.unwrap().waiters.len() < CALLERS - 1 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        gate.add_permits(CALLERS);
        for one in asking {
            assert_eq!(one.await.unwrap(), json(value), "{what}");
        }
        assert_eq!(runs.count(), 2, "{what}: one before, and one for all of them");
    }
}

/// A source as it was modified at a second.
fn modified(second: i64) -> Fetch {
    Fetch::of(Source::Modified(Timestamp::from_second(second).unwrap()))
}

async fn a_result_of_a_newer_source_is_not_replaced_by_one_of_an_older(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let (original, french) = (key("p:policy:1"), key("p:policy:1:fr"));
    let from_original = modified(2).depends_on(original.clone());
    cache.get_or_compute(&original, &modified(2), runs.make("2")).await.unwrap();
    cache.get_or_compute(&french, &from_original, runs.make("20")).await.unwrap();
    // Somebody who still sees the source as it was before asks for it again.
    let make = runs.make("1");
    let kept = cache.redo(&original, &modified(1), |_| make()).await.unwrap();
    assert_eq!((kept.value, kept.source), (json("2"), modified(2).source));
    assert_eq!(runs.count(), 2);
    assert!(cache.get(&original, &modified(2).source).await.unwrap().is_some());
    assert!(cache.get(&french, &modified(2).source).await.unwrap().is_some());
    // Whoever sees it as it is gets a new one.
    let make = runs.make("3");
    let redone = cache.redo(&original, &modified(2), |_| make()).await.unwrap();
    assert_eq!((redone.value, runs.count()), (json("3"), 3));
}

async fn a_newer_source_that_comes_while_one_waits_to_compute_again_wins(place: Place) {
    let (first, second, runs) = (cache(&place).await, cache(&place).await, Runs::default());
    let original = key("p:policy:1");
    let path = keyward_locks::LockPath::parse("policies").unwrap();
    let root = first.locks().root(key("p")).unwrap();
    let under = |fetch: Fetch, cache: &keyward_cache::Cache| {
        fetch.under(cache.locks().root(key("p")).unwrap(), path.clone())
    };
    first.get_or_compute(&original, &under(modified(1), &first), runs.make("1")).await.unwrap();
    // Somebody holds the lock, so that the one who computes again has seen the old result and waits.
    let paths = [path.clone()];
    let request = keyward_locks::Request::default();
    let held = root.acquire(&paths, keyward_locks::Mode::Exclusive, &request).await.unwrap();
    let again = {
        let (fetch, original, make) =
            (under(modified(1), &second), original.clone(), runs.make("7"));
        tokio::spawn(async move { second.redo(&original, &fetch, |_| make()).await })
    };
    while root.list().await.unwrap().waiters.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The source moves on meanwhile, and its new result is computed under another lock.
    first.get_or_compute(&original, &modified(2), runs.make("2")).await.unwrap();
    held.release().await.unwrap();
    assert_eq!(again.await.unwrap().unwrap().value, json("2"));
    assert_eq!(runs.count(), 2);
    let shown = first.show(&original).await.unwrap().unwrap();
    assert_eq!((shown.value, shown.source), (json("2"), modified(2).source));
}
