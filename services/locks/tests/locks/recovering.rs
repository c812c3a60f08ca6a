//! Roots whose catalog somebody deleted or damaged: tokens go on rising, and old holders are refused.

use keyward_engine::{Commit, Json, Outcome, Put};
use keyward_locks::{Error, Locks, Mode, Request};
use keyward_stores::{Place, on_engines, on_every_engine};

use crate::fixture::{key, locks, number, page, take, try_take};

on_every_engine!(
    tokens_rise_after_a_catalog_was_deleted,
    a_holder_whose_catalog_was_deleted_cannot_write_once_another_has_the_lock,
    tokens_rise_after_a_catalog_was_damaged,
    a_foreign_value_is_left_alone_and_tokens_rise_after_it_is_gone,
    a_commit_can_refuse_to_touch_a_root,
    a_mark_is_written_once_for_many_grants,
    tokens_rise_after_a_catalog_without_a_mark_was_deleted,
    tokens_rise_after_an_older_catalog_was_put_back,
);
on_engines!(recoverable: Recoverable;
    tokens_rise_after_a_catalog_was_deleted,
    tokens_rise_after_a_catalog_was_damaged,
    a_foreign_value_is_left_alone_and_tokens_rise_after_it_is_gone,
);

async fn tokens_rise_after_a_catalog_was_deleted(place: Place) {
    let (locks, store) = (locks(&place).await, place.store().await);
    let root = page(&locks);
    let mut last = 0;
    for _ in 0..5 {
        for _ in 0..3 {
            let guard = take(&root, "policies").await;
            assert!(guard.token() > last, "{} after {last}", guard.token());
            last = guard.token();
            guard.release().await.unwrap();
        }
        store.delete(root.key().clone()).await.unwrap();
        assert!(root.list().await.unwrap().holders.is_empty());
    }
}

async fn a_holder_whose_catalog_was_deleted_cannot_write_once_another_has_the_lock(place: Place) {
    let (ours, theirs) = (page(&locks(&place).await), page(&locks(&place).await));
    let store = place.store().await;
    let stale = take(&ours, "policies").await;
    store.delete(ours.key().clone()).await.unwrap();
    let current = try_take(&theirs, "policies", Mode::Exclusive).await.unwrap();
    assert!(current.token() > stale.token());
    let refused = stale.commit(Commit::new().put(key("k"), number(1))).await.unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    assert!(current.commit(Commit::new().put(key("k"), number(2))).await.unwrap().is_applied());
    stale.release().await.unwrap();
    assert!(current.is_held());
    current.release().await.unwrap();
}

async fn tokens_rise_after_a_catalog_was_damaged(place: Place) {
    let (locks, store) = (locks(&place).await, place.store().await);
    let root = page(&locks);
    let before = take(&root, "policies").await;
    let token = before.token();
    before.release().await.unwrap();
    let damaged = r#"{"keyward":"locks","format":1,"next_token":"many"}"#;
    let damaged = Json::parse(damaged.to_owned()).unwrap();
    store.put(root.key().clone(), Put::new(damaged)).await.unwrap();
    let after = take(&root, "policies").await;
    assert!(after.token() > token);
    assert_eq!(root.list().await.unwrap().holders.len(), 1);
    after.release().await.unwrap();
}

async fn a_foreign_value_is_left_alone_and_tokens_rise_after_it_is_gone(place: Place) {
    let (locks, store) = (locks(&place).await, place.store().await);
    let root = page(&locks);
    let before = take(&root, "policies").await;
    let token = before.token();
    before.release().await.unwrap();
    store.put(root.key().clone(), number(7)).await.unwrap();
    let asked = root.acquire(&[], Mode::Exclusive, &Request::default()).await;
    assert!(asked.is_err());
    let refused = root.list().await.unwrap_err();
    assert!(matches!(refused, Error::ForeignValue { .. }), "{refused}");
    assert_eq!(store.get(root.key()).await.unwrap().unwrap().value.as_integer(), Some(7));
    store.delete(root.key().clone()).await.unwrap();
    let after = take(&root, "policies").await;
    assert!(after.token() > token);
    after.release().await.unwrap();
}

async fn a_commit_can_refuse_to_touch_a_root(place: Place) {
    let (locks, store) = (locks(&place).await, place.store().await);
    let root = page(&locks);
    let overwriting = || {
        let mut commit = Commit::new().put(root.key().clone(), number(1));
        commit.checks.push(Locks::is_no_root(root.key()));
        commit
    };
    let mut beside = Commit::new().put(key("page:8"), number(1));
    beside.checks.push(Locks::is_no_root(&key("page:8")));
    assert!(store.commit(beside).await.unwrap().is_applied());
    take(&root, "policies").await.release().await.unwrap();
    let refused = store.commit(overwriting()).await.unwrap();
    assert_eq!(refused, Outcome::Conflicted { failed: vec![0] });
}

async fn a_mark_is_written_once_for_many_grants(place: Place) {
    let (locks, store) = (locks(&place).await, place.store().await);
    let root = page(&locks);
    take(&root, "policies").await.release().await.unwrap();
    let mark = key("system:locks:page%3A7");
    let first = store.get(&mark).await.unwrap().unwrap();
    for _ in 0..20 {
        take(&root, "policies").await.release().await.unwrap();
    }
    assert_eq!(store.get(&mark).await.unwrap().unwrap().version, first.version);
}

async fn tokens_rise_after_a_catalog_without_a_mark_was_deleted(place: Place) {
    let (locks, store) = (locks(&place).await, place.store().await);
    let root = page(&locks);
    take(&root, "issues").await.release().await.unwrap();
    let stale = take(&root, "policies").await;
    for gone in [root.key().clone(), key("system:locks:page%3A7")] {
        store.delete(gone).await.unwrap();
    }
    let first = take(&root, "policies").await;
    first.release().await.unwrap();
    let second = take(&root, "policies").await;
    assert!(second.token() > stale.token());
    let refused = stale.commit(Commit::new().put(key("k"), number(1))).await.unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    second.release().await.unwrap();
}

async fn tokens_rise_after_an_older_catalog_was_put_back(place: Place) {
    let (locks, store) = (locks(&place).await, place.store().await);
    let root = page(&locks);
    take(&root, "policies").await.release().await.unwrap();
    let older = store.get(root.key()).await.unwrap().unwrap().value;
    // Past the first block of tokens the mark is raised.
    let text = older.as_str().replace("\"next_token\":2", "\"next_token\":1001");
    let late = Put::new(Json::parse(text).unwrap());
    store.put(root.key().clone(), late).await.unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let guard = take(&root, "policies").await;
        last = guard.token();
        guard.release().await.unwrap();
    }
    assert!(last > 1_001);
    store.put(root.key().clone(), Put::new(older)).await.unwrap();
    let after = take(&root, "policies").await;
    assert!(after.token() > last, "{} after {last}", after.token());
    after.release().await.unwrap();
}
