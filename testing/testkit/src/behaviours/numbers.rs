//! Adding to numbers.

use keyward_engine::{Commit, Entry, ErrorKind, Expect, Expiry, Outcome};
use keyward_key::Key;

use super::{json, key, put};
use crate::subject::Subject;

/// Whether this engine can add; if not, it must refuse to.
async fn can_add(subject: &Subject) -> bool {
    if subject.capabilities().add {
        return true;
    }
    let number = key("number");
    subject.put(&number, put("1")).await;
    for commit in [Commit::new().add(number, 1), Commit::new().add(key("absent"), 1)] {
        subject.assert_refused(commit, ErrorKind::Unsupported).await;
    }
    false
}

async fn added(subject: &Subject, key: &Key, amount: i64) -> Entry {
    let outcome = subject.commit(Commit::new().add(key.clone(), amount)).await;
    let entry = subject.present(key).await;
    match outcome {
        Outcome::Applied { versions, .. } => assert_eq!(versions, [Some(entry.version.clone())]),
        conflicted => panic!("{conflicted:?} without a check"),
    }
    entry
}

pub async fn adding_counts_from_zero_in_both_directions(subject: Subject) {
    if !can_add(&subject).await {
        return;
    }
    let number = key("number");
    for (amount, sum) in [(5, "5"), (-8, "-3"), (3, "0"), (0, "0"), (1, "1")] {
        assert_eq!(added(&subject, &number, amount).await.value.as_str(), sum);
    }
    let nothing = added(&subject, &key("nothing"), 0).await;
    assert_eq!(nothing.value.as_str(), "0", "adding zero makes a zero");
    let down = added(&subject, &key("down"), i64::MIN).await;
    assert_eq!(down.value.as_integer(), Some(i64::MIN));
}

pub async fn adding_keeps_metadata_and_expiry(subject: Subject) {
    if !can_add(&subject).await {
        return;
    }
    let number = key("number");
    let mut first = put("1").with_metadata(json(r#"{"unit":"m"}"#));
    if let Some(ttl) = subject.ttl() {
        first = first.expiring(Expiry::After(ttl));
    }
    let before = subject.put(&number, first).await;
    let after = added(&subject, &number, 1).await;
    assert_eq!(after.value.as_str(), "2");
    assert_eq!(after.metadata, before.metadata);
    assert_eq!(after.expires, before.expires);
    assert_ne!(after.version, before.version);
}

pub async fn adding_to_what_is_no_whole_number_is_refused(subject: Subject) {
    if !can_add(&subject).await {
        return;
    }
    let number = key("number");
    for text in [
        "null",
        "true",
        "\"1\"",
        "[1]",
        "{}",
        "1.0",
        "1e2",
        "9223372036854775808",
        "-9223372036854775809",
    ] {
        subject.put(&number, put(text)).await;
        let commit = Commit::new().add(number.clone(), 1);
        subject.assert_refused(commit, ErrorKind::Invalid).await;
    }
}

pub async fn a_sum_beyond_64_bits_is_refused(subject: Subject) {
    if !can_add(&subject).await {
        return;
    }
    let number = key("number");
    for (limit, step) in [(i64::MAX, 1), (i64::MIN, -1)] {
        subject.put(&number, put(&(limit - step).to_string())).await;
        let entry = added(&subject, &number, step).await;
        assert_eq!(entry.value.as_integer(), Some(limit), "the last that fits");
        let commit = Commit::new().add(number.clone(), step);
        subject.assert_refused(commit, ErrorKind::Invalid).await;
    }
}

pub async fn adding_to_an_expired_number_starts_from_zero(subject: Subject) {
    if !can_add(&subject).await {
        return;
    }
    let Some(ttl) = subject.ttl() else {
        return super::expiry::assert_refused(&subject).await;
    };
    let (number, text) = (key("number"), key("text"));
    let described = |value| put(value).with_metadata(json("{}"));
    let end = super::expiry::put_for(&subject, &number, described("40"), ttl).await;
    let text_end = super::expiry::put_for(&subject, &text, described("\"x\""), ttl).await;
    subject.pass_to(end.max(text_end)).await;
    for key in [number, text] {
        let entry = added(&subject, &key, 2).await;
        assert_eq!(entry.value.as_str(), "2");
        assert_eq!(entry.metadata, None);
        assert_eq!(entry.expires, None);
    }
}

pub async fn an_addition_may_be_checked_and_joined_with_other_writes(subject: Subject) {
    if !can_add(&subject).await {
        return;
    }
    let (number, note) = (key("number"), key("note"));
    let version = added(&subject, &number, 1).await.version;
    let commit = Commit::new()
        .check(number.clone(), Expect::Version(version))
        .put(note.clone(), put("1"))
        .add(number.clone(), 10);
    if !subject.capabilities().compare {
        return subject.assert_refused(commit, ErrorKind::Unsupported).await;
    }
    if subject.limits().commit_keys_max < 2 {
        return subject.assert_refused(commit, ErrorKind::LimitExceeded).await;
    }
    assert!(subject.commit(commit.clone()).await.is_applied());
    assert!(!subject.commit(commit).await.is_applied(), "only once");
    assert_eq!(subject.present(&number).await.value.as_str(), "11");
    subject.present(&note).await;
}
