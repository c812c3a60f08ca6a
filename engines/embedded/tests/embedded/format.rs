//! Stores of earlier formats stay readable: one file for each format that was ever released.

use std::fs;

use futures_util::StreamExt;
use keyward_engine::{ChangeKind, Entry, Event, Json, Revision, Scan, Store, Version};
use keyward_key::{Key, KeyRange};

use crate::child::{block_on, key, open, put};

/// Written by the first version of format 1: four commits that put `user:7:name`, then `학칙` and
/// `session:a%3Ab` together, then `counter` and `gone`, then deleted `gone`.
const FORMAT_1: &[u8] = include_bytes!("../fixtures/format-1.mdb");

#[test]
fn a_store_of_format_1_opens_with_everything_in_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("data.mdb"), FORMAT_1).unwrap();
    block_on(async {
        let store = open(directory.path());
        let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
        let found: Vec<(Key, Entry)> =
            page.rows.into_iter().map(|row| (row.key, row.entry.unwrap())).collect();
        assert_eq!(found, expected());

        let mut events = store.watch(KeyRange::all(), Some(Revision(2)));
        assert_eq!(events.next().await.unwrap().unwrap(), Event::Reached(Revision(2)));
        let Event::Changed { revision, changes } = events.next().await.unwrap().unwrap() else {
            panic!("the third commit comes next");
        };
        assert_eq!(revision, Revision(3));
        let kinds: Vec<_> = changes.iter().map(|change| (&change.key, change.kind)).collect();
        assert_eq!(kinds, [(&key("counter"), ChangeKind::Put), (&key("gone"), ChangeKind::Put)]);

        goes_on(&store).await;
    });
}

fn expected() -> Vec<(Key, Entry)> {
    let entry = |value: &str, metadata: Option<&str>, version: u64, expires: Option<&str>| Entry {
        value: Json::parse(value.to_owned()).unwrap(),
        metadata: metadata.map(|text| Json::parse(text.to_owned()).unwrap()),
        version: Version::from(version),
        expires: expires.map(|moment| moment.parse().unwrap()),
    };
    vec![
        (key("counter"), entry("42", None, 3, None)),
        (key("session:a%3Ab"), entry("null", None, 2, Some("9999-12-30T00:00:00.001Z"))),
        (key("user:7:name"), entry(r#""Ada""#, None, 1, None)),
        (
            key("학칙"),
            entry(r#"{"sha":"12345678901234567890"}"#, Some(r#"{"by":"sync"}"#), 2, None),
        ),
    ]
}

async fn goes_on(store: &Store) {
    let version = store.put(key("new"), put("1")).await.unwrap();
    assert_eq!(version, Version::from(5));
}
