//! Listings, which Forge answers late, by the beginning of names only.

use std::collections::BTreeSet;
use std::time::Duration;

use keyward_engine::{Cursor, ErrorKind, Scan, Store};
use keyward_key::{KeyRange, Prefix};
use keyward_testkit::TestClock;
use serde_json::json;

use crate::installation::{Installation, OnTestClock, key, put};

/// All keys of a range in pages of so many, and how many pages there were.
async fn pages(store: &Store, range: KeyRange, limit: usize) -> (BTreeSet<String>, usize) {
    let mut scan = Scan::new(range).limit(limit);
    let (mut found, mut pages) = (BTreeSet::new(), 0);
    loop {
        let page = store.scan(&scan).await.unwrap();
        assert!(page.rows.len() <= limit);
        pages += 1;
        for row in page.rows {
            assert!(found.insert(row.key.to_string()), "{} came twice", row.key);
        }
        let Some(next) = page.next else { return (found, pages) };
        scan.after = Some(next);
    }
}

#[tokio::test]
async fn reads_are_current_while_listings_are_late() {
    let (installation, clock) = (Installation::new(), TestClock::new());
    let lag = Duration::from_secs(60);
    installation.control(json!({"lag": {"batch": 0, "query": lag.as_millis() as u64}})).await;
    let store =
        Store::new(OnTestClock::open(&installation, installation.options(), clock.clone()).await);
    let listed = async || {
        let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
        let rows = page.rows.into_iter();
        rows.map(|row| (row.key.to_string(), row.entry.unwrap().value.to_string()))
            .collect::<Vec<_>>()
    };
    for name in ["kept", "gone"] {
        store.put(key(name), put("1")).await.unwrap();
        assert!(store.get(&key(name)).await.unwrap().is_some(), "seen at once");
    }
    assert_eq!(listed().await, [], "not listed yet");
    clock.advance(lag);
    assert_eq!(listed().await.len(), 2);
    store.put(key("kept"), put("2")).await.unwrap();
    store.delete(key("gone")).await.unwrap();
    let expected = ("kept".to_owned(), "2".to_owned());
    assert_eq!(listed().await, [expected], "the entries that are listed are current");
}

#[tokio::test]
async fn keys_with_plain_and_with_encoded_names_are_listed_together() {
    let installation = Installation::new();
    let store = installation.store().await;
    let mut all = BTreeSet::new();
    for n in 0..60 {
        for name in [format!("user:7:{n}"), format!("user:7:학{n}"), format!("user:70:{n}")] {
            store.put(key(&name), put("1")).await.unwrap();
            all.insert(name);
        }
    }
    for limit in [1, 7, 100] {
        let (found, _) = pages(&store, KeyRange::all(), limit).await;
        assert!(found == all, "by {limit}");
        let below = KeyRange::under(&Prefix::parse("user:7").unwrap());
        let (found, _) = pages(&store, below, limit).await;
        let expected: BTreeSet<String> =
            all.iter().filter(|name| name.starts_with("user:7:")).cloned().collect();
        assert!(found == expected, "by {limit}: {found:?}");
    }
    let encoded = KeyRange::segment_prefix(&Prefix::parse("user:7").unwrap(), "학1");
    let (found, _) = pages(&store, encoded, 100).await;
    assert_eq!(found.len(), 11, "{found:?}");
}

#[tokio::test]
async fn listing_everything_does_not_crawl_through_sidecars() {
    let installation = Installation::new();
    let store = installation.store().await;
    for n in 0..300 {
        store.put(key(&format!("row:{n}")), put("1")).await.unwrap();
    }
    let (found, pages) = pages(&store, KeyRange::all(), 10).await;
    assert_eq!(found.len(), 300);
    assert!(pages <= 32, "{pages} pages");
}

#[tokio::test]
async fn a_cursor_of_another_store_is_refused_and_reaches_nothing() {
    let installation = Installation::new();
    let store = installation.store().await;
    for n in 0..3 {
        store.put(key(&format!("a:{n}")), put("1")).await.unwrap();
        store.put(key(&format!("b:{n}")), put("1")).await.unwrap();
    }
    let under = |text: &str| Scan::new(KeyRange::under(&Prefix::parse(text).unwrap())).limit(1);
    let of_b = store.scan(&under("b")).await.unwrap().next;
    for cursor in [Some(Cursor::new("zzz")), Some(Cursor::new("pzzz")), of_b] {
        let error = store.scan(&under("a").after(cursor)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}
