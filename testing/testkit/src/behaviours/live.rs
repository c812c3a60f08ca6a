//! Watching what changes from now on, also where commits have no revisions.

use std::collections::{BTreeMap, BTreeSet};

use keyward_engine::{ChangeKind, Event, Revision};
use keyward_key::{Key, KeyRange};
use tokio::task::JoinSet;

use super::watching::{assert_cannot_resume, under};
use super::{key, put};
use crate::subject::Subject;
use crate::watcher::Watcher;

/// Reads events until a key was told in a way; gives the last way in which each key was told, and the revision.
async fn told_until(
    watcher: &mut Watcher,
    key: &Key,
    kind: ChangeKind,
) -> (BTreeMap<Key, ChangeKind>, Revision) {
    let mut told = BTreeMap::new();
    loop {
        if let Event::Changed { revision, changes } = watcher.event().await {
            told.extend(changes.into_iter().map(|change| (change.key, change.kind)));
            if told.get(key) == Some(&kind) {
                return (told, revision);
            }
        }
    }
}

pub async fn what_changes_after_a_watch_began_is_told(subject: Subject) {
    if !subject.can_watch() {
        return assert_cannot_resume(&subject).await;
    }
    let (a, b, last) = (key("in:a"), key("in:b"), key("in:last"));
    let mut watcher = Watcher::start(&subject, under("in"), None).await;
    for outside in ["in", "in-a", "im:z", "out:a"] {
        subject.put(&key(outside), put("1")).await;
    }
    subject.put(&a, put("1")).await;
    subject.put(&b, put("1")).await;
    subject.delete(&a).await;
    subject.put(&last, put("1")).await;
    let (mut told, _) = told_until(&mut watcher, &last, ChangeKind::Put).await;
    // The changes of a key are told in their order; those of two keys may change places.
    if told.get(&a) != Some(&ChangeKind::Deleted) {
        told.extend(told_until(&mut watcher, &a, ChangeKind::Deleted).await.0);
    }
    if !told.contains_key(&b) {
        told.extend(told_until(&mut watcher, &b, ChangeKind::Put).await.0);
    }
    let expected = [(a, ChangeKind::Deleted), (b, ChangeKind::Put), (last, ChangeKind::Put)];
    assert_eq!(told, BTreeMap::from(expected));
}

pub async fn a_watch_resumes_while_the_store_is_open(subject: Subject) {
    if !subject.can_watch() {
        return assert_cannot_resume(&subject).await;
    }
    let (a, b, c) = (key("a"), key("b"), key("c"));
    let mut watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    let began = watcher.at();
    subject.put(&a, put("1")).await;
    let (_, at) = told_until(&mut watcher, &a, ChangeKind::Put).await;
    drop(watcher);
    subject.put(&b, put("1")).await;
    let mut watcher = Watcher::start(&subject, KeyRange::all(), Some(at)).await;
    subject.put(&c, put("1")).await;
    let (told, _) = told_until(&mut watcher, &b, ChangeKind::Put).await;
    assert!(!told.contains_key(&a), "{a} came before {at}");
    let mut watcher = Watcher::start(&subject, KeyRange::all(), Some(began)).await;
    assert_eq!(told_until(&mut watcher, &a, ChangeKind::Put).await.1, at);
    told_until(&mut watcher, &c, ChangeKind::Put).await;
}

pub async fn what_is_not_listed_when_a_watch_began_is_told(subject: Subject) {
    if !subject.can_watch() {
        return assert_cannot_resume(&subject).await;
    }
    const WRITERS: usize = 4;
    const EACH: usize = 20;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = subject.store.clone();
        writers.spawn(async move {
            for n in 0..EACH {
                store.put(key(&format!("{writer}:{n}")), put("1")).await.unwrap();
            }
        });
    }
    // Begins somewhere between their writes.
    let mut watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    let mut seen: BTreeSet<Key> = subject.keys(KeyRange::all()).await.into_iter().collect();
    while seen.len() < WRITERS * EACH {
        if let Event::Changed { changes, .. } = watcher.event().await {
            seen.extend(changes.into_iter().map(|change| change.key));
        }
    }
    writers.join_all().await;
}
