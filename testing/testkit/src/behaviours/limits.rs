//! Everything up to a limit works; one more is refused.

use std::slice;

use keyward_engine::{Commit, ErrorKind, Expect, Json, Limits, List, Listed, Order, Put, Scan};
use keyward_key::{Key, KeyRange, Prefix};

use super::{json, key, put};
use crate::subject::Subject;

/// JSON text of exactly so many bytes.
fn text(bytes: usize) -> Json {
    Json::from_stored(format!("\"{}\"", "x".repeat(bytes - 2)))
}

/// An object of exactly so many bytes.
fn object(bytes: usize) -> Json {
    let frame = r#"{"x":""}"#.len();
    Json::from_stored(format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes - frame)))
}

/// Keys whose encoding has exactly so many bytes, each in another shape.
fn keys_of(bytes: usize) -> Vec<Key> {
    let wide = "x".repeat(bytes);
    let han = format!("{}{}", "학".repeat(bytes / 3), "x".repeat(bytes % 3));
    // Each of these is escaped to two bytes.
    let escaped = format!("{}{}", "\0".repeat(bytes / 2), "x".repeat(bytes % 2));
    let deep = vec![""; bytes + 1];
    let mixed = vec!["ab"; (bytes + 1) / 3];
    let rest = bytes - (mixed.len() * 3 - 1);
    let last = format!("ab{}", "x".repeat(rest));
    let mixed = [&mixed[1..], &[&last]].concat();
    let keys = vec![
        Key::from_segments([wide]).unwrap(),
        Key::from_segments([han]).unwrap(),
        Key::from_segments([escaped]).unwrap(),
        Key::from_segments(deep).unwrap(),
        Key::from_segments(mixed).unwrap(),
    ];
    for key in &keys {
        assert_eq!(key.as_bytes().len(), bytes);
    }
    keys
}

pub async fn the_longest_key_works_everywhere(subject: Subject) {
    let most = subject.limits().key_bytes_max;
    let mut keys = keys_of(most);
    keys.sort();
    for key in &keys {
        subject.put(key, put("1")).await;
    }
    let entries = subject.store.get_many(&keys).await.unwrap();
    assert!(entries.iter().all(Option::is_some));
    assert_eq!(subject.keys(KeyRange::all()).await, keys);
    let mut down = subject.keys_descending(KeyRange::all()).await;
    down.reverse();
    assert_eq!(down, keys);

    for key in &keys {
        // The bounds of these ranges are longer than any key.
        for range in [KeyRange::exactly(key), KeyRange::subtree(key)] {
            let only = slice::from_ref(key);
            assert_eq!(subject.keys(range.clone()).await, only);
            assert_eq!(subject.keys_descending(range).await, only);
        }
        assert_eq!(subject.keys(KeyRange::under(&Prefix::from(key))).await, []);
        if subject.capabilities().compare {
            let again = Commit::new()
                .check(key.clone(), Expect::Version(subject.present(key).await.version))
                .put(key.clone(), put("2"));
            assert!(subject.commit(again).await.is_applied());
        }
    }
    // Paging starts again right after such a key.
    let by_one = subject.rows(Scan::new(KeyRange::all()).limit(1)).await;
    assert_eq!(by_one.len(), keys.len());
    if subject.is_ordered() {
        for order in [Order::Ascending, Order::Descending] {
            let list = List::new(Prefix::all()).depth(1).limit(1).order(order);
            let items = super::listing::items(&subject, list).await;
            assert_eq!(items.len(), keys.len());
            let whole = items.iter().filter(|item| matches!(item, Listed::Key(_)));
            assert_eq!(whole.count(), 3, "three have one segment");
        }
    }
    for key in &keys {
        subject.delete(key).await;
        subject.assert_absent(key).await;
    }
}

pub async fn a_longer_key_is_refused(subject: Subject) {
    let limit = ErrorKind::LimitExceeded;
    for key in keys_of(subject.limits().key_bytes_max + 1) {
        let get = subject.store.get(&key).await.unwrap_err();
        assert_eq!(get.kind(), limit, "{get}");
        let keys = [super::key("a"), key.clone()];
        let many = subject.store.get_many(&keys).await.unwrap_err();
        assert_eq!(many.kind(), limit, "{many}");
        for commit in [Commit::new().put(key.clone(), put("1")), Commit::new().delete(key.clone())]
        {
            subject.assert_refused(commit, limit).await;
        }
        if subject.capabilities().compare {
            let check = Commit::new().check(key.clone(), Expect::Absent);
            subject.assert_refused(check, limit).await;
        }
        if subject.capabilities().add {
            let add = Commit::new().add(key, 1);
            subject.assert_refused(add, limit).await;
        }
    }
}

pub async fn a_range_may_be_longer_than_any_key(subject: Subject) {
    let near = Key::from_segments(["x".repeat(subject.limits().key_bytes_max)]).unwrap();
    subject.put(&near, put("1")).await;
    for far in keys_of(subject.limits().key_bytes_max * 2 + 100) {
        for range in
            [KeyRange::exactly(&far), KeyRange::subtree(&far), KeyRange::under(&Prefix::from(&far))]
        {
            assert_eq!(subject.keys(range.clone()).await, []);
            assert_eq!(subject.keys_descending(range).await, []);
        }
        let mut found = subject.keys(KeyRange::all().after(&far)).await;
        found.extend(subject.keys(KeyRange::all().before(&far)).await);
        assert_eq!(found, slice::from_ref(&near), "on one side of it");
    }
}

pub async fn the_largest_value_works_and_a_larger_is_refused(subject: Subject) {
    let (key, most) = (key("large"), subject.limits().value_bytes_max);
    let large = text(most);
    let entry = subject.put(&key, Put::new(large.clone())).await;
    assert!(entry.value == large, "it came back as it was");
    let rows = subject.rows(Scan::new(KeyRange::all())).await;
    assert!(rows[0].entry.as_ref().is_some_and(|e| e.value == large));

    let larger = Commit::new().put(key.clone(), Put::new(text(most + 1)));
    subject.assert_refused(larger, ErrorKind::LimitExceeded).await;
    subject.put(&key, put("1")).await;
    assert_eq!(subject.present(&key).await.value.as_str(), "1");
}

pub async fn values_of_every_size_around_a_page_come_back(subject: Subject) {
    // Databases change their layout around the size of a page.
    let key = key("sized");
    let around = [1_000, 2_000, 4_096, 8_192, 16_384, 65_536];
    for size in around.into_iter().flat_map(|size| size - 20..size + 4) {
        let value = text(size);
        subject.store.put(key.clone(), Put::new(value.clone())).await.unwrap();
        subject.settle().await;
        assert!(subject.present(&key).await.value == value, "{size} bytes");
    }
}

pub async fn the_largest_metadata_works_and_larger_is_refused(subject: Subject) {
    let (key, most) = (key("described"), subject.limits().metadata_bytes_max);
    let large = object(most);
    let entry = subject.put(&key, put("1").with_metadata(large.clone())).await;
    assert!(entry.metadata.as_ref() == Some(&large));
    let larger = Commit::new().put(key, put("1").with_metadata(object(most + 1)));
    subject.assert_refused(larger, ErrorKind::LimitExceeded).await;
}

pub async fn metadata_that_is_no_object_is_refused(subject: Subject) {
    for text in ["null", "1", "\"x\"", "[]", "[{}]"] {
        let commit = Commit::new().put(key("described"), put("1").with_metadata(json(text)));
        subject.assert_refused(commit, ErrorKind::Invalid).await;
    }
}

pub async fn the_most_keys_in_a_commit_work_and_more_are_refused(subject: Subject) {
    let most = subject.limits().commit_keys_max;
    let many = |count: usize| {
        (0..count).fold(Commit::new(), |commit, n| commit.put(key(&format!("many:{n}")), put("1")))
    };
    assert!(subject.commit(many(most)).await.is_applied());
    assert_eq!(subject.keys(KeyRange::all()).await.len(), most);
    subject.assert_refused(many(most + 1), ErrorKind::LimitExceeded).await;
    if subject.capabilities().compare {
        // A checked key counts; one that is also written counts once.
        let checked = many(most).check(key("other"), Expect::Absent);
        subject.assert_refused(checked, ErrorKind::LimitExceeded).await;
        let version = subject.present(&key("many:0")).await.version;
        let same = many(most).check(key("many:0"), Expect::Version(version));
        assert!(subject.commit(same).await.is_applied());
    }
}

/// Puts of exactly so many bytes together, if they fit the other limits.
fn commit_of(bytes: usize, limits: &Limits) -> Option<Commit> {
    let key = |n: usize| key(&format!("large:{n:06}"));
    let frame = key(0).as_bytes().len();
    let count = bytes.div_ceil(frame + limits.value_bytes_max);
    if count > limits.commit_keys_max {
        return None;
    }
    let each = bytes / count - frame;
    let rest = bytes - count * (each + frame);
    let commit = (0..count).fold(Commit::new(), |commit, n| {
        let size = each + if n == 0 { rest } else { 0 };
        commit.put(key(n), Put::new(text(size)))
    });
    assert_eq!(commit.size(), bytes);
    Some(commit)
}

pub async fn the_largest_commit_works_and_a_larger_is_refused(subject: Subject) {
    let limits = *subject.limits();
    let limit = ErrorKind::LimitExceeded;
    let most = limits.commit_bytes_max;
    match (commit_of(most, &limits), commit_of(most + 1, &limits)) {
        (Some(largest), Some(larger)) => {
            let count = largest.writes.len();
            assert!(subject.commit(largest).await.is_applied());
            let found = subject.keys(KeyRange::all()).await.len();
            assert_eq!(found, count);
            let refused = subject.store.commit(larger).await.unwrap_err();
            assert_eq!(refused.kind(), limit, "{refused}");
        }
        // One key cannot be that large; a tighter limit of the store shows the same.
        _ => {
            let tight = Limits { commit_bytes_max: 1_000, ..limits };
            let store = subject.store.clone().with_limits(tight);
            let refused = store.commit(commit_of(1_001, &limits).unwrap()).await;
            assert_eq!(refused.unwrap_err().kind(), limit);
            let fits = store.commit(commit_of(1_000, &limits).unwrap()).await;
            assert!(fits.unwrap().is_applied());
        }
    }
}
