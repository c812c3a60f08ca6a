//! Expired is absent: everywhere, at once.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{
    Commit, ErrorKind, Expect, Expiry, ExpirySupport, List, Listed, Outcome, Put, Scan,
};
use keyward_key::{Key, KeyRange, Prefix};

use super::{json, key, put};
use crate::subject::Subject;

/// Puts an entry that lives so long, and gives its end.
pub(super) async fn put_for(subject: &Subject, key: &Key, put: Put, ttl: Duration) -> Timestamp {
    let entry = subject.put(key, put.expiring(Expiry::After(ttl))).await;
    entry.expires.expect("the end is told")
}

/// What an engine whose entries cannot expire must say instead.
pub(super) async fn assert_refused(subject: &Subject) {
    subject.put(&key("held"), put("1")).await;
    for expiry in [
        Expiry::After(Duration::from_secs(3_600)),
        Expiry::At(subject.now() + Duration::from_secs(3_600)),
    ] {
        for text in ["held", "absent"] {
            let commit = Commit::new().put(key(text), put("2").expiring(expiry));
            subject.assert_refused(commit, ErrorKind::Unsupported).await;
        }
    }
}

async fn list(subject: &Subject) -> Vec<Listed> {
    let list = List::new(Prefix::all());
    subject.store.list(&list).await.unwrap().items
}

pub async fn an_entry_is_absent_exactly_from_its_end_on(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return assert_refused(&subject).await;
    };
    let (ends, stays) = (key("a:ends"), key("a:stays"));
    subject.put(&stays, put("1")).await;
    let before = subject.now();
    let end = put_for(&subject, &ends, put("2"), ttl).await;
    if subject.owns_time() {
        let ExpirySupport::Supported { granularity, .. } = subject.capabilities().expiry else {
            unreachable!("it has a time to live");
        };
        assert!(end >= before + ttl, "never before its time");
        assert!(end < before + ttl + granularity, "only rounded up");
    }

    subject.pass_to_just_before(end).await;
    assert_eq!(subject.present(&ends).await.expires, Some(end));
    assert_eq!(subject.keys(KeyRange::all()).await, [ends.clone(), stays.clone()]);

    subject.pass_to(end).await;
    subject.assert_absent(&ends).await;
    let both = [ends.clone(), stays.clone()];
    let entries = subject.store.get_many(&both).await.unwrap();
    assert_eq!(entries[0], None);
    assert!(entries[1].is_some());
    let rows = subject.rows(Scan::new(KeyRange::all())).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    let only_stays = std::slice::from_ref(&stays);
    assert_eq!(subject.keys(KeyRange::all()).await, only_stays);
    assert_eq!(subject.keys_descending(KeyRange::all()).await, only_stays);
    assert_eq!(subject.keys(KeyRange::exactly(&ends)).await, []);
    assert_eq!(list(&subject).await, [Listed::Key(stays)]);
}

pub async fn pages_skip_expired_rows_without_losing_others(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return assert_refused(&subject).await;
    };
    let name = |n: usize| key(&format!("row:{n:03}"));
    // Long runs of expired rows, longer than the pages.
    let stays = |n: usize| n.is_multiple_of(17);
    let puts = (0..100).map(|n| {
        let put = put("1");
        let put = if stays(n) { put } else { put.expiring(Expiry::After(ttl)) };
        (name(n), put)
    });
    subject.fill(puts).await;
    subject.pass(ttl + Duration::from_secs(1)).await;
    let expected: Vec<Key> = (0..100).filter(|&n| stays(n)).map(name).collect();
    for limit in 1..=7 {
        let rows = subject.rows(Scan::new(KeyRange::all()).limit(limit)).await;
        let mut found: Vec<Key> = rows.into_iter().map(|row| row.key).collect();
        found.sort();
        assert_eq!(found, expected, "by {limit}");
    }
    let mut down = subject.keys_descending(KeyRange::all()).await;
    down.reverse();
    assert_eq!(down, expected);
}

pub async fn an_expired_key_counts_as_absent_in_checks(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return assert_refused(&subject).await;
    };
    let key = key("slot");
    let end = put_for(&subject, &key, put("1"), ttl).await;
    let version = subject.present(&key).await.version;
    let create = Commit::new().check(key.clone(), Expect::Absent).put(key.clone(), put("2"));
    let change =
        Commit::new().check(key.clone(), Expect::Version(version)).put(key.clone(), put("3"));
    if !subject.capabilities().compare {
        subject.assert_refused(create, ErrorKind::Unsupported).await;
        return subject.assert_refused(change, ErrorKind::Unsupported).await;
    }
    subject.pass_to_just_before(end).await;
    let conflict = Outcome::Conflicted { failed: vec![0] };
    assert_eq!(subject.commit(create.clone()).await, conflict);
    subject.pass_to(end).await;
    assert_eq!(subject.commit(change).await, conflict);
    assert!(subject.commit(create).await.is_applied());
    let entry = subject.present(&key).await;
    assert_eq!((entry.value.as_str(), entry.expires), ("2", None));
}

pub async fn putting_again_sets_a_new_end_or_none(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return assert_refused(&subject).await;
    };
    let (longer, forever) = (key("longer"), key("forever"));
    let first = put_for(&subject, &forever, put("1"), ttl).await;
    let first = first.max(put_for(&subject, &longer, put("1"), ttl).await);
    assert_eq!(subject.put(&forever, put("2")).await.expires, None);
    let second = put_for(&subject, &longer, put("2"), ttl * 3).await;
    assert!(second > first);

    subject.pass_to(first).await;
    subject.present(&forever).await;
    subject.present(&longer).await;
    subject.pass_to(second).await;
    subject.assert_absent(&longer).await;
    subject.present(&forever).await;
}

pub async fn an_end_given_as_a_moment_is_kept(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return assert_refused(&subject).await;
    };
    let key = key("slot");
    let end = put_for(&subject, &key, put("1"), ttl).await;
    let kept = put("2").with_metadata(json("{}")).expiring(Expiry::At(end));
    assert_eq!(subject.put(&key, kept).await.expires, Some(end));
    subject.pass_to(end).await;
    subject.assert_absent(&key).await;
}

pub async fn an_end_that_has_passed_is_no_entry_at_all(subject: Subject) {
    if subject.ttl().is_none() {
        return assert_refused(&subject).await;
    }
    let key = key("slot");
    subject.put(&key, put("1")).await;
    let past = Expiry::At(subject.now() - Duration::from_secs(3_600));
    let commit = Commit::new().put(key.clone(), put("2").expiring(past));
    assert!(subject.commit(commit).await.is_applied());
    subject.assert_absent(&key).await;
    assert_eq!(subject.keys(KeyRange::all()).await, []);
}

pub async fn an_end_beyond_the_calendar_never_comes(subject: Subject) {
    if subject.ttl().is_none() {
        return assert_refused(&subject).await;
    }
    let key = key("slot");
    let end = put_for(&subject, &key, put("1"), Duration::MAX).await;
    assert!(end > subject.now() + Duration::from_secs(100 * 365 * 86_400));
    subject.pass(Duration::from_secs(1)).await;
    subject.present(&key).await;
}

pub async fn a_time_to_live_of_zero_or_below_the_least_is_refused(subject: Subject) {
    let ExpirySupport::Supported { ttl_min, .. } = subject.capabilities().expiry else {
        return assert_refused(&subject).await;
    };
    let key = key("slot");
    let living = |ttl| Commit::new().put(key.clone(), put("1").expiring(Expiry::After(ttl)));
    subject.assert_refused(living(Duration::ZERO), ErrorKind::Invalid).await;
    let too_short = ttl_min.saturating_sub(Duration::from_nanos(1));
    if !too_short.is_zero() {
        subject.assert_refused(living(too_short), ErrorKind::Unsupported).await;
    }
    // Not settled: the shortest life may be over before late readers would see it.
    let shortest = subject.store.commit(living(ttl_min)).await.unwrap();
    assert!(shortest.is_applied());
    subject.pass(ttl_min + Duration::from_secs(1)).await;
    subject.settle().await;
    subject.assert_absent(&key).await;
}

pub async fn a_part_of_a_moment_counts_as_a_whole_one(subject: Subject) {
    let Some(ttl) = subject.ttl() else {
        return assert_refused(&subject).await;
    };
    // Between two milliseconds, which is as fine as any engine stores.
    subject.pass(Duration::from_micros(300)).await;
    let key = key("slot");
    let before = subject.now();
    let end = put_for(&subject, &key, put("1"), ttl).await;
    if subject.owns_time() {
        assert!(end >= before + ttl, "never before its time");
        subject.pass_to(before + ttl - Duration::from_micros(1)).await;
        subject.present(&key).await;
    }
    subject.pass_to(end).await;
    subject.assert_absent(&key).await;
}
