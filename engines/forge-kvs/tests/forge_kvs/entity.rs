//! A store in a custom entity: one key at a time, compared.

use std::time::Duration;

use keyward_engine::{
    Clock, Commit, Consistency, ErrorKind, Expect, Expiry, Outcome, Scan, Store, Tier,
};
use keyward_forge_kvs::ForgeKvs;
use keyward_key::{Key, KeyRange};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};
use serde_json::json;

use crate::installation::{Installation, OnTestClock, key, put};

async fn open(installation: &Installation) -> Store {
    Store::new(ForgeKvs::open(installation.entity_options()).await.unwrap())
}

#[tokio::test]
async fn an_entity_holds_the_value_plainly_and_lives_apart_from_plain_keys() {
    let installation = Installation::new();
    let (entity, plain) = (open(&installation).await, installation.store().await);
    assert_eq!(entity.capabilities().tier(), Tier::Recoverable);
    let version = entity.put(key("abc123"), put(r#"{"locks":[]}"#)).await.unwrap();
    plain.put(key("abc123"), put("1")).await.unwrap();
    let body = json!({"entityName": "keyward", "key": "abc123"});
    let (_, row) = installation.call("entity/get", body).await;
    assert_eq!(row["value"]["value"], json!({"locks": []}));
    assert_eq!(row["value"]["version"], version.to_string());
    let value = entity.get(&key("abc123")).await.unwrap().unwrap().value;
    assert_eq!(value.as_str(), r#"{"locks":[]}"#);
}

#[tokio::test]
async fn compared_writes_take_one_request_and_reads_one_for_each_key() {
    let installation = Installation::new();
    let proxy = HttpProxy::start(installation.address()).await;
    let mut options = installation.options_through(proxy.address());
    options.entity = Some("keyward".to_owned());
    let store = Store::new(ForgeKvs::open(options).await.unwrap());
    let keys: Vec<Key> = (0..100).map(|n| key(&format!("row:{n}"))).collect();
    for key in &keys {
        let create = Commit::new().check(key.clone(), Expect::Absent).put(key.clone(), put("1"));
        let (outcome, requests) = proxy.count(store.commit(create)).await;
        assert!(outcome.unwrap().is_applied());
        assert_eq!(requests, 1, "a create");
    }
    let (entry, requests) = proxy.count(store.get(&keys[0])).await;
    assert_eq!(requests, 1, "a read");
    let version = entry.unwrap().unwrap().version;
    let swap = Commit::new()
        .check(keys[0].clone(), Expect::Version(version.clone()))
        .put(keys[0].clone(), put("2"));
    let (outcome, requests) = proxy.count(store.commit(swap.clone())).await;
    assert!(outcome.unwrap().is_applied());
    assert_eq!(requests, 1, "a swap");
    let (outcome, requests) = proxy.count(store.commit(swap)).await;
    assert_eq!(outcome.unwrap(), Outcome::Conflicted { failed: vec![0] });
    assert_eq!(requests, 2, "a swap that conflicts, and why");
    assert_eq!(proxy.count(store.get_many(&keys)).await.1, 100, "100 keys, each read as it is now");
    let scan = Scan::new(KeyRange::all()).limit(100);
    assert_eq!(proxy.count(store.scan(&scan)).await.1, 5, "a page of 100 keys, which may be late");
}

#[tokio::test]
async fn reads_of_keys_are_current_where_batches_and_listings_are_late() {
    let (installation, clock) = (Installation::new(), TestClock::new());
    installation.control(json!({"lag": {"batch": 60_000, "query": 60_000}})).await;
    let options = installation.entity_options();
    let lag = Duration::from_secs(60);
    assert_eq!(options.capabilities().consistency, Consistency::LateScans { lag });
    let open = || OnTestClock::open(&installation, installation.entity_options(), clock.clone());
    let (store, other) = (Store::new(open().await), Store::new(open().await));
    let keys: Vec<Key> = (0..60).map(|n| key(&format!("row:{n}"))).collect();
    for (n, key) in keys.iter().enumerate() {
        store.put(key.clone(), put(&n.to_string())).await.unwrap();
    }
    let read = other.get_many(&keys).await.unwrap();
    for (n, (key, entry)) in keys.iter().zip(read).enumerate() {
        assert_eq!(entry.as_ref().unwrap().value.as_integer(), Some(n as i64));
        assert_eq!(other.get(key).await.unwrap(), entry);
    }
    let scan = Scan::new(KeyRange::all());
    assert_eq!(other.scan(&scan).await.unwrap().rows, [], "listings are late");
    clock.advance(lag);
    assert_eq!(other.scan(&scan).await.unwrap().rows.len(), keys.len());
    // A throttled read is sent again.
    installation.control(json!({"throttled": 2})).await;
    assert!(other.get(&keys[0]).await.unwrap().is_some());
}

#[tokio::test]
async fn what_has_expired_and_is_still_in_forge_can_be_created_again_and_not_swapped() {
    let (installation, clock) = (Installation::new(), TestClock::new());
    installation.control(json!({"deletionDelay": 48 * 3_600_000_u64})).await;
    let options = installation.entity_options();
    let store = Store::new(OnTestClock::open(&installation, options, clock.clone()).await);
    let slot = key("slot");
    let ending = put("1").expiring(Expiry::After(Duration::from_millis(2_500)));
    let version = store.put(slot.clone(), ending).await.unwrap();
    clock.advance(Duration::from_millis(2_500));
    let conflict = Outcome::Conflicted { failed: vec![0] };
    for _ in 0..2 {
        let swap = Commit::new()
            .check(slot.clone(), Expect::Version(version.clone()))
            .put(slot.clone(), put("2"));
        assert_eq!(store.commit(swap).await.unwrap(), conflict);
        clock.advance(Duration::from_secs(1));
    }
    let create = Commit::new().check(slot.clone(), Expect::Absent).put(slot.clone(), put("3"));
    assert!(store.commit(create.clone()).await.unwrap().is_applied());
    assert_eq!(store.commit(create).await.unwrap(), conflict);
    let entry = store.get(&slot).await.unwrap().unwrap();
    assert_eq!((entry.value.as_str(), entry.expires), ("3", None));
}

#[tokio::test]
async fn a_swap_that_meets_another_transaction_is_sent_again_and_is_no_conflict() {
    let installation = Installation::new();
    let mut options = installation.entity_options();
    options.http.retry_budget = Duration::from_millis(300);
    let store = Store::new(ForgeKvs::open(options).await.unwrap());
    let slot = key("slot");
    let version = store.put(slot.clone(), put("1")).await.unwrap();
    let swap = |version, text| {
        Commit::new().check(slot.clone(), Expect::Version(version)).put(slot.clone(), put(text))
    };
    installation.control(json!({"conflicts": 2})).await;
    let outcome = store.commit(swap(version, "2")).await.unwrap();
    let version = outcome.versions().unwrap()[0].clone().unwrap();
    installation.control(json!({"conflicts": 1_000})).await;
    let error = store.commit(swap(version, "3")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(store.get(&slot).await.unwrap().unwrap().value.as_str(), "2");
}

/// Lets transactions meet a fault, and an entry expire after some of them.
async fn delayed<T>(
    proxy: &HttpProxy,
    clock: &TestClock,
    fault: NetworkFault,
    operation: impl Future<Output = T>,
) -> T {
    // More than there will be. Reads go through.
    for _ in 0..1_000 {
        proxy.fail_next_matching(|_, path| path.ends_with("/transaction"), fault);
    }
    let before = proxy.requests();
    let later = async {
        while proxy.requests() < before + 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        clock.advance(SHORT);
        proxy.heal();
    };
    tokio::join!(operation, later).0
}

/// How long the entries live whose end comes while a commit is sent again.
const SHORT: Duration = Duration::from_secs(1);
const THROTTLED: &str = r#"{"code":"REQUEST_THROTTLED","message":"too many"}"#;

/// A store behind a proxy, where Forge deletes what has expired two days later.
async fn behind(proxy: &HttpProxy, installation: &Installation, clock: &TestClock) -> Store {
    let control = json!({"deletionDelay": 48 * 3_600_000_u64, "now": clock.now().as_millisecond()});
    installation.control(control).await;
    let mut options = installation.options_through(proxy.address());
    options.entity = Some("keyward".to_owned());
    Store::new(ForgeKvs::open_with(options, clock.clone()).await.unwrap())
}

#[tokio::test]
async fn what_expires_while_a_swap_is_throttled_has_expired_for_it() {
    let (installation, clock) = (Installation::new(), TestClock::new());
    let proxy = HttpProxy::start(installation.address()).await;
    let store = behind(&proxy, &installation, &clock).await;
    let lease = key("lease");
    for fault in [NetworkFault::Answer(429), NetworkFault::Refuse(400, THROTTLED)] {
        for deletes in [false, true] {
            let ending = put("1").expiring(Expiry::After(SHORT));
            let version = store.put(lease.clone(), ending).await.unwrap();
            let held = Commit::new().check(lease.clone(), Expect::Version(version));
            let late = match deletes {
                false => held.put(lease.clone(), put("2")),
                true => held.delete(lease.clone()),
            };
            let outcome = delayed(&proxy, &clock, fault, store.commit(late)).await;
            assert_eq!(outcome.unwrap(), Outcome::Conflicted { failed: vec![0] }, "{fault:?}");
            assert_eq!(store.get(&lease).await.unwrap(), None);
        }
    }
    // What has not expired is written.
    let ending = put("1").expiring(Expiry::After(SHORT * 2));
    let version = store.put(lease.clone(), ending).await.unwrap();
    let swap =
        Commit::new().check(lease.clone(), Expect::Version(version)).put(lease.clone(), put("2"));
    let outcome = delayed(&proxy, &clock, NetworkFault::Answer(429), store.commit(swap)).await;
    assert!(outcome.unwrap().is_applied());
}

#[tokio::test]
async fn a_swap_in_doubt_whose_entry_expires_is_unknown_and_one_that_was_done_is_applied() {
    let (installation, clock) = (Installation::new(), TestClock::new());
    let proxy = HttpProxy::start(installation.address()).await;
    let store = behind(&proxy, &installation, &clock).await;
    for (fault, is_done) in [(NetworkFault::CutBefore, false), (NetworkFault::CutAfter, true)] {
        let lease = key(&format!("lease:{is_done}"));
        let ending = put("1").expiring(Expiry::After(SHORT));
        let version = store.put(lease.clone(), ending).await.unwrap();
        let swap = Commit::new()
            .check(lease.clone(), Expect::Version(version))
            .put(lease.clone(), put("2"));
        let outcome = delayed(&proxy, &clock, fault, store.commit(swap)).await;
        match is_done {
            true => assert!(outcome.unwrap().is_applied()),
            false => {
                let error = outcome.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
            }
        }
        let value = store.get(&lease).await.unwrap().map(|entry| entry.value.to_string());
        assert_eq!(value, is_done.then(|| "2".to_owned()));
    }
}

#[tokio::test]
async fn an_entity_that_the_app_does_not_declare_is_named() {
    let installation = Installation::new();
    let mut options = installation.options();
    options.entity = Some("another".to_owned());
    let store = Store::new(ForgeKvs::open(options).await.unwrap());
    for error in [
        store.put(key("slot"), put("1")).await.unwrap_err(),
        store.get(&key("slot")).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("another"), "{error}");
        assert_ne!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    }
}

#[tokio::test]
async fn an_entity_of_somebody_else_is_told() {
    let installation = Installation::new();
    let store = open(&installation).await;
    let body = json!({"entityName": "keyward", "key": "slot", "value": {"value": 1}});
    assert_eq!(installation.call("entity/set", body).await.0, 204);
    let error = store.get(&key("slot")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains("slot"), "{error}");
}
