//! What is put comes back.

use keyward_engine::{Commit, Expiry, Json};
use keyward_key::Prefix;

use super::{json, key, put};
use crate::subject::Subject;

pub async fn values_come_back_byte_for_byte(subject: Subject) {
    let nested = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    let texts = [
        "true",
        "false",
        "0",
        "-1",
        "\"\"",
        "{}",
        "[]",
        "[[],{},\"\",0,null]",
        r#"{"b":1,"a":{"c":[1,2,{"d":null}]}}"#,
        r#"{"":0}"#,
        r#""학칙 é e\u0301 \u0000 \ud83d\ude00 😀 \" \\ \/ \b\f\n\r\t""#,
        "\"\u{7f}\u{80}\u{2028}\u{fffd}\u{10ffff}\"",
        nested.as_str(),
    ];
    for (n, text) in texts.into_iter().enumerate() {
        let key = key(&format!("value:{n}"));
        let entry = subject.put(&key, put(text)).await;
        assert_eq!(entry.value.as_str(), text);
        assert_eq!(entry.metadata, None);
        assert_eq!(entry.expires, None);
    }
}

pub async fn null_is_a_value_and_not_absence(subject: Subject) {
    let key = key("nothing");
    subject.assert_absent(&key).await;
    assert_eq!(subject.put(&key, put("null")).await.value.as_str(), "null", "null is there");
    assert_eq!(subject.keys(keyward_key::KeyRange::all()).await, [key], "null is in scans");
}

pub async fn numbers_keep_their_digits(subject: Subject) {
    for text in [
        "12345678901234567890123456789012345678901234567890",
        "1.0",
        "1.10",
        "-0",
        "-0.0",
        "1e5",
        "1E+5",
        "1e400",
        "0.1000000000000000055511151231257827021181583404541015625",
        "9007199254740993",
        "18446744073709551616",
    ] {
        let entry = subject.put(&key("number"), put(text)).await;
        assert_eq!(entry.value.as_str(), text);
    }
}

pub async fn metadata_comes_back_beside_the_value(subject: Subject) {
    for (n, text) in
        ["{}", r#"{"type":"note","size":1.50}"#, r#"{"학":"é","deep":{"a":[1,{"b":null}]}}"#]
            .into_iter()
            .enumerate()
    {
        let key = key(&format!("described:{n}"));
        let entry = subject.put(&key, put("1").with_metadata(json(text))).await;
        assert_eq!(entry.value.as_str(), "1");
        assert_eq!(entry.metadata.as_ref().map(Json::as_str), Some(text));
    }
    let plain = key("plain");
    assert_eq!(subject.put(&plain, put("1")).await.metadata, None);
}

pub async fn a_put_replaces_value_metadata_and_expiry_wholly(subject: Subject) {
    let key = key("replaced");
    let mut first = put("1").with_metadata(json(r#"{"a":1}"#));
    if let Some(ttl) = subject.ttl() {
        first = first.expiring(Expiry::After(ttl));
    }
    let before = subject.put(&key, first).await;
    assert_eq!(before.expires.is_some(), subject.ttl().is_some());

    let after = subject.put(&key, put("2")).await;
    assert_eq!(after.value.as_str(), "2");
    assert_eq!(after.metadata, None, "the old metadata is gone");
    assert_eq!(after.expires, None, "the old end is gone");

    let again = subject.put(&key, put("3").with_metadata(json(r#"{"b":2}"#))).await;
    assert_eq!(again.metadata.as_ref().map(Json::as_str), Some(r#"{"b":2}"#));
}

pub async fn a_deleted_key_is_absent_and_deleting_again_changes_nothing(subject: Subject) {
    let (gone, kept) = (key("list:gone"), key("list:kept"));
    subject.put(&gone, put("1")).await;
    subject.put(&kept, put("2")).await;
    subject.delete(&gone).await;
    subject.assert_absent(&gone).await;

    let before = subject.contents().await;
    for _ in 0..2 {
        subject.delete(&gone).await;
        subject.delete(&key("never:there")).await;
    }
    assert_eq!(subject.contents().await, before);
}

pub async fn a_key_its_children_and_its_neighbours_live_apart(subject: Subject) {
    let names = ["a", "a:", "a:b", "a:b:c", "ab", "a%3Ab", ":a"];
    let keys = names.map(key);
    for (key, name) in keys.iter().zip(names) {
        subject.put(key, put(&Json::from_value(name).unwrap().to_string())).await;
    }
    for (key, name) in keys.iter().zip(names) {
        let value = subject.present(key).await.value;
        assert_eq!(value, Json::from_value(name).unwrap());
    }
    subject.delete(&keys[0]).await;
    subject.assert_absent(&keys[0]).await;
    for key in &keys[1..] {
        subject.present(key).await;
    }
    let below = keyward_key::KeyRange::under(&Prefix::parse("a").unwrap());
    assert_eq!(subject.keys(below).await, keys[1..4]);
}

pub async fn odd_keys_come_back_as_they_are(subject: Subject) {
    let odd = super::odd_keys();
    for key in &odd {
        subject.assert_absent(key).await;
        let text = Json::from_value(&key.to_string()).unwrap();
        subject.put(key, keyward_engine::Put::new(text)).await;
    }
    for key in &odd {
        let value = subject.present(key).await.value;
        assert_eq!(value, Json::from_value(&key.to_string()).unwrap());
    }
    let mut sorted = odd.clone();
    sorted.sort();
    assert_eq!(subject.keys(keyward_key::KeyRange::all()).await, sorted);

    for (n, key) in odd.iter().enumerate() {
        subject.delete(key).await;
        subject.assert_absent(key).await;
        let left = subject.keys(keyward_key::KeyRange::all()).await;
        assert_eq!(left.len(), odd.len() - n - 1, "only {key} went");
    }
}

pub async fn one_commit_may_put_and_delete(subject: Subject) {
    let (old, new) = (key("old"), key("new"));
    subject.put(&old, put("1")).await;
    let moved = Commit::new().delete(old.clone()).put(new.clone(), put("1"));
    if subject.limits().commit_keys_max < 2 {
        let kind = keyward_engine::ErrorKind::LimitExceeded;
        return subject.assert_refused(moved, kind).await;
    }
    assert!(subject.commit(moved).await.is_applied());
    subject.assert_absent(&old).await;
    subject.present(&new).await;
}
