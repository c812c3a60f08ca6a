//! Documents of other programs in the same collection.

use std::time::Duration;

use keyward_engine::{Commit, ErrorKind, Expiry, Order, Scan};
use keyward_key::KeyRange;
use keyward_testkit::TestClock;
use serde_json::json;

use crate::emulator::{key, put, with_fresh};

#[test]
fn documents_of_others_are_neither_shown_nor_touched() {
    with_fresh(async |fresh| {
        let clock = TestClock::new();
        let store = fresh.store(clock.clone()).await;
        let ended = json!({ "timestampValue": "2020-01-01T00:00:00Z" });
        // Beside the ids of entries, and among them where no key has such an id.
        let others = ["!", "a", "<", ">", "~", "user:7", "=.", "=a\"", "=a\"z", "=~c"];
        for id in others {
            fresh.set(id, json!({ "key": { "stringValue": id }, "expires": ended })).await;
        }
        let keys: Vec<_> = (0..25).map(|n| key(&format!("a:{n:02}"))).collect();
        let ending = put("1").expiring(Expiry::After(Duration::from_secs(60)));
        for key in &keys {
            store.put(key.clone(), put("1")).await.unwrap();
            store.put(key.child("ends"), ending.clone()).await.unwrap();
        }
        clock.advance(Duration::from_secs(60));
        for order in [Order::Ascending, Order::Descending] {
            for limit in [1, 2, 7, 100] {
                let mut scan = Scan::new(KeyRange::all()).order(order).limit(limit);
                let mut found = Vec::new();
                loop {
                    let page = store.scan(&scan).await.unwrap();
                    found.extend(page.rows.into_iter().map(|row| row.key));
                    let Some(next) = page.next else { break };
                    scan.after = Some(next);
                }
                if order == Order::Descending {
                    found.reverse();
                }
                assert_eq!(found, keys, "{order:?} by {limit}");
            }
        }
        // What is reclaimed are expired entries, and nobody else's documents with an end.
        for n in 0..200 {
            store.put(key("busy"), put(&n.to_string())).await.unwrap();
            if store.stats().await.unwrap().entries == 26 + 4 {
                break;
            }
        }
        assert_eq!(store.stats().await.unwrap().entries, 26 + 4, "with the four among ours");
        for id in others {
            assert!(fresh.fields(id).await.is_some(), "{id}");
        }
    });
}

#[test]
fn an_entry_that_somebody_spoiled_is_named() {
    with_fresh(async |fresh| {
        let store = fresh.store(TestClock::new()).await;
        let mark = json!({ "stringValue": "1f" });
        for fields in [
            json!({}),
            json!({ "value": { "integerValue": "1" }, "commit": mark }),
            json!({ "value": { "stringValue": "1" } }),
            json!({ "value": { "stringValue": "1" }, "commit": { "stringValue": "x" } }),
            json!({ "value": { "stringValue": "1" }, "commit": mark, "expires": { "integerValue": "1" } }),
        ] {
            fresh.set("=slot", fields).await;
            let error = store.get(&key("slot")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.message().contains("\"=slot\""), "{error}");
        }
        // It can be replaced and removed.
        store.put(key("slot"), put("1")).await.unwrap();
        assert_eq!(store.get(&key("slot")).await.unwrap().unwrap().value.as_str(), "1");
        assert!(store.commit(Commit::new().delete(key("slot"))).await.unwrap().is_applied());
    });
}
