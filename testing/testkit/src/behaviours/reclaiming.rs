//! The space of expired entries is given back, and nothing else changes by it.

use std::time::Duration;

use keyward_engine::{ChangeKind, Expiry, Json, Put};
use keyward_key::{Key, KeyRange, Prefix};

use super::{key, put};
use crate::subject::Subject;
use crate::watcher::Watcher;

/// More than an engine should need to reclaim a few entries.
const COMMITS: usize = 200;

fn ends(n: usize) -> Key {
    key(&format!("ends:{n:03}"))
}

async fn fill_with_ending(subject: &Subject, count: usize, ttl: Duration) {
    let ending = put("1").expiring(Expiry::After(ttl));
    subject.fill((0..count).map(|n| (ends(n), ending.clone()))).await;
}

async fn commit_elsewhere(subject: &Subject, times: usize) {
    for n in 0..times {
        let value = Put::new(Json::from_integer(n as i64));
        subject.store.put(key("busy"), value).await.unwrap();
    }
    subject.settle().await;
}

pub async fn the_space_of_expired_entries_is_given_back(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return super::expiry::assert_refused(&subject).await;
    };
    const ENDING: usize = 30;
    subject.put(&key("stays"), put("1")).await;
    fill_with_ending(&subject, ENDING, ttl).await;
    subject.pass(ttl + Duration::from_secs(1)).await;
    commit_elsewhere(&subject, COMMITS).await;

    let live = [key("busy"), key("stays")];
    assert_eq!(subject.keys(KeyRange::all()).await, live);
    let entries = subject.store.stats().await.unwrap().entries;
    if subject.owns_time() {
        assert_eq!(entries, 2, "commits reclaim what has expired");
    } else {
        // A server reclaims at its own pace.
        assert!((2..=2 + ENDING as u64).contains(&entries), "{entries}");
    }
}

pub async fn an_entry_written_again_outlives_its_first_end(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return super::expiry::assert_refused(&subject).await;
    };
    fill_with_ending(&subject, 4, ttl).await;
    // Written again before the end, deleted and put again before the end, and after it.
    subject.put(&ends(0), put("2")).await;
    subject.delete(&ends(1)).await;
    subject.put(&ends(1), put("2")).await;
    subject.pass(ttl + Duration::from_secs(1)).await;
    subject.put(&ends(2), put("2")).await;
    commit_elsewhere(&subject, COMMITS).await;

    for n in 0..3 {
        assert_eq!(subject.present(&ends(n)).await.value.as_str(), "2");
    }
    subject.assert_absent(&ends(3)).await;
}

pub async fn watchers_are_told_once_what_has_expired(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return super::expiry::assert_refused(&subject).await;
    };
    if !subject.can_resume() {
        return super::watching::assert_cannot_resume(&subject).await;
    }
    fill_with_ending(&subject, 3, ttl).await;
    let below = KeyRange::under(&Prefix::parse("ends").unwrap());
    let mut watcher = Watcher::start(&subject, below, None).await;
    subject.pass(ttl + Duration::from_secs(1)).await;
    commit_elsewhere(&subject, COMMITS).await;
    subject.put(&ends(9), put("1")).await;

    let last = subject.revision().await.unwrap();
    let told = watcher.changes_until(last).await;
    let mut told: Vec<_> = told.into_iter().flat_map(|(_, changes)| changes).collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    // The greatest key. Where the server reclaims by its own time, it need not have come last.
    assert_eq!(told.pop(), Some((ends(9), ChangeKind::Put)));
    let expired = [0, 1, 2].map(|n| (ends(n), ChangeKind::Expired));
    if subject.owns_time() {
        assert_eq!(told, expired);
    } else {
        assert!(told.iter().all(|change| expired.contains(change)));
        assert!(told.is_sorted_by(|a, b| a.0 < b.0), "told once each");
    }
}

pub async fn what_has_expired_is_never_told_as_deleted(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return super::expiry::assert_refused(&subject).await;
    };
    if !subject.can_resume() {
        return super::watching::assert_cannot_resume(&subject).await;
    }
    // More than one commit would reclaim on the way.
    const ENDING: usize = 300;
    fill_with_ending(&subject, ENDING, ttl).await;
    let mut watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    subject.pass(ttl + Duration::from_secs(1)).await;
    for n in [ENDING - 1, 0, ENDING / 2] {
        subject.delete(&ends(n)).await;
    }
    subject.put(&key("last"), put("1")).await;
    let last = subject.revision().await.unwrap();
    for (revision, changes) in watcher.changes_until(last).await {
        for (key, kind) in changes {
            assert_ne!(kind, ChangeKind::Deleted, "{key} at {revision}");
        }
    }
}
