//! Which engines can be put together, and what they can do then.

use std::sync::Arc;
use std::time::Duration;

use keyward_coordinated::{Coordinated, Options};
use keyward_engine::Commit;
use keyward_engine::{
    Capabilities, Consistency, Engine, ErrorKind, Expect, ScanOrder, Sharing, Store, Tier,
    WatchSupport,
};
use keyward_memory::Memory;
use keyward_testkit::{Faults, FaultyEngine, TestClock};

use crate::setup::{Setup, key, put};

fn memory(tier: Tier) -> FaultyEngine {
    let options = keyward_memory::Options::tier(tier);
    FaultyEngine::new(Arc::new(Memory::with(options, TestClock::new())), Faults::none())
}

async fn refusal(coordinator: FaultyEngine) -> keyward_engine::Error {
    let values = Arc::new(memory(Tier::Advisory));
    let opened =
        Coordinated::open(values, Arc::new(coordinator), Options::default(), TestClock::new())
            .await;
    opened.unwrap_err()
}

#[tokio::test]
async fn a_coordinator_that_is_not_atomic_is_refused_by_name() {
    for tier in [Tier::Recoverable, Tier::Advisory] {
        let error = refusal(memory(tier)).await;
        assert_eq!(error.kind(), ErrorKind::Misplaced);
        let text = error.to_string();
        assert!(text.contains("the memory engine") && text.contains(&tier.to_string()), "{text}");
    }
}

#[tokio::test]
async fn a_coordinator_that_is_late_or_keeps_no_order_or_takes_too_few_keys_is_refused() {
    let late = |capabilities: &mut Capabilities| {
        capabilities.consistency = Consistency::Eventual { lag: Duration::from_secs(1) };
    };
    let unordered =
        |capabilities: &mut Capabilities| capabilities.scan_order = ScanOrder::Unordered;
    let few = |capabilities: &mut Capabilities| capabilities.limits.commit_keys_max = 3;
    for coordinator in [
        memory(Tier::Atomic).acting_as(late),
        memory(Tier::Atomic).acting_as(unordered),
        memory(Tier::Atomic).acting_as(few),
    ] {
        let error = refusal(coordinator).await;
        assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
        assert!(error.to_string().contains("memory"), "{error}");
    }
}

#[tokio::test]
async fn promises_are_the_coordinators_and_limits_the_tighter_of_both() {
    let values = memory(Tier::Advisory).acting_as(|capabilities| {
        capabilities.engine = "cloudflare-kv";
        capabilities.limits.key_bytes_max = 512;
        capabilities.limits.metadata_bytes_max = 1_024;
        capabilities.sharing = Sharing::Network;
    });
    let coordinator = memory(Tier::Atomic).acting_as(|capabilities| {
        capabilities.limits.commit_keys_max = 100;
        capabilities.sharing = Sharing::Machine;
    });
    let both =
        Coordinated::capabilities_of(values.capabilities(), coordinator.capabilities()).unwrap();
    assert_eq!((both.engine, both.tier()), ("cloudflare-kv", Tier::Atomic));
    assert_eq!(both.consistency, Consistency::Strong);
    assert_eq!(both.watch, WatchSupport::Resumable);
    assert_eq!((both.add, both.sharing), (false, Sharing::Machine));
    let limits = both.limits;
    assert_eq!((limits.key_bytes_max, limits.metadata_bytes_max), (512, 1_024));
    assert_eq!(limits.commit_keys_max, 50, "each key has two rows");
}

#[tokio::test]
async fn a_store_keeps_the_list_of_kept_segments_it_was_opened_with() {
    let setup = Setup::new();
    drop(setup.open().await);
    let mut options = Options::default();
    options.keep.push("session".to_owned());
    let (values, coordinator) =
        (Arc::new(setup.values.clone()), Arc::new(setup.coordinator.clone()));
    let error =
        Coordinated::open(values, coordinator, options, setup.clock.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misplaced);
    assert!(error.to_string().contains("session"), "{error}");
}

#[tokio::test]
async fn the_engines_own_rows_can_be_neither_read_nor_written() {
    let setup = Setup::new();
    let store = Store::new(setup.open().await);
    let row = key("system:coordinator:store");
    assert_eq!(store.get(&row).await.unwrap(), None);
    for commit in [
        Commit::new().put(row.clone(), put("1")),
        Commit::new().delete(row.clone()),
        Commit::new().check(row.clone(), Expect::Absent),
    ] {
        assert_eq!(store.commit(commit).await.unwrap_err().kind(), ErrorKind::Reserved);
    }
}
