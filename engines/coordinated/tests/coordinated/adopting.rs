//! A value store that another program filled.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Commit, ErrorKind, Expect, Scan, Store};
use keyward_key::KeyRange;
use keyward_testkit::{Call, Faults, FaultyEngine, When};

use crate::setup::{LAG, Setup, contents, json, key, put, value};

const POLICY: &str =
    r#"{"policyName":"학칙","title":"한국교원대학교 학칙","status":"active","sha":"abc"}"#;
/// As version 1 of the format wrote it: by title, with a file number.
const OLD_POLICY: &str = r#"{"title":"구 규정","fileNo":"868","status":"active"}"#;

async fn fill(setup: &Setup) {
    setup.write_there(&key("policy:학칙"), POLICY).await;
    setup.write_there(&key("policy:구 규정"), OLD_POLICY).await;
    setup.write_there(&key("metadata:sync:lastCommit"), "\"abc\"").await;
    setup.write_there(&key("index:email:a@b.c"), "\"7\"").await;
    for n in 0..20 {
        setup.write_there(&key(&format!("policy:{n:02}")), &n.to_string()).await;
    }
    setup.clock.advance(LAG);
}

fn writes_there(setup: &Setup) -> usize {
    setup.values.trace().iter().filter(|(call, _)| *call == Call::Commit).count()
}

#[tokio::test]
async fn everything_that_another_program_wrote_is_there_and_nothing_is_written_back() {
    let setup = Setup::new();
    fill(&setup).await;
    let before = contents(&setup.values.inner()).await;
    let engine = Arc::new(setup.open().await);
    let reads = setup.values.trace().iter().filter(|(call, _)| *call == Call::Get).count();
    assert_eq!(reads, 1, "only the key that stays in the coordinator was read");

    let store = Store::from_arc(engine.clone());
    let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
    let read: Vec<_> =
        page.rows.into_iter().map(|row| (row.key, row.entry.unwrap().value)).collect();
    let written: Vec<_> =
        before.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect();
    assert_eq!(read, written);
    setup.wait();
    engine.settle().await.unwrap();
    assert_eq!(value(&store, &key("policy:구 규정")).await.as_deref(), Some(OLD_POLICY));
    assert_eq!(writes_there(&setup), 0);
    assert_eq!(contents(&setup.values.inner()).await, before);
}

#[tokio::test]
async fn an_adopted_key_exists_and_its_version_stays_while_it_is_read() {
    let setup = Setup::new();
    fill(&setup).await;
    let store = Store::new(setup.open().await);
    let policy = key("policy:학칙");
    let create = Commit::new().check(policy.clone(), Expect::Absent).put(policy.clone(), put("1"));
    assert!(!store.commit(create).await.unwrap().is_applied());
    let first = store.get(&policy).await.unwrap().unwrap();
    assert_eq!(store.get(&policy).await.unwrap().unwrap(), first);
    let swap = Commit::new()
        .check(policy.clone(), Expect::Version(first.version))
        .put(policy.clone(), put("2"));
    assert!(store.commit(swap).await.unwrap().is_applied());
    assert_eq!(setup.shown_value(&policy).await.as_deref(), Some("2"));
}

#[tokio::test]
async fn an_adopted_key_can_be_deleted_without_having_been_read() {
    let setup = Setup::new();
    fill(&setup).await;
    let store = Store::new(setup.open().await);
    store.delete(key("policy:학칙")).await.unwrap();
    assert_eq!(setup.shown_value(&key("policy:학칙")).await, None);
}

#[tokio::test]
async fn an_adoption_killed_at_any_call_is_completed_by_the_next_opening() {
    let calls = {
        let setup = Setup::new();
        fill(&setup).await;
        setup.open().await;
        (setup.values.calls(), setup.coordinator.calls())
    };
    for when in [When::Before, When::After] {
        for call in 0..calls.0 {
            killed(Setup::with(Faults::crash_at(call, when), Faults::none())).await;
        }
        for call in 0..calls.1 {
            killed(Setup::with(Faults::none(), Faults::crash_at(call, when))).await;
        }
    }
}

async fn killed(setup: Setup) {
    fill(&setup).await;
    let before = contents(&setup.values.inner()).await;
    // The last calls only look for work, which may fail.
    let _ = setup.try_open().await;
    let store = Store::new(setup.open().await);
    let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
    assert_eq!(page.rows.len(), before.len());
    assert_eq!(writes_there(&setup), 0);
}

#[tokio::test]
async fn two_processes_may_adopt_at_once() {
    let setup = Setup::new();
    fill(&setup).await;
    let (one, other) = tokio::join!(setup.open(), setup.open());
    for engine in [one, other] {
        let store = Store::new(engine);
        let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
        assert_eq!(page.rows.len(), 24);
        assert_eq!(store.stats().await.unwrap().entries, 24);
    }
}

#[tokio::test]
async fn keys_added_and_removed_later_are_found_by_listing_again() {
    let setup = Setup::new();
    fill(&setup).await;
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let deleted = key("policy:01");
    store.delete(deleted.clone()).await.unwrap();
    store.delete(key("index:email:a@b.c")).await.unwrap();
    store.put(key("policy:ours"), put("1")).await.unwrap();
    setup.write_there(&key("policy:new"), "1").await;
    setup.delete_there(&key("policy:05")).await;
    // Before what was deleted here has left the value store, it is not adopted again.
    assert_eq!(engine.adopt_new().await.unwrap().added, 0);
    setup.clock.advance(LAG);
    let found = engine.adopt_new().await.unwrap();
    assert_eq!((found.added, found.removed, found.skipped), (1, 1, 0));
    assert_eq!(value(&store, &key("policy:new")).await.as_deref(), Some("1"));
    for gone in ["policy:05", "policy:01", "index:email:a@b.c"] {
        assert_eq!(value(&store, &key(gone)).await, None, "{gone}");
    }
    assert_eq!(value(&store, &key("policy:ours")).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn metadata_of_another_program_is_read_with_its_value() {
    let setup = Setup::new();
    let described = put("1").with_metadata(json(r#"{"by":"worker"}"#));
    Store::from_arc(setup.values.inner()).put(key("slot"), described).await.unwrap();
    setup.clock.advance(LAG);
    let store = Store::new(setup.open().await);
    let entry = store.get(&key("slot")).await.unwrap().unwrap();
    assert_eq!(entry.metadata, Some(json(r#"{"by":"worker"}"#)));
}

#[tokio::test]
async fn an_adopted_key_that_is_read_late_is_not_taken_for_deleted() {
    let setup = Setup::new();
    // The listing shows the key. Where it is read, the value store does not show it yet.
    let elsewhere = Setup::new();
    elsewhere.write_there(&key("policy:new"), POLICY).await;
    elsewhere.clock.advance(LAG);
    drop(setup.open_with(elsewhere.values, setup.coordinator.revive()).await.unwrap());
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let error = store.get(&key("policy:new")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("policy:new"), "{error}");
    assert!(store.scan(&Scan::new(KeyRange::all())).await.is_err());
    // Nor does a listing that is late remove it.
    setup.clock.advance(LAG / 2);
    assert_eq!(engine.adopt_new().await.unwrap().removed, 0);
    let create =
        Commit::new().check(key("policy:new"), Expect::Absent).put(key("policy:new"), put("1"));
    assert!(!store.commit(create).await.unwrap().is_applied());

    setup.write_there(&key("policy:new"), POLICY).await;
    setup.clock.advance(LAG);
    assert_eq!(value(&store, &key("policy:new")).await.as_deref(), Some(POLICY));
    // Later, what is not there was deleted.
    setup.write_there(&key("policy:gone"), "1").await;
    setup.clock.advance(LAG);
    engine.adopt_new().await.unwrap();
    setup.delete_there(&key("policy:gone")).await;
    setup.clock.advance(LAG);
    assert_eq!(value(&store, &key("policy:gone")).await, None);
}

#[tokio::test]
async fn a_key_that_the_first_listing_misses_is_adopted_by_the_second() {
    for is_reopened in [false, true] {
        let setup = Setup::new();
        // So late that the first listing does not show it. One of them stays in the coordinator.
        for late in ["policy:late", "queue:late"] {
            setup.write_there(&key(late), "1").await;
        }
        let mut store = Store::new(setup.open().await);
        assert_eq!(value(&store, &key("policy:late")).await, None);
        setup.clock.advance(LAG);
        if is_reopened {
            store = Store::new(setup.open().await);
        } else {
            store.put(key("policy:ours"), put("1")).await.unwrap();
        }
        let create = Commit::new()
            .check(key("policy:late"), Expect::Absent)
            .put(key("policy:late"), put("2"));
        assert!(!store.commit(create).await.unwrap().is_applied(), "it is there");
        for late in ["policy:late", "queue:late"] {
            assert_eq!(value(&store, &key(late)).await.as_deref(), Some("1"), "{late}");
        }
        // There is no third listing.
        let scans = |setup: &Setup| {
            setup.values.trace().iter().filter(|(call, _)| *call == Call::Scan).count()
        };
        assert_eq!(scans(&setup), 2);
        setup.clock.advance(LAG * 100);
        drop(setup.open().await);
        store.put(key("policy:ours"), put("3")).await.unwrap();
        assert_eq!(scans(&setup), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_store_lists_for_the_second_time_by_itself() {
    let setup = Setup::new();
    setup.write_there(&key("policy:late"), "1").await;
    let store = Store::new(setup.open().await);
    setup.clock.advance(LAG);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(value(&store, &key("policy:late")).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn what_was_deleted_between_both_listings_stays_deleted() {
    let setup = Setup::new();
    fill(&setup).await;
    let store = Store::new(setup.open().await);
    for gone in ["index:email:a@b.c", "policy:01"] {
        store.delete(key(gone)).await.unwrap();
    }
    setup.clock.advance(LAG);
    drop(setup.open().await);
    for gone in ["index:email:a@b.c", "policy:01"] {
        assert_eq!(value(&store, &key(gone)).await, None, "{gone}");
    }
    let own = "system:coordinator:copied:";
    let rows = contents(&setup.coordinator.inner()).await;
    assert!(!rows.iter().any(|(key, _)| key.to_string().starts_with(own)), "they are forgotten");
}

#[tokio::test]
async fn bookkeeping_is_copied_a_hundred_keys_at_a_time() {
    const KEYS: usize = 250;
    let setup = Setup::new();
    for n in 0..KEYS {
        setup.write_there(&key(&format!("queue:{n:03}")), &n.to_string()).await;
    }
    setup.clock.advance(LAG);
    let store = Store::new(setup.open().await);
    let count = |engine: &FaultyEngine, what| {
        engine.trace().iter().filter(|(call, _)| *call == what).count()
    };
    assert_eq!(count(&setup.values, Call::Get), KEYS.div_ceil(100));
    // To claim the coordinator, to copy, and to note that the store was listed.
    assert_eq!(count(&setup.coordinator, Call::Commit), 1 + KEYS.div_ceil(100) + 1);
    for n in [0, 99, 100, KEYS - 1] {
        let copied = value(&store, &key(&format!("queue:{n:03}"))).await;
        assert_eq!(copied, Some(n.to_string()));
    }
    assert_eq!(store.stats().await.unwrap().entries, KEYS as u64);
}

#[tokio::test]
async fn a_copy_of_many_keys_leaves_out_those_that_are_there_already() {
    let setup = Setup::new();
    for n in 0..20 {
        setup.write_there(&key(&format!("queue:{n:02}")), "1").await;
    }
    setup.clock.advance(LAG);
    // As if another process had just written two of them.
    for n in [3, 7] {
        let own = key(&format!("queue:{n:02}"));
        Store::from_arc(setup.coordinator.inner()).put(own, put("2")).await.unwrap();
    }
    let store = Store::new(setup.open().await);
    for n in 0..20 {
        let text = if [3, 7].contains(&n) { "2" } else { "1" };
        let copied = value(&store, &key(&format!("queue:{n:02}"))).await;
        assert_eq!(copied.as_deref(), Some(text), "{n}");
    }
}
