//! A value store that another program filled.

use std::sync::Arc;

use keyward_engine::{Commit, Expect, Scan, Store};
use keyward_key::KeyRange;
use keyward_testkit::{Call, Faults, When};

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
