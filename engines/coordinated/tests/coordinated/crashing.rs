//! A process dies between any two calls: nothing acknowledged is lost, and the value store follows in the end.

use std::sync::Arc;

use keyward_engine::{Commit, ErrorKind, Expiry, Store};
use keyward_testkit::{Faults, When};

use crate::setup::{GRACE, Setup, key, put, value};

/// What both keys hold, as far as a client knows.
#[derive(Debug)]
struct Known {
    acknowledged: Option<String>,
    /// A commit whose outcome nobody knows; it may have been applied.
    unknown: Option<Option<String>>,
}

/// Commits that each leave the two keys alike: set, expiring, or absent.
fn commits() -> Vec<(Commit, Option<String>)> {
    let both = |text: &str| Commit::new().put(key("a"), put(text)).put(key("b"), put(text));
    let ending = |text: &str| put(text).expiring(Expiry::After(GRACE * 100));
    vec![
        (both("1"), Some("1".to_owned())),
        (both("2"), Some("2".to_owned())),
        (Commit::new().delete(key("a")).delete(key("b")), None),
        (Commit::new().put(key("a"), ending("3")).put(key("b"), ending("3")), Some("3".to_owned())),
        (both("4"), Some("4".to_owned())),
    ]
}

/// Works until it is done or dead.
async fn work(setup: &Setup) -> Known {
    let mut known = Known { acknowledged: None, unknown: None };
    let (values, coordinator) = (setup.values.clone(), setup.coordinator.clone());
    let Ok(engine) = setup.open_with(values.clone(), coordinator.clone()).await else {
        return known;
    };
    let engine = Arc::new(engine);
    let store = Store::from_arc(engine.clone());
    for (commit, text) in commits() {
        match store.commit(commit).await {
            Ok(outcome) => {
                assert!(outcome.is_applied());
                known.acknowledged = text;
            }
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => known.unknown = Some(text),
            Err(_) => {}
        }
        // A process dies whole.
        if values.is_crashed() || coordinator.is_crashed() {
            return known;
        }
        setup.clock.advance(GRACE / 2);
        let _ = engine.settle().await;
        if values.is_crashed() || coordinator.is_crashed() {
            return known;
        }
    }
    known
}

async fn check(setup: Setup, what: &str) {
    let known = work(&setup).await;
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let (a, b) = (value(&store, &key("a")).await, value(&store, &key("b")).await);
    assert_eq!(a, b, "{what}: half a commit");
    let possible = a == known.acknowledged || known.unknown.as_ref() == Some(&a);
    assert!(possible, "{what}: {a:?} of {known:?}");
    for _ in 0..3 {
        setup.wait();
        engine.settle().await.unwrap();
    }
    assert_eq!(setup.held().await, 0, "{what}: everything is settled");
    for name in ["a", "b"] {
        assert_eq!(setup.shown_value(&key(name)).await, a, "{what}: {name} in the value store");
        assert_eq!(value(&store, &key(name)).await, a, "{what}: {name} through the store");
    }
}

#[tokio::test]
async fn a_crash_at_any_call_loses_nothing_and_the_value_store_follows() {
    let setup = Setup::new();
    work(&setup).await;
    let (values, coordinator) = (setup.values.calls(), setup.coordinator.calls());
    assert!(values > 10 && coordinator > 20, "{values} and {coordinator} calls");
    for when in [When::Before, When::After] {
        for call in 0..values {
            let crash = Faults::crash_at(call, when);
            check(
                Setup::with(crash, Faults::none()),
                &format!("value store, {when:?} call {call}"),
            )
            .await;
        }
        for call in 0..coordinator {
            let crash = Faults::crash_at(call, when);
            check(
                Setup::with(Faults::none(), crash),
                &format!("coordinator, {when:?} call {call}"),
            )
            .await;
        }
    }
}
