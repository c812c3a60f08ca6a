//! Which rows an entry has in Forge, and what Forge refuses.

use std::time::Duration;

use keyward_engine::{ErrorKind, Expiry, Json, Put, Store};
use keyward_forge_kvs::{ForgeKvs, Sidecars};
use keyward_key::Key;
use serde_json::json;

use crate::installation::{Installation, key, put};

#[tokio::test]
async fn an_entry_has_its_value_under_its_own_name_and_a_sidecar() {
    let installation = Installation::new();
    let store = installation.store().await;
    let metadata = Json::parse(r#"{"size":1.50}"#.to_owned()).unwrap();
    let version =
        store.put(key("abc123:policy:x"), put("7").with_metadata(metadata)).await.unwrap();
    let sidecar = "#keyward:sidecar:abc123:policy:x";
    assert_eq!(installation.names().await, [sidecar, "abc123:policy:x"]);
    let [value, about] = &installation.stored(&["abc123:policy:x", sidecar]).await[..] else {
        unreachable!("two were asked for")
    };
    assert_eq!(value, &Some(json!(7)));
    let about = about.as_ref().unwrap();
    assert_eq!(about["version"], version.to_string());
    assert_eq!(about["metadata"], r#"{"size":1.50}"#);

    store.put(key("a/b"), put("8")).await.unwrap();
    let names = installation.names().await;
    assert!(names.contains(&"#keyward:key:YS9i".to_owned()), "{names:?}");
    for name in ["abc123:policy:x", "a/b"] {
        store.delete(key(name)).await.unwrap();
    }
    assert_eq!(installation.names().await, [""; 0], "nothing is left");
}

#[tokio::test]
async fn sidecars_that_are_not_needed_are_left_out() {
    let installation = Installation::new();
    let mut options = installation.options();
    options.sidecars = Sidecars::Needed;
    let store = Store::new(ForgeKvs::open(options).await.unwrap());
    let slot = key("abc123");
    let version = store.put(slot.clone(), put("1")).await.unwrap();
    assert_eq!(installation.names().await, ["abc123"]);
    let entry = store.get(&slot).await.unwrap().unwrap();
    assert_eq!((entry.value.as_str(), &entry.version), ("1", &version));

    let metadata = Json::parse("{}".to_owned()).unwrap();
    let described = put("1").with_metadata(metadata.clone());
    let version = store.put(slot.clone(), described).await.unwrap();
    let entry = store.get(&slot).await.unwrap().unwrap();
    assert_eq!((entry.metadata, entry.version), (Some(metadata), version));
    let ending = put("1").expiring(Expiry::After(Duration::from_secs(60)));
    store.put(slot.clone(), ending).await.unwrap();
    assert!(store.get(&slot).await.unwrap().unwrap().expires.is_some());

    // The same value: an old sidecar would fit it.
    store.put(slot.clone(), put("1")).await.unwrap();
    assert_eq!(installation.names().await, ["abc123"]);
    let entry = store.get(&slot).await.unwrap().unwrap();
    assert_eq!((entry.metadata, entry.expires), (None, None));
}

#[tokio::test]
async fn absent_keys_are_absent_whether_a_batch_tells_them_or_not() {
    for told in [true, false] {
        let installation = Installation::new();
        installation.control(json!({"absentKeysFail": told})).await;
        let store = installation.store().await;
        store.put(key("there"), put("1")).await.unwrap();
        let keys = ["there", "absent"].map(key);
        let entries = store.get_many(&keys).await.unwrap();
        assert!(entries[0].is_some() && entries[1].is_none());
    }
}

#[tokio::test]
async fn a_transaction_that_meets_another_is_sent_again_until_the_budget_is_used_up() {
    let installation = Installation::new();
    let mut options = installation.options();
    options.http.retry_budget = Duration::from_millis(200);
    let store = Store::new(ForgeKvs::open(options).await.unwrap());
    installation.control(json!({"conflicts": 2})).await;
    store.put(key("slot"), put("1")).await.unwrap();
    installation.control(json!({"conflicts": 1_000})).await;
    let error = store.put(key("slot"), put("2")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    installation.control(json!({"conflicts": 0})).await;
    assert_eq!(store.get(&key("slot")).await.unwrap().unwrap().value.as_str(), "1");
}

#[tokio::test]
async fn keys_of_a_batch_that_exceed_a_limit_are_read_again() {
    let installation = Installation::new();
    let mut options = installation.options();
    options.http.retry_budget = Duration::from_millis(200);
    let store = Store::new(ForgeKvs::open(options).await.unwrap());
    let keys: Vec<Key> = (0..20).map(|n| key(&format!("row:{n}"))).collect();
    for key in &keys {
        store.put(key.clone(), put("1")).await.unwrap();
    }
    installation.control(json!({"throttled": 7})).await;
    assert!(store.get_many(&keys).await.unwrap().iter().all(Option::is_some));
    installation.control(json!({"throttled": 100_000})).await;
    let error = store.get_many(&keys).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("row:"), "{error}");
}

#[tokio::test]
async fn the_largest_values_and_keys_fit_in_every_form() {
    let installation = Installation::new();
    let store = installation.store().await;
    let limits = *store.limits();
    for segment in ["x".repeat(limits.key_bytes_max), "/".repeat(limits.key_bytes_max)] {
        let longest = Key::from_segments([segment]).unwrap();
        // Plain, and a text that is doubled by its quotes.
        let plain = format!("\"{}\"", "학".repeat((limits.value_bytes_max - 2) / 3));
        let quotes = format!("[1.0{}]", ",\"\"".repeat(limits.value_bytes_max / 5 - 10));
        for text in [plain, quotes] {
            let value = Json::parse(text).unwrap();
            let metadata = Json::parse(format!(
                "{{\"x\":\"{}\"}}",
                "\\\"".repeat((limits.metadata_bytes_max - 8) / 2)
            ));
            let put = Put::new(value.clone()).with_metadata(metadata.unwrap());
            store.put(longest.clone(), put).await.unwrap();
            let entry = store.get(&longest).await.unwrap().unwrap();
            assert!(entry.value == value && entry.metadata.is_some());
        }
    }
    let quotes = format!("[1.0{}]", ",\"\"".repeat(limits.value_bytes_max / 5 + 10));
    let error = store.put(key("slot"), put(&quotes)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    assert!(error.message().contains("JavaScript"), "{error}");
}

#[tokio::test]
async fn a_sidecar_that_somebody_damaged_is_told() {
    let installation = Installation::new();
    let store = installation.store().await;
    store.put(key("slot"), put("1")).await.unwrap();
    installation.write("#keyward:sidecar:slot", json!({"version": 7})).await;
    let error = store.get(&key("slot")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains("slot"), "{error}");
}
