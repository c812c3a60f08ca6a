//! Ends of entries: by the process's clock, and by DynamoDB's own deletion later.

use std::time::Duration;

use keyward_dynamodb::{DynamoDb, Options};
use keyward_engine::{Clock, Commit, Expect, Expiry, Store, SystemClock};
use keyward_testkit::TestClock;

use crate::server::{Fresh, key, number, put, runtime};

#[test]
fn expiry_is_part_of_the_condition_of_a_commit() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let clock = TestClock::new();
        let store = Store::new(DynamoDb::open_with(fresh.options(), clock.clone()).await.unwrap());
        let minute = Duration::from_secs(60);
        let version = store.put(key("a"), put("1").expiring(Expiry::After(minute))).await.unwrap();
        clock.advance(minute);
        // The item is still there.
        assert_eq!(store.stats().await.unwrap().entries, 0);
        let change =
            Commit::new().check(key("a"), Expect::Version(version)).put(key("b"), put("1"));
        assert!(!store.commit(change).await.unwrap().is_applied());
        let create = Commit::new().check(key("a"), Expect::Absent).put(key("a"), put("2"));
        assert!(store.commit(create.clone()).await.unwrap().is_applied());
        assert!(!store.commit(create).await.unwrap().is_applied());
    });
}

#[test]
fn expired_items_are_counted_until_dynamodb_deletes_them() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let clock = TestClock::new();
        let engine = DynamoDb::open_with(fresh.options(), clock.clone()).await.unwrap();
        let store = Store::new(engine);
        let end = clock.now() + Duration::from_millis(1_500);
        store.put(key("a"), put("1").expiring(Expiry::At(end))).await.unwrap();
        store.put(key("b"), put("1")).await.unwrap();
        let items = fresh.items().await;
        let item = items.iter().find(|item| item.contains_key("e")).unwrap();
        assert_eq!(item["e"], number(&end.as_millisecond().to_string()));
        let deleted_at: i64 = item["t"].as_n().unwrap().parse().unwrap();
        assert!(deleted_at > end.as_second() + 60, "no clock is that slow");
        assert_eq!(store.expired().await.unwrap(), Some(0));
        clock.advance(Duration::from_secs(2));
        assert_eq!(store.expired().await.unwrap(), Some(1));
    });
}

/// The attribute is one that DynamoDB understands: it does delete the item.
#[test]
fn dynamodb_deletes_what_has_expired() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let options = Options { create: true, ..fresh.options() };
        let store = Store::new(DynamoDb::open(options).await.unwrap());
        let past = SystemClock.now() - Duration::from_secs(3_600);
        store.put(key("a"), put("1").expiring(Expiry::At(past))).await.unwrap();
        store.put(key("b"), put("1")).await.unwrap();
        store
            .put(key("c"), put("1").expiring(Expiry::After(Duration::from_secs(3_600))))
            .await
            .unwrap();
        while store.expired().await.unwrap() != Some(0) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(store.stats().await.unwrap().entries, 2);
    });
}
