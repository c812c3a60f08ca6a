//! Commits happen whole or not at all.

use keyward_engine::{Commit, ErrorKind, Expect, Outcome, Version};

use super::{key, put};
use crate::subject::Subject;

pub async fn a_commit_of_several_keys_is_applied_whole(subject: Subject) {
    let keys = ["a", "b:c", "d"].map(key);
    let commit = keys.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), put("1")));
    if subject.limits().commit_keys_max < keys.len() {
        return subject.assert_refused(commit, ErrorKind::LimitExceeded).await;
    }
    let Outcome::Applied { versions, .. } = subject.commit(commit).await else {
        panic!("nothing was checked");
    };
    assert_eq!(versions.len(), keys.len());
    for (key, version) in keys.iter().zip(versions) {
        assert_eq!(Some(subject.present(key).await.version), version);
    }
}

pub async fn a_failed_check_among_several_leaves_nothing(subject: Subject) {
    let (held, new, old) = (key("held"), key("new"), key("old"));
    let version = subject.put(&held, put("1")).await.version;
    subject.put(&old, put("2")).await;
    let commit = Commit::new()
        .check(held.clone(), Expect::Version(version))
        .check(key("other"), Expect::Absent)
        .check(old.clone(), Expect::Absent)
        .put(new, put("3"))
        .put(held, put("4"))
        .delete(old);
    if !subject.capabilities().compare {
        return subject.assert_refused(commit, ErrorKind::Unsupported).await;
    }
    if subject.limits().commit_keys_max < 4 {
        return subject.assert_refused(commit, ErrorKind::LimitExceeded).await;
    }
    let before = subject.contents().await;
    let outcome = subject.commit(commit).await;
    assert_eq!(outcome, Outcome::Conflicted { failed: vec![2] });
    assert_eq!(subject.contents().await, before);
}

pub async fn a_number_that_cannot_be_added_to_leaves_nothing(subject: Subject) {
    let (number, text) = (key("number"), key("text"));
    subject.put(&number, put("1")).await;
    subject.put(&text, put("\"one\"")).await;
    let commit = Commit::new().put(key("new"), put("2")).add(number, 1).add(text.clone(), 1);
    if !subject.capabilities().add {
        return subject.assert_refused(commit, ErrorKind::Unsupported).await;
    }
    if subject.limits().commit_keys_max < 3 {
        return subject.assert_refused(commit, ErrorKind::LimitExceeded).await;
    }
    subject.assert_refused(commit, ErrorKind::Invalid).await;
    let last_too = Commit::new().add(text, 1).delete(key("number"));
    subject.assert_refused(last_too, ErrorKind::Invalid).await;
}

pub async fn an_empty_commit_is_refused(subject: Subject) {
    subject.assert_refused(Commit::new(), ErrorKind::Invalid).await;
}

pub async fn a_key_written_twice_is_refused(subject: Subject) {
    let twice = key("twice");
    subject.put(&twice, put("1")).await;
    let once = Commit::new().put(twice.clone(), put("2"));
    for commit in [
        once.clone().put(twice.clone(), put("3")),
        once.clone().delete(twice.clone()),
        Commit::new().delete(twice.clone()).delete(twice.clone()),
    ] {
        subject.assert_refused(commit, ErrorKind::Invalid).await;
    }
    let added = once.add(twice, 1);
    let kind = if subject.capabilities().add { ErrorKind::Invalid } else { ErrorKind::Unsupported };
    subject.assert_refused(added, kind).await;
}

pub async fn a_key_checked_twice_is_refused(subject: Subject) {
    let twice = key("twice");
    let commit = Commit::new()
        .check(twice.clone(), Expect::Absent)
        .check(twice.clone(), Expect::Version(Version::from(1)))
        .put(twice, put("1"));
    let kind =
        if subject.capabilities().compare { ErrorKind::Invalid } else { ErrorKind::Unsupported };
    subject.assert_refused(commit, kind).await;
}

pub async fn a_deleted_key_may_be_put_again_at_once(subject: Subject) {
    let key = key("again");
    for n in 0..5 {
        subject.put(&key, put(&n.to_string())).await;
        assert_eq!(subject.present(&key).await.value.as_integer(), Some(n));
        subject.delete(&key).await;
        subject.assert_absent(&key).await;
    }
}
