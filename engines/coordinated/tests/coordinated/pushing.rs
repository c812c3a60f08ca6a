//! What reaches the value store, and when the coordinator lets go of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{Commit, Engine, Event, Expect, Expiry, Outcome, Store};
use keyward_key::KeyRange;
use keyward_testkit::{Call, Fault, Faults, When};

use crate::setup::{GRACE, LAG, Setup, json, key, put, value};

#[tokio::test]
async fn another_program_finds_a_committed_value_under_its_plain_key() {
    let setup = Setup::new();
    let store = Store::new(setup.open().await);
    let text = r#"{"policyName":"학칙","n":1.50,"sha":"abc"}"#;
    let described = put(text).with_metadata(json(r#"{"source":"git"}"#));
    store.put(key("policy:학칙"), described).await.unwrap();
    let shown = setup.shown().await;
    assert_eq!(shown.len(), 1, "nothing else is there: {shown:?}");
    let (shown_key, entry) = &shown[0];
    assert_eq!(*shown_key, key("policy:학칙"));
    assert_eq!(entry.value.as_str(), text);
    assert_eq!(entry.metadata, Some(json(r#"{"source":"git"}"#)));

    store.delete(key("policy:학칙")).await.unwrap();
    assert_eq!(setup.shown().await, []);
}

#[tokio::test]
async fn bookkeeping_never_reaches_the_value_store() {
    let setup = Setup::new();
    let store = Store::new(setup.open().await);
    let kept =
        ["system:schema", "index:by-tag:a:note:1", "lock:page:7", "queue:학칙", "dead-letter:학칙"];
    let kept = kept.map(key);
    let commit = kept.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), put("1")));
    let _ = store.commit(commit.put(key("note:1"), put("2"))).await.unwrap();
    store.delete(kept[0].clone()).await.unwrap();
    setup.wait();
    store.put(key("note:2"), put("3")).await.unwrap();

    let shown: Vec<String> = setup.shown().await.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(shown, ["note:1", "note:2"]);
    assert_eq!(value(&store, &kept[1]).await.as_deref(), Some("1"));
    assert_eq!(value(&store, &kept[0]).await, None);
}

#[tokio::test]
async fn a_late_read_of_the_value_store_is_never_seen() {
    let setup = Setup::new();
    let (one, other) = (Store::new(setup.open().await), Store::new(setup.open().await));
    let slot = key("slot");
    for n in 0..40 {
        one.put(slot.clone(), put(&n.to_string())).await.unwrap();
        // Also after the earlier values have been settled.
        setup.clock.advance(if n % 4 == 0 { GRACE } else { LAG / 3 });
        for store in [&one, &other] {
            assert_eq!(value(store, &slot).await, Some(n.to_string()));
        }
    }
}

#[tokio::test]
async fn a_settled_value_is_in_the_value_store_alone_and_keeps_its_version() {
    let setup = Setup::new();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let slot = key("slot");
    let version = store.put(slot.clone(), put("1")).await.unwrap();
    let before = store.get(&slot).await.unwrap().unwrap();
    assert_eq!(engine.settle().await.unwrap().waiting, 1);
    assert_eq!(setup.held().await, 1, "too early");

    setup.wait();
    let settled = engine.settle().await.unwrap();
    assert_eq!((settled.settled, settled.waiting), (1, 0));
    assert_eq!(setup.held().await, 0);
    let after = store.get(&slot).await.unwrap().unwrap();
    assert_eq!((&after, &after.version), (&before, &version));
    let swap = Commit::new().check(slot.clone(), Expect::Version(version)).put(slot, put("2"));
    assert!(store.commit(swap).await.unwrap().is_applied());
}

#[tokio::test]
async fn later_commits_settle_earlier_ones_without_commits_of_their_own() {
    let setup = Setup::new();
    let store = Store::new(setup.open().await);
    // With the first of them, the adoption is complete.
    setup.clock.advance(LAG);
    for n in 0..10 {
        store.put(key(&format!("slot:{n}")), put("1")).await.unwrap();
    }
    setup.wait();
    let commits = |setup: &Setup| {
        let calls = setup.coordinator.trace();
        calls.iter().filter(|(call, _)| *call == Call::Commit).count()
    };
    let before = commits(&setup);
    for n in 0..4 {
        store.put(key(&format!("busy:{n}")), put("1")).await.unwrap();
    }
    assert_eq!(commits(&setup) - before, 4, "one for each");
    assert_eq!(setup.held().await, 4, "only the new ones");
}

#[tokio::test]
async fn a_commit_is_one_commit_one_push_and_one_look() {
    let setup = Setup::new();
    let store = Store::new(setup.open().await);
    let (values, coordinator) = (setup.values.calls(), setup.coordinator.calls());
    store.put(key("slot"), put("1")).await.unwrap();
    let calls = |trace: Vec<(Call, Fault)>, from: u64| -> Vec<Call> {
        trace.into_iter().skip(from as usize).map(|(call, _)| call).collect()
    };
    assert_eq!(calls(setup.values.trace(), values), [Call::Commit]);
    assert_eq!(calls(setup.coordinator.trace(), coordinator), [Call::Commit, Call::Get]);

    let coordinator = setup.coordinator.calls();
    value(&store, &key("slot")).await;
    assert_eq!(setup.coordinator.calls() - coordinator, 1, "a read is one read");
}

#[tokio::test]
async fn a_push_that_fails_does_not_fail_the_commit_and_is_made_up_for() {
    for fault in [Fault::Fail, Fault::Unanswered(When::Before), Fault::Unanswered(When::After)] {
        // The first call lists the value store.
        let setup = Setup::with(Faults::script([(1, fault)]), Faults::none());
        let store = Store::new(setup.open().await);
        store.put(key("slot"), put("1")).await.unwrap();
        assert_eq!(value(&store, &key("slot")).await.as_deref(), Some("1"));
        setup.clock.advance(Duration::from_secs(10));
        store.put(key("other"), put("2")).await.unwrap();
        assert_eq!(setup.shown_value(&key("slot")).await.as_deref(), Some("1"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_lost_push_of_metadata_or_an_end_alone_is_made_up_for() {
    let described = put("1").with_metadata(json(r#"{"by":"us"}"#));
    let ending = put("1").expiring(Expiry::After(GRACE * 10));
    for changed in [described, ending] {
        // After the listing and the first push, one push is lost.
        let setup = Setup::with(Faults::script([(2, Fault::Fail)]), Faults::none());
        let engine = Arc::new(setup.open().await);
        let store = Store::from_arc(engine.clone());
        store.put(key("slot"), put("1")).await.unwrap();
        store.put(key("slot"), changed.clone()).await.unwrap();
        let kept = store.get(&key("slot")).await.unwrap().unwrap();
        for _ in 0..2 {
            setup.wait();
            engine.settle().await.unwrap();
        }
        assert_eq!(setup.held().await, 0);
        let shown = setup.shown().await.pop().unwrap().1;
        assert_eq!((&shown.metadata, shown.expires), (&changed.metadata, kept.expires));
    }
}

#[tokio::test]
async fn watchers_are_told_of_the_callers_keys_once_and_of_settling_never() {
    let setup = Setup::new();
    let engine = setup.open().await;
    let mut watch = engine.watch(KeyRange::all(), None);
    let Event::Reached(_) = watch.next().await.unwrap().unwrap() else { panic!("it begins") };
    let commit = Commit::new().put(key("a"), put("1")).put(key("b"), put("1"));
    let Outcome::Applied { revision, .. } = engine.commit(commit).await.unwrap() else {
        panic!("nothing was checked")
    };
    setup.wait();
    assert_eq!(engine.settle().await.unwrap().settled, 2);
    match watch.next().await.unwrap().unwrap() {
        Event::Changed { revision: told, changes } => {
            assert_eq!(Some(told), revision);
            let keys: Vec<_> = changes.into_iter().map(|change| change.key).collect();
            assert_eq!(keys, [key("a"), key("b")]);
        }
        other => panic!("{other:?} instead of the change"),
    }
    let Event::Reached(_) = watch.next().await.unwrap().unwrap() else { panic!("nothing changed") };
}

#[tokio::test]
async fn an_entry_that_expires_is_pushed_with_its_life_and_ends_by_the_coordinator() {
    let setup = Setup::new();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let slot = key("slot");
    let life = Duration::from_secs(3_600);
    store.put(slot.clone(), put("1").expiring(Expiry::After(life))).await.unwrap();
    let end = store.get(&slot).await.unwrap().unwrap().expires.unwrap();
    assert_eq!(setup.shown().await[0].1.expires, Some(end));

    setup.wait();
    assert_eq!(engine.settle().await.unwrap().waiting, 0);
    assert_eq!(value(&store, &slot).await.as_deref(), Some("1"));
    setup.clock.advance_to(end);
    assert_eq!(value(&store, &slot).await, None);
    assert_eq!(setup.shown_value(&slot).await, None);
}

#[tokio::test]
async fn a_life_too_short_for_the_value_store_leaves_nothing_there_not_even_the_old_value() {
    let setup = Setup::new();
    let minute = Duration::from_secs(60);
    let values = setup.values.revive().acting_as(|capabilities| {
        capabilities.expiry =
            keyward_engine::ExpirySupport::Supported { granularity: minute, ttl_min: minute };
    });
    let engine = Arc::new(setup.open_with(values, setup.coordinator.clone()).await.unwrap());
    let store = Store::from_arc(engine.clone());
    let slot = key("slot");
    store.put(slot.clone(), put("1")).await.unwrap();
    let short = Expiry::After(Duration::from_secs(30));
    store.put(slot.clone(), put("2").expiring(short)).await.unwrap();
    assert_eq!(value(&store, &slot).await.as_deref(), Some("2"));
    assert_eq!(setup.shown_value(&slot).await, None);
    setup.wait();
    engine.settle().await.unwrap();
    assert_eq!((value(&store, &slot).await, setup.held().await), (None, 0));
}

#[tokio::test]
async fn an_entry_that_expired_before_it_was_pushed_leaves_no_old_value_behind() {
    // After the listing and the first push, one push is lost.
    let setup = Setup::with(Faults::script([(2, Fault::Fail)]), Faults::none());
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let slot = key("slot");
    store.put(slot.clone(), put("1")).await.unwrap();
    store.put(slot.clone(), put("2").expiring(Expiry::After(LAG))).await.unwrap();
    setup.clock.advance(LAG * 2);
    assert_eq!(setup.shown_value(&slot).await.as_deref(), Some("1"), "not pushed yet");
    setup.wait();
    engine.settle().await.unwrap();
    assert_eq!((value(&store, &slot).await, setup.shown_value(&slot).await), (None, None));
}

#[tokio::test]
async fn short_lived_processes_settle_what_those_before_them_wrote() {
    let setup = Setup::new();
    for n in 0..5 {
        let store = Store::new(setup.open().await);
        store.put(key(&format!("slot:{n}")), put("1")).await.unwrap();
    }
    assert_eq!(setup.held().await, 5);
    // One process finds that they are there, and another, later, that they still are.
    setup.clock.advance(LAG);
    drop(setup.open().await);
    setup.wait();
    drop(setup.open().await);
    assert_eq!(setup.held().await, 0);
    let pushes = setup.values.trace().iter().filter(|(call, _)| *call == Call::Commit).count();
    assert_eq!(pushes, 5, "nothing was pushed twice");
}

#[tokio::test(start_paused = true)]
async fn what_is_pushed_through_is_shown_by_the_value_store_or_its_refusal_is_told() {
    let setup = Setup::new();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let slot = key("slot");
    assert_eq!(engine.push_through(&slot).await.unwrap(), Some(true), "nothing is to be there");
    assert_eq!(engine.push_through(&key("system:slot")).await.unwrap(), None, "it stays here");
    store.put(slot.clone(), put("1")).await.unwrap();
    assert_eq!(engine.push_through(&slot).await.unwrap(), Some(false), "its reads are late");
    setup.clock.advance(LAG);
    assert_eq!(engine.push_through(&slot).await.unwrap(), Some(true));

    // What was not pushed is sent again.
    let away = setup.values.revive();
    let cut_off =
        Arc::new(setup.open_with(away.clone(), setup.coordinator.revive()).await.unwrap());
    away.kill();
    let late = Store::from_arc(cut_off.clone());
    late.put(slot.clone(), put("2")).await.unwrap();
    assert!(cut_off.push_through(&slot).await.is_err(), "the value store is away");
    setup.clock.advance(LAG);
    assert_eq!(engine.push_through(&slot).await.unwrap(), Some(false), "sent now, and late");
    setup.clock.advance(LAG);
    assert_eq!(engine.push_through(&slot).await.unwrap(), Some(true));
    store.delete(slot.clone()).await.unwrap();
    setup.clock.advance(LAG);
    assert_eq!(engine.push_through(&slot).await.unwrap(), Some(true));
}
