//! Commits whose answer is lost, and numbers.

use std::time::Duration;

use keyward_dynamodb::DynamoDb;
use keyward_engine::{Commit, ErrorKind, Expect, Expiry, Outcome, Store};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};

use crate::server::{Fresh, address, json, key, put, putting, runtime};

#[test]
fn a_commit_that_was_done_is_not_done_again() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let store = fresh.store_through(&proxy).await;
        // Additions show it: each lost answer would count once more.
        for n in 1..=5 {
            proxy.fail_next(NetworkFault::CutAfter);
            proxy.fail_next(NetworkFault::AnswerAfter(504));
            let (outcome, count) = proxy.count(store.commit(Commit::new().add(key("n"), 1))).await;
            assert!(outcome.unwrap().is_applied());
            assert_eq!(count, 3);
            let entry = store.get(&key("n")).await.unwrap().unwrap();
            assert_eq!(entry.value.as_integer(), Some(n));
        }
    });
}

#[test]
fn a_late_attempt_does_not_undo_what_others_wrote_since() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let witness = fresh.store().await;
        let options = fresh.impatient(proxy.address());
        let store = Store::new(DynamoDb::open_with(options, TestClock::new()).await.unwrap());
        // Longer than the engine waits for an answer: the second attempt is the first to arrive.
        proxy.fail_next(NetworkFault::Delay(Duration::from_millis(2_500)));
        store.put(key("a"), put("\"ours\"")).await.unwrap();
        witness.put(key("a"), put("\"theirs\"")).await.unwrap();
        proxy.quiet().await;
        let entry = witness.get(&key("a")).await.unwrap().unwrap();
        assert_eq!(entry.value.as_str(), "\"theirs\"");
    });
}

#[test]
fn a_conflict_after_a_lost_attempt_is_certain_only_for_a_version() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let store = fresh.store_through(&proxy).await;
        let old = store.put(key("a"), put("1")).await.unwrap();
        store.put(key("a"), put("2")).await.unwrap();
        let swap = Commit::new().check(key("a"), Expect::Version(old)).put(key("a"), put("3"));
        proxy.fail_next(NetworkFault::CutBefore);
        assert_eq!(store.commit(swap).await.unwrap(), Outcome::Conflicted { failed: vec![0] });
        // What is there now may be gone when the lost attempt arrives.
        let create = Commit::new().check(key("a"), Expect::Absent).put(key("a"), put("3"));
        proxy.fail_next(NetworkFault::CutBefore);
        let error = store.commit(create.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        assert_eq!(store.commit(create).await.unwrap(), Outcome::Conflicted { failed: vec![0] });
    });
}

#[test]
fn what_cannot_be_reached_was_not_done() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let proxy = HttpProxy::start(address()).await;
        let options = fresh.impatient(proxy.address());
        let store = Store::new(DynamoDb::open_with(options, TestClock::new()).await.unwrap());
        drop(proxy);
        // The connection that is open may still be tried; after it there is no other.
        let _ = store.commit(putting("a", "1")).await;
        let error = store.commit(putting("a", "1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("cannot reach"), "{error}");
    });
}

#[test]
fn numbers_are_added_to_in_whatever_form_they_are_stored() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let (clock, options) = (TestClock::new(), fresh.options());
        let store = Store::new(DynamoDb::open_with(options, clock.clone()).await.unwrap());
        // `-0` comes back in its own digits, so it is no number to DynamoDB.
        store.put(key("n"), put("-0").with_metadata(json(r#"{"a":1}"#))).await.unwrap();
        assert_eq!(store.get(&key("n")).await.unwrap().unwrap().value.as_str(), "-0");
        assert!(store.commit(Commit::new().add(key("n"), 7)).await.unwrap().is_applied());
        let entry = store.get(&key("n")).await.unwrap().unwrap();
        assert_eq!((entry.value.as_str(), entry.metadata), ("7", Some(json(r#"{"a":1}"#))));

        let minute = Duration::from_secs(60);
        store
            .put(key("e"), put("40").with_metadata(json("{}")).expiring(Expiry::After(minute)))
            .await
            .unwrap();
        clock.advance(minute);
        let several =
            Commit::new().check(key("e"), Expect::Absent).add(key("e"), 2).add(key("n"), 1);
        assert!(store.commit(several).await.unwrap().is_applied());
        let entry = store.get(&key("e")).await.unwrap().unwrap();
        assert_eq!((entry.value.as_str(), entry.metadata, entry.expires), ("2", None, None));
        assert_eq!(store.get(&key("n")).await.unwrap().unwrap().value.as_str(), "8");
    });
}

#[test]
fn a_commit_may_touch_a_hundred_new_roots() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let store = fresh.store().await;
        let all = (0..100)
            .fold(Commit::new(), |commit, n| commit.put(key(&format!("root{n:03}")), put("1")));
        assert!(store.commit(all).await.unwrap().is_applied());
        let page = keyward_engine::Scan::new(keyward_key::KeyRange::all()).limit(1_000);
        assert_eq!(store.scan(&page).await.unwrap().rows.len(), 100);
    });
}
