//! What is left after closing and opening again.

use std::collections::HashSet;

use keyward_engine::{Durability, Expiry};
use keyward_key::{Key, KeyRange};

use super::watching::commit_put;
use super::{json, key, odd_keys, put};
use crate::subject::Subject;
use crate::watcher::Watcher;

/// Closes and opens; `None` if the engine says that nothing outlives it, and indeed nothing does.
async fn reopened(subject: Subject) -> Option<Subject> {
    let volatile = subject.capabilities().durability == Durability::Volatile;
    subject.put(&key("witness"), put("1")).await;
    let subject = subject.reopened().await;
    let kept = subject.get(&key("witness")).await.is_some();
    assert_eq!(kept, !volatile, "as durable as it says");
    (!volatile).then_some(subject)
}

pub async fn reopening_keeps_everything(subject: Subject) {
    let described = put("{\"a\":[1.0]}").with_metadata(json(r#"{"b":"학"}"#));
    subject.fill(odd_keys().into_iter().map(|key| (key, described.clone()))).await;
    if let Some(ttl) = subject.ttl() {
        let ending = put("2").expiring(Expiry::After(ttl * 2));
        subject.fill([(key("ends"), ending)]).await;
    }
    subject.put(&key("witness"), put("1")).await;
    subject.delete(&odd_keys()[0]).await;
    let (before, _) = subject.contents().await;
    let Some(subject) = reopened(subject).await else {
        return;
    };
    let (after, _) = subject.contents().await;
    let kept = |rows: &[keyward_engine::Row]| -> Vec<keyward_engine::Row> {
        let others = rows.iter().filter(|row| row.key != key("witness"));
        others.cloned().collect()
    };
    assert_eq!(kept(&after), kept(&before));
    let again = subject.reopened().await;
    assert_eq!(again.contents().await.0, after);
}

pub async fn versions_do_not_come_back_after_reopening(subject: Subject) {
    let slots = ["one", "two"].map(key);
    let mut seen = HashSet::new();
    let mut subject = subject;
    for round in 0..3 {
        for slot in &slots {
            for _ in 0..=round {
                let put = super::versions::next_put(&subject, seen.len());
                let version = subject.put(slot, put).await.version;
                let fresh = seen.insert((slot.clone(), version.clone()));
                assert!(fresh, "{slot} has {version:?} again");
            }
            subject.delete(slot).await;
        }
        match reopened(subject).await {
            Some(again) => subject = again,
            None => return,
        }
    }
}

pub async fn entries_end_on_time_across_reopening(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return super::expiry::assert_refused(&subject).await;
    };
    let (before, after) = (key("ends:before"), key("ends:after"));
    let first = super::expiry::put_for(&subject, &before, put("1"), ttl).await;
    let second = super::expiry::put_for(&subject, &after, put("1"), ttl * 3).await;
    subject.pass_to(first).await;
    let Some(subject) = reopened(subject).await else {
        return;
    };
    subject.assert_absent(&before).await;
    assert_eq!(subject.present(&after).await.expires, Some(second));
    subject.pass_to(second).await;
    subject.assert_absent(&after).await;
}

pub async fn a_watch_resumes_across_reopening(subject: Subject) {
    if !subject.can_resume() {
        return super::watching::assert_cannot_resume(&subject).await;
    }
    let keys: Vec<Key> = (0..6).map(|n| key(&format!("a:{n}"))).collect();
    let mut made = Vec::new();
    for key in &keys[..3] {
        made.push(commit_put(&subject, key).await);
    }
    let Some(subject) = reopened(subject).await else {
        return;
    };
    for key in &keys[3..] {
        made.push(commit_put(&subject, key).await);
    }
    assert!(made.is_sorted(), "revisions go on: {made:?}");
    // Whatever of the history was kept is told without a gap.
    let earliest = subject.store.stats().await.unwrap().earliest_revision;
    let since = made[0].max(earliest.unwrap());
    let mut watcher = Watcher::start(&subject, super::watching::under("a"), Some(since)).await;
    let told = watcher.changes_until(made[5]).await;
    let told: Vec<_> = told.into_iter().map(|(revision, _)| revision).collect();
    made.retain(|revision| *revision > since);
    assert_eq!(told, made);
}

pub async fn an_empty_store_reopens_empty(subject: Subject) {
    let subject = subject.reopened().await;
    assert_eq!(subject.keys(KeyRange::all()).await, []);
    subject.put(&key("a"), put("1")).await;
    reopened(subject).await;
}
