//! Checks hold exactly when they should.

use keyward_engine::{Commit, ErrorKind, Expect, Outcome, Version};
use keyward_key::Key;

use super::{key, put};
use crate::subject::Subject;

/// Whether this engine can check; if not, it must refuse to.
async fn can_check(subject: &Subject) -> bool {
    if subject.capabilities().compare {
        return true;
    }
    let held = key("held");
    let version = subject.put(&held, put("1")).await.version;
    for commit in [
        Commit::new().check(key("other"), Expect::Absent),
        Commit::new().check(held.clone(), Expect::Version(version)).put(held.clone(), put("2")),
        Commit::new().check(held.clone(), Expect::Absent).delete(held),
    ] {
        subject.assert_refused(commit, ErrorKind::Unsupported).await;
    }
    false
}

async fn holds(subject: &Subject, key: &Key, expect: Expect) -> bool {
    let before = subject.contents().await;
    let outcome = subject.commit(Commit::new().check(key.clone(), expect)).await;
    assert!(subject.contents().await == before, "checks alone change nothing");
    match outcome {
        Outcome::Applied { revision, versions } => {
            assert_eq!(revision, before.1, "the revision the store was at");
            assert_eq!(versions, []);
            true
        }
        Outcome::Conflicted { failed } => {
            assert_eq!(failed, [0]);
            false
        }
    }
}

pub async fn absent_holds_only_while_there_is_no_entry(subject: Subject) {
    if !can_check(&subject).await {
        return;
    }
    let key = key("slot");
    assert!(holds(&subject, &key, Expect::Absent).await);
    subject.put(&key, put("null")).await;
    assert!(!holds(&subject, &key, Expect::Absent).await);
    assert!(holds(&subject, &key.child("below"), Expect::Absent).await);
    subject.delete(&key).await;
    assert!(holds(&subject, &key, Expect::Absent).await);
}

pub async fn a_version_holds_only_until_the_next_write(subject: Subject) {
    if !can_check(&subject).await {
        return;
    }
    let key = key("slot");
    let first = Expect::Version(subject.put(&key, put("1")).await.version);
    assert!(holds(&subject, &key, first.clone()).await);
    let second = Expect::Version(subject.put(&key, put("1")).await.version);
    assert!(!holds(&subject, &key, first.clone()).await);
    assert!(holds(&subject, &key, second.clone()).await);
    subject.delete(&key).await;
    assert!(!holds(&subject, &key, second.clone()).await);
    subject.put(&key, put("1")).await;
    assert!(!holds(&subject, &key, first).await);
    assert!(!holds(&subject, &key, second).await);
}

pub async fn a_version_is_that_of_its_key_alone(subject: Subject) {
    if !can_check(&subject).await {
        return;
    }
    let (one, other) = (key("one"), key("other"));
    let version = Expect::Version(subject.put(&one, put("1")).await.version);
    subject.put(&other, put("1")).await;
    assert!(holds(&subject, &one, version.clone()).await, "a write elsewhere changes nothing here");
    assert!(!holds(&subject, &other, version).await);
}

pub async fn a_version_taken_through_text_still_holds(subject: Subject) {
    if !can_check(&subject).await {
        return;
    }
    let key = key("slot");
    let version = subject.put(&key, put("1")).await.version;
    let read_back = Version::parse(&version.to_string());
    assert_eq!(read_back, version);
    assert!(holds(&subject, &key, Expect::Version(read_back)).await);
}

pub async fn a_foreign_version_never_holds(subject: Subject) {
    if !can_check(&subject).await {
        return;
    }
    let (present, absent) = (key("present"), key("absent"));
    subject.put(&present, put("1")).await;
    for text in ["0", "18446744073709551615", "", "no version", "1-a9f2", "학"] {
        let foreign = Expect::Version(Version::parse(text));
        assert!(!holds(&subject, &present, foreign.clone()).await, "{text}");
        assert!(!holds(&subject, &absent, foreign).await, "{text}");
    }
}

pub async fn a_swap_succeeds_once_for_each_version(subject: Subject) {
    if !can_check(&subject).await {
        return;
    }
    let key = key("slot");
    let create = Commit::new().check(key.clone(), Expect::Absent).put(key.clone(), put("1"));
    assert!(subject.commit(create.clone()).await.is_applied());
    assert!(!subject.commit(create).await.is_applied());

    let version = subject.present(&key).await.version;
    let swap = |value| {
        Commit::new()
            .check(key.clone(), Expect::Version(version.clone()))
            .put(key.clone(), put(value))
    };
    assert!(subject.commit(swap("2")).await.is_applied());
    let again = subject.commit(swap("3")).await;
    assert_eq!(again, Outcome::Conflicted { failed: vec![0] });
    let entry = subject.present(&key).await;
    assert_eq!(entry.value.as_str(), "2");

    let remove =
        |version| Commit::new().check(key.clone(), Expect::Version(version)).delete(key.clone());
    assert!(!subject.commit(remove(version.clone())).await.is_applied());
    assert!(subject.commit(remove(entry.version)).await.is_applied());
    subject.assert_absent(&key).await;
}

pub async fn exactly_the_failed_checks_are_named(subject: Subject) {
    if !can_check(&subject).await {
        return;
    }
    let keys: Vec<Key> = (0..6).map(|n| key(&format!("slot:{n}"))).collect();
    let mut commit = Commit::new();
    for (n, key) in keys.iter().enumerate() {
        let expect = match n {
            // Right: 0 and 3; the others are wrong in different ways.
            0 => Expect::Version(subject.put(key, put("1")).await.version),
            1 => {
                let old = subject.put(key, put("1")).await.version;
                subject.put(key, put("2")).await;
                Expect::Version(old)
            }
            2 => {
                subject.put(key, put("1")).await;
                Expect::Absent
            }
            3 => Expect::Absent,
            4 => Expect::Version(Version::from(1)),
            _ => Expect::Version(Version::parse("text")),
        };
        commit = commit.check(key.clone(), expect);
    }
    commit = commit.put(keys[0].clone(), put("3"));
    if subject.limits().commit_keys_max < keys.len() {
        return subject.assert_refused(commit, ErrorKind::LimitExceeded).await;
    }
    let before = subject.contents().await;
    let outcome = subject.commit(commit).await;
    let failed = vec![1, 2, 4, 5];
    assert_eq!(outcome, Outcome::Conflicted { failed });
    assert_eq!(subject.contents().await, before);
}

pub async fn a_check_may_guard_a_write_elsewhere(subject: Subject) {
    if !can_check(&subject).await {
        return;
    }
    let (guard, guarded) = (key("guard"), key("guarded"));
    let version = subject.put(&guard, put("1")).await.version;
    let commit = |value| {
        Commit::new()
            .check(guard.clone(), Expect::Version(version.clone()))
            .put(guarded.clone(), put(value))
    };
    if subject.limits().commit_keys_max < 2 {
        return subject.assert_refused(commit("1"), ErrorKind::LimitExceeded).await;
    }
    assert!(subject.commit(commit("1")).await.is_applied());
    assert!(
        subject.commit(commit("2")).await.is_applied(),
        "checking a key does not change its version"
    );
    subject.put(&guard, put("2")).await;
    assert!(!subject.commit(commit("3")).await.is_applied());
    assert_eq!(subject.present(&guarded).await.value.as_str(), "2");
}
