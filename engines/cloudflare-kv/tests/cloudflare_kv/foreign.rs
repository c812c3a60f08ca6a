//! Namespaces that other programs fill.

use keyward_cloudflare_kv::CloudflareKv;
use keyward_engine::{Json, Put, Scan, Store};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_testkit::TestClock;

use crate::server::{Namespace, address};

async fn store(namespace: &Namespace) -> Store {
    let options = namespace.options(address());
    Store::new(CloudflareKv::open_with(options, TestClock::new()).await.unwrap())
}

async fn all(store: &Store, range: KeyRange) -> Vec<(String, String)> {
    let page = store.scan(&Scan::new(range).limit(100)).await.unwrap();
    assert!(page.next.is_none());
    let rows = page.rows.into_iter();
    rows.map(|row| (row.key.to_string(), row.entry.unwrap().value.to_string())).collect()
}

#[tokio::test]
async fn values_that_are_not_json_keep_nobody_from_reading_the_others() {
    let namespace = Namespace::prompt();
    namespace.write("a:json", "{ \"n\": 1.50 }\n");
    namespace.write("b:text", "3f786850e387550fdab836ed7e6dc881de23001b");
    namespace.write("c:binary", [0xff, 0x00]);
    namespace.write("d:empty", "");
    namespace.write("e:twice", "{\"a\":1,\"a\":2}");
    namespace.write("f:replacement", "\u{fffd}");
    let store = store(&namespace).await;
    let rows = all(&store, KeyRange::all()).await;
    let expected = [
        ("a:json", "{\"n\":1.50}"),
        ("b:text", "\"3f786850e387550fdab836ed7e6dc881de23001b\""),
        ("c:binary", "\"data:application/octet-stream;base64,/wA=\""),
        ("d:empty", "\"\""),
        ("e:twice", "\"{\\\"a\\\":1,\\\"a\\\":2}\""),
        ("f:replacement", "\"\u{fffd}\""),
    ];
    assert_eq!(rows, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    for (key, value) in expected {
        let entry = store.get(&Key::parse(key).unwrap()).await.unwrap().unwrap();
        assert_eq!(entry.value.as_str(), value);
    }
    assert_eq!(namespace.value("b:text").unwrap().len(), 40, "reading changes nothing");
}

#[tokio::test]
async fn text_without_quotes_stays_so_when_its_metadata_is_put_with_another_text() {
    let namespace = Namespace::prompt();
    namespace.write("raw", "3f786850");
    namespace.write("json", "\"3f786850\"");
    let pairs = r#"[{"key":"both","value":"old text","metadata":{"by":"worker"}}]"#;
    assert_eq!(namespace.plain("PUT", "/bulk", pairs).status, 200);
    let store = store(&namespace).await;
    for (name, form, value, stored) in [
        ("raw", Some(r#"{"keyward:text":true}"#), r#""89e6c98d""#, "89e6c98d"),
        ("raw", Some(r#"{"keyward:text":true}"#), r##""# \"학칙\"""##, "# \"학칙\""),
        ("json", None, r#""89e6c98d""#, r#""89e6c98d""#),
        ("both", Some(r#"{"by":"worker","keyward:text":true}"#), r#""new text""#, "new text"),
        // Without quotes it would be read as a number.
        ("both", Some(r#"{"by":"worker","keyward:text":true}"#), r#""12""#, r#""12""#),
        ("both", Some(r#"{"by":"worker","keyward:text":true}"#), r#""a""#, "a"),
    ] {
        let key = Key::parse(name).unwrap();
        let found = store.get(&key).await.unwrap().unwrap();
        assert_eq!(found.metadata.as_ref().map(Json::as_str), form, "{name}");
        let put = Put { metadata: found.metadata, ..Put::new(Json::parse(value).unwrap()) };
        let version = store.put(key.clone(), put).await.unwrap();
        assert_eq!(namespace.value(name).as_deref(), Some(stored));
        let entry = store.get(&key).await.unwrap().unwrap();
        assert_eq!((entry.value.as_str(), entry.version), (value, version));
    }
    let metadata = namespace.plain("GET", "/metadata/both", "").result();
    assert_eq!(metadata, serde_json::json!({ "by": "worker" }));
}

#[tokio::test]
async fn every_name_is_a_key_of_its_own() {
    let namespace = Namespace::prompt();
    let names = [
        ("policy:50% 할인", "policy:50%25 할인", "policy:50%25%20%ED%95%A0%EC%9D%B8"),
        ("policy:%41", "policy:%2541", "policy:%2541"),
        ("policy:a%3Ab", "policy:a%3Ab", "policy:a%253Ab"),
        ("policy:a/b", "policy:a/b", "policy:a%2Fb"),
        ("policy:a b", "policy:a b", "policy:a%20b"),
        ("policy:", "policy:", "policy:"),
    ];
    for (name, _, path) in names {
        namespace.write(path, serde_json::to_string(name).unwrap());
    }
    let store = store(&namespace).await;
    let policies = KeyRange::under(&Prefix::parse("policy").unwrap());
    let mut rows = all(&store, policies).await;
    rows.sort();
    let mut expected: Vec<(String, String)> = names
        .iter()
        .map(|(name, key, _)| ((*key).to_owned(), serde_json::to_string(name).unwrap()))
        .collect();
    expected.sort();
    assert_eq!(rows, expected);
    for (_, key, _) in names {
        store.delete(Key::parse(key).unwrap()).await.unwrap();
    }
    assert_eq!(namespace.names(), Vec::<String>::new());
}

#[tokio::test]
async fn metadata_and_ends_of_other_programs_are_read() {
    let namespace = Namespace::prompt();
    let pairs = r#"[
        {"key":"object","value":"1","metadata":{"by":"<worker>"},"expiration":2000000000},
        {"key":"text","value":"2","metadata":"a text"},
        {"key":"list","value":"3","metadata":[1]}
    ]"#;
    assert_eq!(namespace.plain("PUT", "/bulk", pairs).status, 200);
    let store = store(&namespace).await;
    let keys = ["object", "text", "list"].map(|name| Key::parse(name).unwrap());
    let entries: Vec<_> = store.get_many(&keys).await.unwrap().into_iter().flatten().collect();
    let metadata: Vec<_> =
        entries.iter().map(|entry| entry.metadata.as_ref().map(Json::as_str)).collect();
    assert_eq!(metadata, [Some(r#"{"by":"<worker>"}"#), None, None]);
    assert_eq!(entries[0].expires.unwrap().as_second(), 2_000_000_000);
    assert_eq!(entries[1].expires, None);
}

#[tokio::test]
async fn paging_loses_nothing_while_other_programs_write_and_delete() {
    let namespace = Namespace::prompt();
    let pairs: Vec<_> =
        (0..40).map(|n| serde_json::json!({ "key": format!("k:{n:02}"), "value": "1" })).collect();
    assert_eq!(namespace.plain("PUT", "/bulk", serde_json::to_vec(&pairs).unwrap()).status, 200);
    let store = store(&namespace).await;
    let mut scan = Scan::new(KeyRange::all()).limit(3).keys_only();
    let mut seen = Vec::new();
    for n in 0.. {
        let page = store.scan(&scan).await.unwrap();
        seen.extend(page.rows.into_iter().map(|row| row.key.to_string()));
        // Before the page that is read, and after it; not those that stay.
        namespace.plain("DELETE", &format!("/values/k:{:02}", n * 2), "");
        namespace.write(&format!("k:{:02}a", n * 3), "2");
        scan.after = page.next;
        if scan.after.is_none() {
            break;
        }
    }
    for n in (1..40).step_by(2) {
        let name = format!("k:{n:02}");
        assert_eq!(seen.iter().filter(|key| **key == name).count(), 1, "{name} in {seen:?}");
    }
    let foreign = scan.after(Some(keyward_engine::Cursor::new(&b"foreign"[..])));
    assert_eq!(store.scan(&foreign).await.unwrap_err().kind(), keyward_engine::ErrorKind::Invalid);
}
