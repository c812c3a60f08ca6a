//! Writes of those who lost their lock.

use keyward_engine::{Code, Coded, Commit, Expect, Json, Outcome, Put, Tier};
use keyward_locks::{Change, Error, Guard, Mode, Request, Result, Target, Updated};
use keyward_stores::{Place, on_databases, on_engines, on_every_engine};

use crate::fixture::{key, locks, number, page, path, take};

on_every_engine!(
    a_commit_under_a_stale_guard_is_refused,
    a_commit_under_a_guard_tells_its_own_conflicts,
    an_update_under_a_stale_guard_is_refused,
    updates_count_and_delete,
    a_guard_and_those_below_it_write_the_same_keys,
);
on_databases!(a_commit_under_a_stale_guard_is_refused, updates_count_and_delete);
on_engines!(couchdb: CouchDb, forge_entity: ForgeEntity; an_update_under_a_stale_guard_is_refused, updates_count_and_delete);
on_engines!(recoverable: Recoverable;
    an_update_under_a_stale_guard_is_refused,
    updates_count_and_delete,
    a_guard_and_those_below_it_write_the_same_keys,
    a_broken_guard_cannot_write_once_its_owner_has_the_lock_again,
    a_commit_is_refused_with_what_to_use_instead,
    a_reader_that_wrote_nothing_is_still_safe_from_the_holder_before,
    a_key_is_written_under_one_root,
    metadata_and_ends_of_entries_are_kept,
);
on_engines!(advisory: Advisory; locks_are_refused_where_nothing_can_be_compared);

fn increment(entry: Option<&keyward_engine::Entry>) -> Result<Change> {
    let old = entry.map_or(0, |entry| entry.value.as_integer().unwrap());
    Ok(Change::Put(number(old + 1)))
}

/// A guard whose lock was taken away without its knowledge, and the one who has it now.
async fn stale_and_current(place: &Place) -> (Guard, Guard) {
    let (ours, theirs) = (page(&locks(place).await), page(&locks(place).await));
    let stale = take(&ours, "policies:1").await;
    theirs.break_lock(&Target::Token(stale.token()), "bob", "stuck").await.unwrap();
    let current = take(&theirs, "policies:1").await;
    (stale, current)
}

async fn a_commit_under_a_stale_guard_is_refused(place: Place) {
    let (stale, current) = stale_and_current(&place).await;
    assert!(stale.is_held(), "it does not know yet");
    let late = Commit::new().put(key("k"), number(1));
    let refused = stale.commit(late).await.unwrap_err();
    assert!(matches!(&refused, Error::Lost { token, .. } if *token == stale.token()), "{refused}");
    assert!(refused.to_string().contains("bob broke it: stuck"), "{refused}");
    assert!(!stale.is_held());
    let store = place.store().await;
    assert_eq!(store.get(&key("k")).await.unwrap(), None);

    let good = Commit::new().put(key("k"), number(2));
    assert!(current.commit(good).await.unwrap().is_applied());
    // Two locks in one commit.
    let other = take(current.root(), "issues").await;
    let fence = other.fence().unwrap();
    let mut both = Commit::new().put(key("k"), number(3));
    both.checks.push(fence);
    assert!(current.commit(both.clone()).await.unwrap().is_applied());
    other.release().await.unwrap();
    let refused = current.commit(both).await.unwrap();
    assert_eq!(refused, Outcome::Conflicted { failed: vec![0] });
}

async fn a_commit_under_a_guard_tells_its_own_conflicts(place: Place) {
    let root = page(&locks(&place).await);
    let guard = take(&root, "policies").await;
    let commit = Commit::new().check(key("k"), Expect::Absent).put(key("k"), number(1));
    assert!(guard.commit(commit.clone()).await.unwrap().is_applied());
    assert_eq!(guard.commit(commit).await.unwrap(), Outcome::Conflicted { failed: vec![0] });
    assert!(guard.is_held());
}

async fn an_update_under_a_stale_guard_is_refused(place: Place) {
    let (stale, current) = stale_and_current(&place).await;
    assert!(matches!(current.update(&key("k"), increment).await.unwrap(), Updated::Put(_)));
    let refused = stale.update(&key("k"), increment).await.unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    let value = current.get(&key("k")).await.unwrap().unwrap().value;
    assert_eq!(value.as_integer(), Some(1));
    assert_eq!(stale.root().list().await.unwrap().holders[0].token, current.token());
}

async fn updates_count_and_delete(place: Place) {
    let root = page(&locks(&place).await);
    for round in 0..3 {
        let guard = take(&root, "policies").await;
        for n in 0..3 {
            guard.update(&key("k"), increment).await.unwrap();
            let value = guard.get(&key("k")).await.unwrap().unwrap();
            assert_eq!((value.value.as_integer(), value.metadata), (Some(n + 1), None), "{round}");
        }
        let kept = guard.update(&key("k"), |_| Ok(Change::Keep)).await.unwrap();
        assert_eq!(kept, Updated::Kept);
        let no = |_: Option<&_>| Err(Error::BadRequest("no".to_owned()));
        let refused = guard.update(&key("k"), no).await;
        assert_eq!(refused.unwrap_err().to_string(), "no");
        let gone = guard.update(&key("k"), |_| Ok(Change::Delete)).await.unwrap();
        assert_eq!(gone, Updated::Deleted);
        assert_eq!(guard.get(&key("k")).await.unwrap(), None);
        guard.release().await.unwrap();
    }
}

async fn a_guard_and_those_below_it_write_the_same_keys(place: Place) {
    let root = page(&locks(&place).await);
    let policies = take(&root, "policies").await;
    policies.update(&key("k"), increment).await.unwrap();
    let below = [path("policies:1")];
    let one = policies.descend(&below, Mode::Exclusive, &Request::default()).await.unwrap();
    one.update(&key("k"), increment).await.unwrap();
    policies.update(&key("k"), increment).await.unwrap();
    one.update(&key("k"), increment).await.unwrap();
    let value = one.get(&key("k")).await.unwrap().unwrap().value;
    assert_eq!(value.as_integer(), Some(4));
    one.release().await.unwrap();
    policies.release().await.unwrap();
    take(&root, "policies:1").await.update(&key("k"), increment).await.unwrap();
}

async fn a_broken_guard_cannot_write_once_its_owner_has_the_lock_again(place: Place) {
    let root = page(&locks(&place).await);
    let policies = take(&root, "policies").await;
    let below = [path("policies:1")];
    let old = policies.descend(&below, Mode::Exclusive, &Request::default()).await.unwrap();
    root.break_lock(&Target::Token(old.token()), "bob", "stuck").await.unwrap();
    let new = policies.descend(&below, Mode::Exclusive, &Request::default()).await.unwrap();
    new.update(&key("k"), increment).await.unwrap();
    let refused = old.update(&key("k"), increment).await.unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    assert!(refused.to_string().contains("bob broke it: stuck"), "{refused}");
    // Those of the same owner that are still held go on.
    policies.update(&key("k"), increment).await.unwrap();
    new.update(&key("k"), increment).await.unwrap();
    let value = new.get(&key("k")).await.unwrap().unwrap().value;
    assert_eq!(value.as_integer(), Some(3));
}

async fn a_commit_is_refused_with_what_to_use_instead(place: Place) {
    let root = page(&locks(&place).await);
    let guard = take(&root, "policies").await;
    let refused = guard.commit(Commit::new().put(key("k"), number(1))).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unsupported);
    assert!(refused.to_string().contains("use update"), "{refused}");
    let asked = [path("issues")];
    let shared = root.acquire(&asked, Mode::Shared, &Request::default()).await.unwrap();
    assert_eq!(shared.update(&key("k"), increment).await.unwrap_err().code(), Code::Invalid);
}

async fn a_reader_that_wrote_nothing_is_still_safe_from_the_holder_before(place: Place) {
    let (stale, current) = stale_and_current(&place).await;
    // The new holder looks, and decides by what it saw.
    current.update(&key("k"), |_| Ok(Change::Keep)).await.unwrap();
    assert!(stale.update(&key("k"), increment).await.is_err());
    assert_eq!(current.get(&key("k")).await.unwrap(), None);
}

async fn a_key_is_written_under_one_root(place: Place) {
    let locks = locks(&place).await;
    let guard = take(&page(&locks), "policies").await;
    guard.update(&key("k"), increment).await.unwrap();
    let other = take(&locks.root(key("page:8")).unwrap(), "policies").await;
    let refused = other.update(&key("k"), increment).await.unwrap_err();
    assert!(matches!(refused, Error::ForeignFence { .. }), "{refused}");
    assert!(refused.to_string().contains("page:7"), "{refused}");
}

async fn metadata_and_ends_of_entries_are_kept(place: Place) {
    let store = place.store().await;
    let metadata = Json::parse(r#"{"z":1.50,"a":{"b":[1,2]}}"#).unwrap();
    let ttl = keyward_engine::Expiry::After(std::time::Duration::from_secs(60));
    let put = Put::new(Json::from_integer(1)).with_metadata(metadata.clone()).expiring(ttl);
    store.put(key("k"), put).await.unwrap();
    let before = store.get(&key("k")).await.unwrap().unwrap();
    let guard = take(&page(&locks(&place).await), "policies").await;
    guard
        .update(&key("k"), |entry| {
            assert_eq!(entry.unwrap().metadata.as_ref(), Some(&metadata));
            Ok(Change::Keep)
        })
        .await
        .unwrap();
    let after = guard.get(&key("k")).await.unwrap().unwrap();
    assert_eq!((after.metadata, after.expires), (Some(metadata), before.expires));
    assert_ne!(store.get(&key("k")).await.unwrap().unwrap().metadata, before.metadata);
}

async fn locks_are_refused_where_nothing_can_be_compared(place: Place) {
    let store = place.store().await;
    assert_eq!(store.capabilities().tier(), Tier::Advisory);
    let refused = keyward_locks::Locks::new(store, keyward_engine::SystemClock, Default::default());
    assert_eq!(refused.unwrap_err().code(), Code::Unsupported);
}
