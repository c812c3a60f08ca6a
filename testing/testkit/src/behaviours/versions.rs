//! A key never has the same version twice. Where commits can check nothing, a version may be a fingerprint of the
//! entry: another entry has another one.

use std::collections::HashSet;

use keyward_engine::{Commit, ErrorKind, Expiry, Outcome, Put};

use super::{key, put};
use crate::subject::Subject;

/// The next of several puts that must all give another version: always the same, where checks rely on versions.
pub(super) fn next_put(subject: &Subject, seen: usize) -> Put {
    if subject.capabilities().compare { put("1") } else { put(&seen.to_string()) }
}

pub async fn every_put_gives_a_new_version(subject: Subject) {
    let key = key("slot");
    let mut seen = HashSet::new();
    for n in 0..10 {
        let version = subject.put(&key, next_put(&subject, n)).await.version;
        assert!(seen.insert(version.clone()), "{version:?} came twice");
    }
}

pub async fn versions_do_not_come_back_after_delete_and_re_create(subject: Subject) {
    let (slot, other) = (key("slot"), key("other"));
    let mut seen = HashSet::new();
    for n in 0..10 {
        for _ in 0..=n % 3 {
            let version = subject.put(&slot, next_put(&subject, seen.len())).await.version;
            assert!(seen.insert(version.clone()), "{version:?} came twice");
        }
        subject.delete(&slot).await;
        if n % 2 == 0 {
            subject.put(&other, put("1")).await;
        }
    }
}

pub async fn versions_do_not_come_back_after_expiry_and_re_create(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return super::expiry::assert_refused(&subject).await;
    };
    let key = key("slot");
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let entry = subject.put(&key, put("1").expiring(Expiry::After(ttl))).await;
        assert!(seen.insert(entry.version), "came twice");
        subject.pass_to(entry.expires.unwrap()).await;
        subject.assert_absent(&key).await;
    }
}

pub async fn the_outcome_tells_the_versions_that_reads_show(subject: Subject) {
    let (set, gone, sum) = (key("set"), key("gone"), key("sum"));
    subject.put(&gone, put("1")).await;
    let mut commits =
        vec![Commit::new().put(set.clone(), put("1")), Commit::new().delete(gone.clone())];
    if subject.capabilities().add {
        commits.push(Commit::new().add(sum.clone(), 1));
        let together =
            Commit::new().add(sum.clone(), 1).delete(gone.clone()).put(set.clone(), put("2"));
        if subject.limits().commit_keys_max >= 3 {
            commits.push(together);
        } else {
            subject.assert_refused(together, ErrorKind::LimitExceeded).await;
        }
    }
    for commit in commits {
        let keys: Vec<_> = commit.writes.iter().map(|w| w.key().clone()).collect();
        let Outcome::Applied { versions, revision } = subject.commit(commit).await else {
            panic!("nothing was checked");
        };
        let entries = subject.store.get_many(&keys).await.unwrap();
        let shown: Vec<_> = entries.into_iter().map(|e| Some(e?.version)).collect();
        assert_eq!(versions, shown);
        assert_eq!(revision.is_some(), subject.can_resume());
    }
}

pub async fn all_entries_a_commit_writes_have_one_version(subject: Subject) {
    let (made, kept, gone) = (key("made"), key("kept"), key("gone"));
    let (sum, first) = (key("sum"), key("first"));
    for key in [&kept, &gone, &sum] {
        subject.put(key, put("1")).await;
    }
    let mut commit =
        Commit::new().put(made.clone(), put("1")).put(kept.clone(), put("1")).delete(gone.clone());
    let mut written = vec![made, kept];
    // Numbers too: one that is there, and one that is not.
    if subject.capabilities().add {
        commit = commit.add(sum.clone(), 1).add(first.clone(), 1);
        written.extend([sum, first]);
    }
    if subject.limits().commit_keys_max < commit.writes.len() {
        return subject.assert_refused(commit, ErrorKind::LimitExceeded).await;
    }
    // Only puts, some of keys that are there, may take another way through an engine.
    let puts = written.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), put("2")));
    let mut last = None;
    for commit in [commit, puts] {
        let Outcome::Applied { versions, .. } = subject.commit(commit).await else {
            panic!("nothing was checked");
        };
        let told: HashSet<_> = versions.into_iter().flatten().collect();
        let mut shown = HashSet::new();
        for key in &written {
            shown.insert(subject.present(key).await.version);
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(shown, told);
        assert_ne!(last.as_ref(), Some(&told), "another commit has another version");
        last = Some(told);
    }
}

pub async fn revisions_grow_with_every_commit_that_changes_something(subject: Subject) {
    let slot = key("slot");
    let commit = async |commit: Commit| match subject.commit(commit).await {
        Outcome::Applied { revision, .. } => revision,
        conflicted => panic!("{conflicted:?} without a check"),
    };
    if !subject.can_resume() {
        let revision = commit(Commit::new().put(slot, put("1"))).await;
        assert_eq!(revision, None, "no history, no revision");
        return;
    }
    let mut last = subject.revision().await;
    for n in 0..10 {
        let change = if n % 3 == 2 {
            Commit::new().delete(slot.clone())
        } else {
            Commit::new().put(slot.clone(), put("1"))
        };
        let revision = commit(change).await;
        assert!(revision > last, "{revision:?} after {last:?}");
        last = revision;
        let nothing = commit(Commit::new().delete(key("absent"))).await;
        assert_eq!(nothing, last, "the revision the store was at");
        assert_eq!(subject.revision().await, last);
    }
}
