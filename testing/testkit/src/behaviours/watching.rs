//! Watching what changes.

use futures_util::StreamExt;
use keyward_engine::{ChangeKind, Commit, ErrorKind, Event, Expect, Outcome, Revision, Version};
use keyward_key::{Key, KeyRange, Prefix};

use super::{key, put};
use crate::subject::Subject;
use crate::watcher::Watcher;

/// What an engine whose commits have no revisions must say instead: that it cannot watch, or that revisions it never
/// told are too old.
pub(super) async fn assert_cannot_resume(subject: &Subject) {
    let foreign = [Some(Revision(0)), Some(Revision(7)), Some(Revision(u64::MAX))];
    if subject.can_watch() {
        for since in foreign {
            let mut stream = subject.store.watch(KeyRange::all(), since);
            let told = stream.next().await.expect("a word about it").unwrap();
            assert!(matches!(told, Event::TooOld { .. }), "{told:?} since {since:?}");
            assert!(stream.next().await.is_none(), "and nothing more");
        }
        return;
    }
    for since in [None].into_iter().chain(foreign) {
        let mut stream = subject.store.watch(KeyRange::all(), since);
        let refused = stream.next().await.expect("a word about it").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
        assert!(stream.next().await.is_none(), "and nothing more");
    }
}

pub(super) fn under(text: &str) -> KeyRange {
    KeyRange::under(&Prefix::parse(text).unwrap())
}

/// Commits, and gives the revision.
pub(super) async fn commit(subject: &Subject, commit: Commit) -> Revision {
    match subject.commit(commit).await {
        Outcome::Applied { revision, .. } => revision.expect("a history has revisions"),
        conflicted => panic!("{conflicted:?} without a check"),
    }
}

pub(super) async fn commit_put(subject: &Subject, key: &Key) -> Revision {
    commit(subject, Commit::new().put(key.clone(), put("1"))).await
}

pub async fn a_watch_begins_with_the_revision_it_begins_after(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    assert_eq!(Some(watcher.at()), subject.revision().await);
    let revision = commit_put(&subject, &key("a")).await;
    let watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    assert_eq!(watcher.at(), revision);
}

pub async fn each_commit_is_told_with_its_keys_and_kinds(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let (a, b, n) = (key("a"), key("b"), key("n"));
    let mut watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    let mut expected = Vec::new();
    let commits = [
        (Commit::new().put(a.clone(), put("1")), vec![(a.clone(), ChangeKind::Put)]),
        (Commit::new().put(a.clone(), put("1")), vec![(a.clone(), ChangeKind::Put)]),
        (Commit::new().add(n.clone(), 1), vec![(n.clone(), ChangeKind::Put)]),
        (Commit::new().put(b.clone(), put("0")), vec![(b.clone(), ChangeKind::Put)]),
        (
            Commit::new().put(b.clone(), put("1")).delete(a.clone()).add(n.clone(), 1),
            vec![(a, ChangeKind::Deleted), (b.clone(), ChangeKind::Put), (n, ChangeKind::Put)],
        ),
        (Commit::new().delete(b.clone()), vec![(b, ChangeKind::Deleted)]),
    ];
    let (add, keys_max) = (subject.capabilities().add, subject.limits().commit_keys_max);
    for (change, changes) in commits {
        let adds =
            change.writes.iter().any(|write| matches!(write, keyward_engine::Write::Add(..)));
        if (adds && !add) || changes.len() > keys_max {
            let refused = subject.store.commit(change).await.unwrap_err();
            assert!(matches!(refused.kind(), ErrorKind::Unsupported | ErrorKind::LimitExceeded));
            continue;
        }
        expected.push((commit(&subject, change).await, changes));
    }
    let last = subject.revision().await.unwrap();
    assert_eq!(watcher.changes_until(last).await, expected);
}

pub async fn only_what_lies_in_the_range_is_told(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let inside = ["in:a", "in:b:c", "in:"].map(key);
    let outside = ["in", "in-a", "im:z", "out:a"].map(key);
    let mut watcher = Watcher::start(&subject, under("in"), None).await;
    let mut expected = Vec::new();
    for (inside, outside) in inside.iter().zip(&outside) {
        commit_put(&subject, outside).await;
        let told = vec![(inside.clone(), ChangeKind::Put)];
        expected.push((commit_put(&subject, inside).await, told));
    }
    if subject.limits().commit_keys_max >= 2 {
        let both = Commit::new().put(outside[3].clone(), put("1")).put(inside[0].clone(), put("1"));
        let told = vec![(inside[0].clone(), ChangeKind::Put)];
        expected.push((commit(&subject, both).await, told));
    }
    let last = subject.revision().await.unwrap();
    assert_eq!(watcher.changes_until(last).await, expected);
}

pub async fn commits_elsewhere_move_the_point_to_resume_from(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let mut watcher = Watcher::start(&subject, under("in"), None).await;
    for _ in 0..3 {
        let revision = commit_put(&subject, &key("out:a")).await;
        assert_eq!(watcher.changes_until(revision).await, []);
        assert_eq!(watcher.at(), revision);
    }
}

pub async fn what_changes_nothing_is_not_told(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let (a, absent) = (key("a"), key("absent"));
    commit_put(&subject, &a).await;
    let mut watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    commit(&subject, Commit::new().delete(absent.clone())).await;
    if subject.capabilities().compare {
        commit(&subject, Commit::new().check(absent.clone(), Expect::Absent)).await;
        let refused = Commit::new()
            .check(a.clone(), Expect::Version(Version::parse("foreign")))
            .put(a.clone(), put("2"));
        assert!(!subject.commit(refused).await.is_applied());
    }
    let told = vec![(a.clone(), ChangeKind::Deleted)];
    let mut change = Commit::new().delete(a);
    if subject.limits().commit_keys_max >= 2 {
        // An absent key is not told even beside one that changed.
        change = change.delete(absent);
    }
    let revision = commit(&subject, change).await;
    assert_eq!(watcher.changes_until(revision).await, [(revision, told)]);
}

pub async fn watchers_do_not_disturb_each_other(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let (a, b) = (key("a:1"), key("b:1"));
    let mut all = Watcher::start(&subject, KeyRange::all(), None).await;
    let mut only_a = Watcher::start(&subject, under("a"), None).await;
    let dropped = Watcher::start(&subject, KeyRange::all(), None).await;
    let first = commit_put(&subject, &a).await;
    drop(dropped);
    let second = commit_put(&subject, &b).await;
    let mut late = Watcher::start(&subject, KeyRange::all(), None).await;
    let third = commit_put(&subject, &a).await;

    let told = |revision, key: &Key| (revision, vec![(key.clone(), ChangeKind::Put)]);
    assert_eq!(
        all.changes_until(third).await,
        [told(first, &a), told(second, &b), told(third, &a)]
    );
    assert_eq!(only_a.changes_until(third).await, [told(first, &a), told(third, &a)]);
    assert_eq!(late.changes_until(third).await, [told(third, &a)]);
}

pub async fn a_watcher_that_waits_is_woken(subject: Subject) {
    if !subject.can_resume() {
        return assert_cannot_resume(&subject).await;
    }
    let a = key("a");
    for _ in 0..5 {
        let mut watcher = Watcher::start(&subject, KeyRange::all(), None).await;
        let waiting = tokio::spawn(async move { watcher.event().await });
        tokio::task::yield_now().await;
        let revision = commit_put(&subject, &a).await;
        match waiting.await.unwrap() {
            Event::Changed { revision: told, .. } => assert_eq!(told, revision),
            other => panic!("{other:?} instead of the change"),
        }
    }
}
