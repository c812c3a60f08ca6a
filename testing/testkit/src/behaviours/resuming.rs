//! Watching again from where one left off, or being told that it is too late.

use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{ChangeKind, Event, Revision};
use keyward_key::KeyRange;

use super::key;
use super::watching::{assert_cannot_resume, commit_put, under};
use crate::subject::Subject;
use crate::watcher::Watcher;

/// How many commits an engine may be told to keep.
const HISTORY: usize = 8;

pub async fn resuming_gives_exactly_the_later_commits(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let mut told = Vec::new();
    let mut revisions = vec![subject.revision().await.unwrap()];
    for n in 0..12 {
        let key = key(if n % 3 == 0 { "out:a" } else { "in:a" });
        let revision = commit_put(&subject, &key).await;
        if n % 3 != 0 {
            told.push((revision, vec![(key, ChangeKind::Put)]));
        }
        revisions.push(revision);
    }
    let last = *revisions.last().unwrap();
    for since in revisions {
        let mut watcher = Watcher::start(&subject, under("in"), Some(since)).await;
        let mut later = told.clone();
        later.retain(|(revision, _)| *revision > since);
        assert_eq!(watcher.changes_until(last).await, later, "since {since}");
    }
}

pub async fn a_resumed_watch_goes_on_with_what_comes(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let a = key("a");
    let first = commit_put(&subject, &a).await;
    let second = commit_put(&subject, &a).await;
    let mut watcher = Watcher::start(&subject, KeyRange::all(), Some(first)).await;
    let third = commit_put(&subject, &a).await;
    let told = watcher.changes_until(third).await;
    let revisions: Vec<Revision> = told.into_iter().map(|(revision, _)| revision).collect();
    assert_eq!(revisions, [second, third]);
    let fourth = commit_put(&subject, &a).await;
    assert_eq!(watcher.changes_until(fourth).await.len(), 1);
}

pub async fn long_histories_are_told_without_a_gap(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    // More than an engine reads of its log at once.
    const COMMITS: usize = 600;
    let begin = subject.revision().await.unwrap();
    let mut expected = Vec::new();
    for n in 0..COMMITS {
        expected.push(commit_put(&subject, &key(&format!("a:{}", n % 10))).await);
    }
    let mut watcher = Watcher::start(&subject, KeyRange::all(), Some(begin)).await;
    let told = watcher.changes_until(*expected.last().unwrap()).await;
    let revisions: Vec<Revision> = told.into_iter().map(|(revision, _)| revision).collect();
    assert_eq!(revisions, expected);
}

pub async fn a_revision_still_to_come_is_too_old(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let last = commit_put(&subject, &key("a")).await;
    // Such a revision is from another store, or from before a backup was restored.
    for ahead in [1, 1_000_000] {
        assert_too_old(&subject, Revision(last.0 + ahead)).await;
    }
}

async fn assert_too_old(subject: &Subject, since: Revision) {
    let mut stream = subject.store.watch(KeyRange::all(), Some(since));
    let event = stream.next().await.expect("a word about it").unwrap();
    let Event::TooOld { earliest } = event else {
        panic!("{event:?} since {since}");
    };
    let stats = subject.store.stats().await.unwrap();
    assert_eq!(Some(earliest), stats.earliest_revision);
    assert!(stream.next().await.is_none(), "and nothing more");
    Watcher::start(subject, KeyRange::all(), Some(earliest)).await;
}

/// Commits until the history no longer reaches back to `begin`.
async fn outrun(subject: &Subject, begin: Revision) {
    for n in 0..100 * HISTORY {
        commit_put(subject, &key(&format!("a:{n}"))).await;
        let earliest = subject.store.stats().await.unwrap().earliest_revision;
        if earliest.unwrap() > begin {
            return;
        }
    }
    panic!("a history of {HISTORY} commits still reaches back after a hundred times as many");
}

/// What engines show whose history cannot be made short: it reaches back to the beginning.
async fn assert_history_reaches_back(subject: &Subject) {
    let begin = subject.revision().await.unwrap();
    for _ in 0..HISTORY * 4 {
        commit_put(subject, &key("a")).await;
    }
    let last = subject.revision().await.unwrap();
    let mut watcher = Watcher::start(subject, KeyRange::all(), Some(begin)).await;
    assert_eq!(watcher.changes_until(last).await.len(), HISTORY * 4);
}

pub async fn history_that_is_gone_is_told_as_too_old(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let Some(subject) = subject.with_history(HISTORY).await else {
        return assert_history_reaches_back(&subject).await;
    };
    let begin = subject.revision().await.unwrap();
    outrun(&subject, begin).await;
    assert_too_old(&subject, begin).await;

    let stats = subject.store.stats().await.unwrap();
    let (earliest, last) = (stats.earliest_revision.unwrap(), stats.revision.unwrap());
    let mut watcher = Watcher::start(&subject, KeyRange::all(), Some(earliest)).await;
    let told = watcher.changes_until(last).await;
    assert!(told.len() >= HISTORY, "kept only {} commits", told.len());
}

pub async fn a_watcher_that_falls_behind_is_told_so(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let Some(subject) = subject.with_history(HISTORY).await else {
        return assert_history_reaches_back(&subject).await;
    };
    let mut watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    outrun(&subject, watcher.at()).await;
    let mut at = watcher.at();
    loop {
        // It may still tell what it had read before, but never with a gap.
        match watcher.event().await {
            Event::Changed { revision, .. } | Event::Reached(revision) => {
                assert!(revision >= at);
                at = revision;
            }
            Event::TooOld { earliest } => {
                assert!(earliest > at, "{earliest} is not beyond {at}");
                break;
            }
        }
    }
    watcher.assert_ended().await;
}

pub async fn a_slow_watcher_does_not_hold_up_writers(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    const COMMITS: usize = 400;
    let mut slow = Watcher::start(&subject, KeyRange::all(), None).await;
    let writing = async {
        for n in 0..COMMITS {
            commit_put(&subject, &key(&format!("a:{n}"))).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), writing).await;
    assert!(in_time.is_ok(), "writers waited for a watcher");

    let last = subject.revision().await.unwrap();
    assert_eq!(slow.changes_until(last).await.len(), COMMITS);
}
