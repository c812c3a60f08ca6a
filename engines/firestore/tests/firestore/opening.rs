//! Opening stores, and places that are none.

use keyward_engine::{ErrorKind, SystemClock};
use keyward_firestore::Firestore;
use serde_json::json;

use crate::emulator::{key, put, with_fresh};

#[test]
fn a_store_exists_from_when_it_is_opened_on() {
    with_fresh(async |fresh| {
        assert!(Firestore::open_existing(fresh.options()).await.unwrap().is_none());
        assert_eq!(fresh.fields("keyward").await, None, "looking makes nothing");
        let store = fresh.store(SystemClock).await;
        assert_eq!(
            fresh.fields("keyward").await,
            Some(json!({ "format": { "integerValue": "1" } }))
        );
        assert!(Firestore::open_existing(fresh.options()).await.unwrap().is_some());
        assert_eq!(store.stats().await.unwrap().entries, 0);
    });
}

#[test]
fn a_store_of_a_later_format_is_refused() {
    with_fresh(async |fresh| {
        fresh.set("keyward", json!({ "format": { "integerValue": "2" } })).await;
        for opened in [
            Firestore::open(fresh.options()).await.map(drop),
            Firestore::open_existing(fresh.options()).await.map(drop),
        ] {
            let error = opened.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misplaced);
            assert!(error.message().contains("format 2") && error.advice().is_some(), "{error}");
        }
    });
}

#[test]
fn stores_in_other_collections_are_apart() {
    with_fresh(async |fresh| {
        let mut below = fresh.options();
        below.collection = ["entries", "=a", "entries"].map(str::to_owned).to_vec();
        let mut beside = fresh.options();
        beside.collection = vec!["a b/c%20é".replace('/', "-")];
        let mut elsewhere = fresh.options();
        elsewhere.database = "other".to_owned();
        let mut stores = vec![fresh.store(SystemClock).await];
        for options in [below, beside, elsewhere] {
            stores.push(keyward_engine::Store::new(Firestore::open(options).await.unwrap()));
        }
        for (n, store) in stores.iter().enumerate() {
            store.put(key("a"), put(&n.to_string())).await.unwrap();
            store.put(key(&format!("b:{n}")), put("1")).await.unwrap();
        }
        for (n, store) in stores.iter().enumerate() {
            assert_eq!(
                store.get(&key("a")).await.unwrap().unwrap().value.as_integer(),
                Some(n as i64)
            );
            let page =
                store.scan(&keyward_engine::Scan::new(keyward_key::KeyRange::all())).await.unwrap();
            let keys: Vec<_> = page.rows.into_iter().map(|row| row.key).collect();
            assert_eq!(keys, [key("a"), key(&format!("b:{n}"))]);
            assert_eq!(store.stats().await.unwrap().entries, 2);
        }
    });
}

#[test]
fn an_address_without_firestore_is_told() {
    with_fresh(async |fresh| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = listener.local_addr().unwrap();
        drop(listener);
        let mut options = fresh.options_through(nobody);
        options.http.retry_budget = std::time::Duration::from_millis(100);
        let error = Firestore::open(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("cannot reach Firestore"), "{error}");
    });
}
