//! How often the store is asked.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Engine, Json, Put, Store, Tier};
use keyward_locks::{Error, Mode, Request, Wanted};
use keyward_memory::{Memory, Options};
use keyward_testkit::{Call, Faults, FaultyEngine};

use crate::fixture::{key, locks_on, page, path, take};

fn counted(tier: Tier) -> (FaultyEngine, keyward_locks::Locks) {
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(Options::tier(tier), keyward_engine::SystemClock));
    let engine = FaultyEngine::new(memory, Faults::none());
    let locks = locks_on(Store::new(engine.clone()));
    (engine, locks)
}

fn calls(engine: &FaultyEngine) -> Vec<Call> {
    engine.trace().into_iter().map(|(call, _)| call).collect()
}

#[tokio::test]
async fn a_lock_that_nobody_else_wants_costs_a_read_and_two_commits() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let (engine, locks) = counted(tier);
        let root = page(&locks);
        take(&root, "a").await.release().await.unwrap();
        let first = calls(&engine);
        // Where commits have one key, the first lock of a root writes its mark apart.
        let mark = if tier == Tier::Atomic { 0 } else { 1 };
        assert_eq!(first.len(), 3 + mark, "{tier}: {first:?}");
        take(&root, "a").await.release().await.unwrap();
        let second = &calls(&engine)[first.len()..];
        assert_eq!(second, [Call::Get, Call::Commit, Call::Commit], "{tier}");
    }
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_every_third_of_their_time() {
    let (engine, locks) = counted(Tier::Recoverable);
    let root = page(&locks);
    let guard = take(&root, "a").await;
    let before = calls(&engine).len();
    tokio::time::sleep(Duration::from_secs(121)).await;
    assert!(guard.is_held());
    // A look and a commit each, after 40, 80 and 120 seconds.
    assert_eq!(calls(&engine).len() - before, 6);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_before_the_store_is_asked() {
    let (engine, locks) = counted(Tier::Atomic);
    let root = page(&locks);
    let asked = [path("a")];
    for ttl in [Duration::ZERO, Duration::from_millis(99), Duration::from_secs(100_000)] {
        let request = Request::default().ttl(ttl);
        let refused = root.acquire(&asked, Mode::Exclusive, &request).await.unwrap_err();
        assert!(matches!(refused, Error::BadRequest(_)), "{refused}");
    }
    for bad in ["a::b", ":", "50%", &"a:".repeat(17).to_string(), &"x".repeat(1_025)] {
        let refused = keyward_locks::LockPath::parse(bad).unwrap_err();
        assert!(matches!(refused, Error::BadPath { .. }), "{refused}");
    }
    let many = vec![path("a"); 65];
    assert!(root.acquire(&many, Mode::Exclusive, &Request::default()).await.is_err());
    assert_eq!(engine.calls(), 0);
    for reserved in ["lock", "job:1", "queue:mail", "dead-letter:mail", "index:x", "metadata"] {
        let refused = locks.root(key(reserved)).unwrap_err();
        assert!(matches!(refused, Error::BadRequest(_)), "{refused}");
        assert!(refused.to_string().contains(reserved), "{refused}");
    }
    assert!(locks.root(key("system:nightly")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn waiting_as_long_as_can_be_said_is_waiting_for_ever() {
    let (_, locks) = counted(Tier::Atomic);
    let wanted = |name: &str| {
        let root = locks.root(key(name)).unwrap();
        Wanted { root, paths: vec![path("a")], mode: Mode::Exclusive }
    };
    let wanted = [wanted("page:7"), wanted("page:8")];
    let held = take(&wanted[1].root, "a").await;
    let request = Request::default().wait_max(Duration::MAX);
    let released = async {
        tokio::time::sleep(Request::WAIT_DEFAULT * 2).await;
        held.release().await.unwrap();
    };
    let (guards, ()) = tokio::join!(locks.acquire_all(&wanted, &request), released);
    assert_eq!(guards.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_catalog_at_its_last_token_is_refused() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let (_, locks) = counted(tier);
        let root = page(&locks);
        let last = u64::MAX - 1;
        let catalog = format!(
            r#"{{"keyward":"locks","format":1,"next_token":{last},"holders":[],"waiters":[]}}"#
        );
        let put = Put::new(Json::parse(catalog).unwrap());
        locks.store().put(key("page:7"), put).await.unwrap();
        let held = take(&root, "a").await;
        assert_eq!(held.token(), last, "{tier}");
        // Neither a grant nor a place in line is to be had.
        for text in ["b", "a"] {
            let asked = [path(text)];
            let refused = root.acquire(&asked, Mode::Exclusive, &Request::default()).await;
            let refused = refused.unwrap_err();
            assert!(matches!(refused, Error::Damaged { .. }), "{tier}: {refused}");
        }
        held.release().await.unwrap();
        assert_eq!(root.list().await.unwrap().holders, [], "{tier}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_at_its_last_beat_is_lost_at_its_renewal() {
    let (_, locks) = counted(Tier::Recoverable);
    let guard = take(&page(&locks), "a").await;
    let catalog = locks.store().get(&key("page:7")).await.unwrap().unwrap().value;
    let (beat, last) = (r#""beat":0"#, format!(r#""beat":{}"#, u64::MAX));
    assert!(catalog.as_str().contains(beat));
    let put = Put::new(Json::parse(catalog.as_str().replace(beat, &last)).unwrap());
    locks.store().put(key("page:7"), put).await.unwrap();
    tokio::time::sleep(Request::TTL_DEFAULT / 3 + Duration::from_secs(1)).await;
    assert!(!guard.is_held());
    assert_eq!(page(&locks).list().await.unwrap().holders, [], "others need not wait for its end");
}

#[tokio::test]
async fn everything_that_is_counted_can_be_shown() {
    let (_, locks) = counted(Tier::Atomic);
    let root = page(&locks);
    let guard = take(&root, "a").await;
    let tried = root.try_acquire(&[path("a")], Mode::Shared, &Request::default()).await.unwrap();
    assert!(matches!(tried, keyward_locks::Tried::Held(_)));
    guard.release().await.unwrap();
    let mut registry = prometheus_client::registry::Registry::default();
    locks.metrics().register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "keyward_locks_acquired_total 1",
        "keyward_locks_contended_total 1",
        "keyward_locks_wait_seconds_count 1",
        "keyward_locks_takeovers_total 0",
        "keyward_locks_fence_refusals_total 0",
        "keyward_locks_queue_depth 0",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
