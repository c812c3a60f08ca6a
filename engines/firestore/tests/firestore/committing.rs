//! Commits: their conditions, versions and outcomes.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use keyward_engine::{Commit, ErrorKind, Expect, Expiry, Outcome, Store};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};
use serde_json::json;

use crate::emulator::{Fresh, key, put, with_fresh};

const TTL: Duration = Duration::from_secs(60);

#[test]
fn expiry_is_part_of_the_condition_of_a_commit() {
    with_fresh(async |fresh| {
        let clock = TestClock::new();
        let store = fresh.store(clock.clone()).await;
        // One commit, so one version: an entry that ends, and one that stays.
        let (ends, stays, longer) = (key("ends"), key("stays"), key("longer"));
        let both = Commit::new()
            .put(ends.clone(), put("1").expiring(Expiry::After(TTL)))
            .put(longer.clone(), put("1").expiring(Expiry::After(TTL * 3)))
            .put(stays.clone(), put("1"));
        let outcome = store.commit(both).await.unwrap();
        let version = outcome.versions().unwrap()[0].clone().unwrap();
        assert!(outcome.versions().unwrap().iter().all(|it| it.as_ref() == Some(&version)));
        for key in [&ends, &stays, &longer] {
            assert_eq!(store.get(key).await.unwrap().unwrap().version, version);
        }
        clock.advance(TTL);

        // What has expired holds no version, whether it is written, deleted or only checked.
        let check = |key| Commit::new().check(key, Expect::Version(version.clone()));
        for commit in [
            check(ends.clone()).put(ends.clone(), put("2")),
            check(ends.clone()).delete(ends.clone()),
            check(ends.clone()).put(key("other"), put("2")),
            check(ends.clone()),
        ] {
            let outcome = store.commit(commit).await.unwrap();
            assert_eq!(outcome, Outcome::Conflicted { failed: vec![0] });
        }
        assert_eq!(store.get(&key("other")).await.unwrap(), None);
        // Those of the same commit that have not expired hold theirs.
        for key in [stays, longer] {
            let swap = check(key.clone()).put(key.clone(), put("2"));
            assert!(store.commit(swap).await.unwrap().is_applied(), "{key}");
        }
        // What has expired is absent, whether it is written, deleted or only checked.
        let absent = |key| Commit::new().check(key, Expect::Absent);
        for commit in [absent(ends.clone()), absent(ends.clone()).put(key("other"), put("2"))] {
            assert!(store.commit(commit).await.unwrap().is_applied());
        }
        assert!(
            store.commit(absent(ends.clone()).delete(ends.clone())).await.unwrap().is_applied()
        );
        assert!(
            store
                .commit(absent(ends.clone()).put(ends.clone(), put("3")))
                .await
                .unwrap()
                .is_applied()
        );
        assert_eq!(store.get(&ends).await.unwrap().unwrap().value.as_str(), "3");
    });
}

/// How long the entries live whose end comes while a commit is sent again.
const SHORT: Duration = Duration::from_secs(1);

/// Lets commits meet a fault, and time pass after some of them. A read goes through.
async fn delayed<T>(
    proxy: &HttpProxy,
    clock: &TestClock,
    fault: NetworkFault,
    operation: impl Future<Output = T>,
) -> T {
    // More than there will be.
    for _ in 0..1_000 {
        proxy.fail_next_matching(|_, path| path.ends_with(":commit"), fault);
    }
    let before = proxy.requests();
    let later = async {
        while proxy.requests() < before + 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        clock.advance(SHORT);
    };
    let result = tokio::join!(operation, later).0;
    proxy.heal();
    result
}

#[test]
fn what_expires_while_a_commit_is_sent_again_has_expired_for_it() {
    const ABORTED: &str = r#"{"error":{"code":409,"message":"contention","status":"ABORTED"}}"#;
    with_fresh(async |fresh| {
        let (proxy, clock) = (HttpProxy::start(fresh.address).await, TestClock::new());
        let store = fresh.store_through(proxy.address(), clock.clone()).await;
        let (lease, guarded) = (key("lease"), key("guarded"));
        let ending = || put("1").expiring(Expiry::After(SHORT));
        for fault in [NetworkFault::Answer(429), NetworkFault::Refuse(409, ABORTED)] {
            for also_stays in [false, true] {
                let both = Commit::new().put(lease.clone(), ending()).put(key("stays"), put("1"));
                let outcome = store.commit(both).await.unwrap();
                let expect = Expect::Version(outcome.versions().unwrap()[0].clone().unwrap());
                let checked = Commit::new().check(key("stays"), expect.clone());
                let (checked, failed) = match also_stays {
                    true => (checked.check(lease.clone(), expect), 1),
                    false => (Commit::new().check(lease.clone(), expect), 0),
                };
                let late = store.commit(checked.put(guarded.clone(), put("1")));
                let outcome = delayed(&proxy, &clock, fault, late).await.unwrap();
                assert_eq!(outcome, Outcome::Conflicted { failed: vec![failed] }, "{fault:?}");
                assert_eq!(store.get(&guarded).await.unwrap(), None);
            }
        }
    });
}

#[test]
fn a_swap_in_doubt_is_not_sent_again_once_its_entry_may_have_expired() {
    with_fresh(async |fresh| {
        let (proxy, clock) = (HttpProxy::start(fresh.address).await, TestClock::new());
        let store = fresh.store_through(proxy.address(), clock.clone()).await;
        let lease = key("lease");
        let version =
            store.put(lease.clone(), put("1").expiring(Expiry::After(SHORT))).await.unwrap();
        let swap = Commit::new().check(lease.clone(), Expect::Version(version));
        let late = store.commit(swap.put(lease.clone(), put("2")));
        let started = tokio::time::Instant::now();
        let error = delayed(&proxy, &clock, NetworkFault::Answer(503), late).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        assert!(started.elapsed() < fresh.options().http.retry_budget / 2, "it was given up");
        assert_eq!(fresh.fields("=lease").await.unwrap()["value"], json!({ "stringValue": "1" }));
    });
}

#[test]
fn of_many_creates_where_an_expired_entry_stands_one_wins() {
    with_fresh(async |fresh| {
        let clock = TestClock::new();
        let store = fresh.store(clock.clone()).await;
        for round in 0..10 {
            let slot = key(&format!("slot:{round}"));
            store.put(slot.clone(), put("0").expiring(Expiry::After(TTL))).await.unwrap();
            clock.advance(TTL);
            let creates = (0..16).map(|n| {
                let create = Commit::new().check(slot.clone(), Expect::Absent);
                store.commit(create.put(slot.clone(), put(&n.to_string())))
            });
            let outcomes = join_all(creates).await;
            let won = outcomes.into_iter().filter(|it| it.as_ref().unwrap().is_applied()).count();
            assert_eq!(won, 1, "round {round}");
        }
    });
}

#[test]
fn versions_never_repeat_for_a_key() {
    with_fresh(async |fresh| {
        let store = fresh.store(TestClock::new()).await;
        let slot = key("slot");
        let mut seen = HashSet::new();
        for round in 0..300 {
            // The same contents again and again: only the mark makes it a change.
            let version = store.put(slot.clone(), put("1")).await.unwrap();
            assert!(seen.insert(version), "round {round}");
            if round % 3 == 0 {
                store.delete(slot.clone()).await.unwrap();
            }
        }
    });
}

#[test]
fn a_commit_whose_answer_is_lost_is_found_by_its_mark() {
    with_fresh(async |fresh| {
        let proxy = HttpProxy::start(fresh.address).await;
        let store = fresh.store_through(proxy.address(), TestClock::new()).await;
        for fault in
            [NetworkFault::CutAfter, NetworkFault::CutHalfway, NetworkFault::AnswerAfter(504)]
        {
            for commit in [
                Commit::new().put(key("blind"), put("1")).delete(key("other")),
                Commit::new().check(key("new"), Expect::Absent).put(key("new"), put("1")),
            ] {
                store.delete(key("new")).await.unwrap();
                proxy.fail_next(fault);
                let outcome = store.commit(commit).await.unwrap();
                let version = outcome.versions().unwrap()[0].clone().unwrap();
                let keys = [key("blind"), key("new")];
                let there = store.get_many(&keys).await.unwrap();
                assert!(there.iter().flatten().any(|entry| entry.version == version), "{fault:?}");
            }
        }
    });
}

#[test]
fn a_commit_that_nothing_tells_about_is_unknown() {
    with_fresh(async |fresh| {
        let proxy = HttpProxy::start(fresh.address).await;
        let store = fresh.store_through(proxy.address(), TestClock::new()).await;
        // A delete leaves no mark, and may not be sent again: somebody may have written in between.
        store.put(key("slot"), put("1")).await.unwrap();
        proxy.fail_next(NetworkFault::CutAfter);
        let lost = store.commit(Commit::new().delete(key("slot"))).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::OutcomeUnknown, "{lost}");
        assert_eq!(store.get(&key("slot")).await.unwrap(), None);
        // A put that may be on its way has left no mark yet.
        proxy.fail_next(NetworkFault::Answer(500));
        let lost = store.put(key("slot"), put("1")).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::OutcomeUnknown, "{lost}");
        // One that is refused for the rate of requests was not done, and is sent again.
        proxy.fail_next(NetworkFault::Answer(429));
        store.put(key("slot"), put("2")).await.unwrap();
    });
}

#[test]
fn a_swap_whose_answer_is_lost_is_sent_again() {
    with_fresh(async |fresh| {
        let proxy = HttpProxy::start(fresh.address).await;
        let store = fresh.store_through(proxy.address(), TestClock::new()).await;
        for fault in [NetworkFault::CutBefore, NetworkFault::CutAfter, NetworkFault::Answer(503)] {
            let version = store.put(key("slot"), put("1")).await.unwrap();
            proxy.fail_next(fault);
            let swap = Commit::new()
                .check(key("slot"), Expect::Version(version))
                .put(key("slot"), put("2"));
            let outcome = store.commit(swap).await.unwrap();
            let entry = store.get(&key("slot")).await.unwrap().unwrap();
            assert_eq!(outcome.versions().unwrap(), [Some(entry.version)], "{fault:?}");
            assert_eq!(entry.value.as_str(), "2");
        }
    });
}

/// Adds one to a number by compare-and-swap, as often as told.
async fn count(store: &Store, times: usize) {
    let counter = key("counter");
    for _ in 0..times {
        loop {
            let entry = store.get(&counter).await.unwrap();
            let number = entry.as_ref().map_or(0, |entry| entry.value.as_integer().unwrap());
            let expect = entry.map_or(Expect::Absent, |entry| Expect::Version(entry.version));
            let commit = Commit::new()
                .check(counter.clone(), expect)
                .put(counter.clone(), put(&(number + 1).to_string()));
            if store.commit(commit).await.unwrap().is_applied() {
                break;
            }
        }
    }
}

#[test]
fn counters_by_compare_and_swap_lose_nothing_between_engines() {
    with_fresh(async |fresh| {
        let clock = TestClock::new();
        let stores = [fresh.store(clock.clone()).await, fresh.store(clock).await];
        join_all((0..8).map(|n| count(&stores[n % 2], 10))).await;
        let entry = stores[0].get(&key("counter")).await.unwrap().unwrap();
        assert_eq!(entry.value.as_str(), "80");
    });
}

#[test]
fn a_ttl_policy_of_firestore_can_use_the_end() {
    with_fresh(async |fresh: Fresh| {
        let store = fresh.store(TestClock::new()).await;
        store.put(key("slot"), put("1").expiring(Expiry::After(TTL))).await.unwrap();
        let fields = fresh.fields("=slot").await.unwrap();
        assert_eq!(fields["expires"], json!({ "timestampValue": "2026-01-01T00:01:00Z" }));
        assert_eq!(fields["value"], json!({ "stringValue": "1" }));
        assert_eq!(store.stats().await.unwrap().entries, 1);
    });
}
