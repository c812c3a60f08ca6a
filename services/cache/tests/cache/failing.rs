//! Failures are told to all, and remembered for a while.

use std::sync::Arc;
use std::time::Duration;

use keyward_cache::{Error, Fetch};
use keyward_engine::{Code, Coded, Json};
use keyward_stores::{Place, on_engines, on_every_engine};
use tokio::sync::Notify;

use crate::{Runs, cache, json, key, version};

on_every_engine!(a_failure_is_told_to_all_who_wait_and_to_those_who_come_next);
// Where the test owns the clock.
on_engines!(owned_clock: Embedded; the_pause_after_failures_doubles);
on_engines!(recoverable: Recoverable;
    a_failure_is_told_to_all_who_wait_and_to_those_who_come_next,
    the_pause_after_failures_doubles);

async fn fails(cache: &keyward_cache::Cache, fetch: &Fetch, runs: &Runs) -> (u32, Duration) {
    let failing = || async {
        runs.run();
        Err::<Json, _>("out of tea")
    };
    match cache.get_or_compute(&key("a"), fetch, failing).await {
        Err(Error::Failed { message, times, retry_after, .. }) => {
            assert_eq!(message, "out of tea");
            (times, retry_after)
        }
        other => panic!("{other:?}"),
    }
}

async fn a_failure_is_told_to_all_who_wait_and_to_those_who_come_next(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let go_on = Arc::new(Notify::new());
    let mut callers = Vec::new();
    for _ in 0..20 {
        let (cache, runs, go_on) = (cache.clone(), runs.clone(), go_on.clone());
        callers.push(tokio::spawn(async move {
            let failing = || async move {
                runs.run();
                go_on.notified().await;
                Err::<Json, _>("out of tea")
            };
            cache.get_or_compute(&key("a"), &version("1"), failing).await
        }));
    }
    while runs.count() == 0 {
        tokio::task::yield_now().await;
    }
    go_on.notify_one();
    for caller in callers {
        assert_eq!(caller.await.unwrap().unwrap_err().code(), Code::ComputationFailed);
    }
    let elsewhere = self::cache(&place).await;
    // On PostgreSQL the pause may have passed by now; elsewhere its clock stands still.
    if place.kind() != keyward_stores::Kind::Postgres {
        assert_eq!(fails(&elsewhere, &version("1"), &runs).await.0, 1);
        assert_eq!(runs.count(), 1);
    }
    // Another source is another matter.
    let other = elsewhere.get_or_compute(&key("a"), &version("2"), runs.make("2")).await;
    assert_eq!(other.unwrap().value, json("2"));
}

async fn the_pause_after_failures_doubles(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let mut pauses = Vec::new();
    for n in 1..=8 {
        let (times, pause) = fails(&cache, &version("1"), &runs).await;
        assert_eq!((times, runs.count()), (n, n as usize));
        pauses.push(pause.as_secs());
        // Held back until then.
        place.clock().advance(pause - Duration::from_millis(1));
        assert_eq!(fails(&cache, &version("1"), &runs).await.0, n);
        assert_eq!(runs.count(), n as usize);
        place.clock().advance(Duration::from_millis(1));
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    // A success forgets them.
    cache.get_or_compute(&key("a"), &version("1"), runs.make("1")).await.unwrap();
    cache.invalidate(&key("a")).await.unwrap();
    assert_eq!(fails(&cache, &version("1"), &runs).await.0, 1);
}
