//! Namespaces: listed, counted, cleared, configured.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{NAMESPACE, by, delete, entry, made};
use crate::fixture::{Running, answered, refused, told};

/// Every item of a listing, page by page.
async fn all(server: &Running, path: &str) -> Vec<String> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = told(200, server.get(&format!("{path}{cursor}"))).await;
        let some = page["items"].as_array().unwrap().iter();
        items.extend(some.map(|item| item.as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

#[tokio::test]
async fn more_than_ten_thousand_keys_are_listed_by_cursor() {
    const KEYS: usize = 10_050;
    let server = Running::new().await;
    let keys: Vec<String> = (0..KEYS).map(|n| format!("k/{n:05}")).collect();
    for some in keys.chunks(1_000) {
        let entries: Vec<Value> =
            some.iter().map(|key| json!({"key": key, "value": null})).collect();
        let body = json!({ "entries": entries }).to_string();
        answered(200, server.post(&format!("{NAMESPACE}/set"), &body)).await;
    }
    made(&server, "other", &json!(1)).await;
    assert_eq!(all(&server, &format!("{NAMESPACE}/keys?prefix=k%2F&limit=1000")).await, keys);
    let every = all(&server, &format!("{NAMESPACE}/keys?limit=777")).await;
    assert_eq!(every.len(), KEYS + 1);
    assert_eq!(every.iter().collect::<BTreeSet<_>>().len(), KEYS + 1);
    let stats = told(200, server.get(NAMESPACE)).await;
    assert_eq!(stats["recordCount"], KEYS + 1);
    refused(400, "invalid", server.get(&format!("{NAMESPACE}/keys?limit=1001"))).await;
    refused(400, "invalid", server.get(&format!("{NAMESPACE}/keys?limit=0"))).await;
}

#[tokio::test]
async fn namespaces_are_listed_in_order_and_do_not_show_each_others_keys() {
    let server = Running::new().await;
    let names = ["files", "files:a", "files:a/b", "default", "ü"];
    for name in names {
        let name = name.replace('/', "%2F");
        let path = format!("/v1/agents/namespaces/{name}/entries/only-{}", name.len());
        answered(201, server.put(&path, r#"{"value":1}"#)).await;
    }
    let listed = all(&server, "/v1/agents/namespaces?limit=2").await;
    assert_eq!(listed, ["default", "files", "files:a", "files:a/b", "ü"]);
    assert_eq!(all(&server, "/v1/agents/namespaces/files/keys?limit=9").await, ["only-5"]);
    assert_eq!(all(&server, "/v1/agents/namespaces/files:a/keys?limit=9").await, ["only-7"]);
    assert_eq!(all(&server, "/v1/agents/namespaces/none/keys?limit=9").await, [""; 0]);
}

#[tokio::test]
async fn stats_tell_how_much_there_is_and_who_was_there() {
    let server = Running::new().await;
    let put = server.put(&entry("a"), r#"{"value":[1,2],"metadata":{"m":1}}"#);
    answered(201, by("writer", put)).await;
    answered(200, by("reader", server.get(&entry("a")))).await;
    let updated = told(200, server.get(&entry("a"))).await["updatedAt"].clone();
    let stats = told(200, server.get(NAMESPACE)).await;
    let expected = json!({
        "namespace": "files:apache/repo", "recordCount": 1, "sizeBytes": 12,
        "agents": ["reader", "writer"], "updatedAt": updated,
    });
    assert_eq!(stats, expected);
    let nothing = told(200, server.get("/v1/agents/namespaces/none")).await;
    assert_eq!((&nothing["recordCount"], &nothing["updatedAt"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn a_namespace_is_cleared_when_the_count_is_confirmed() {
    let server = Running::new().await;
    for key in ["a1", "a2", "b"] {
        made(&server, key, &json!(1)).await;
    }
    answered(201, server.put("/v1/agents/namespaces/files/entries/a1", r#"{"value":1}"#)).await;
    let clear = |parameters: &str| delete(&server, &format!("{NAMESPACE}{parameters}"));
    for (parameters, count) in
        [("", 3), ("?confirm=2", 3), ("?prefix=a", 2), ("?prefix=a&confirm=3", 2)]
    {
        let problem = refused(409, "unconfirmed", clear(parameters)).await;
        assert_eq!(problem["count"], count, "{parameters}");
        let hint = problem["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("confirm={count}")), "{hint}");
    }
    let dry = told(200, clear("?dry_run=true&confirm=3")).await;
    assert_eq!(dry, json!({"count": 3, "removed": 0}));
    let some = told(200, clear("?prefix=a&confirm=2")).await;
    assert_eq!(some, json!({"count": 2, "removed": 2}));
    assert_eq!(all(&server, &format!("{NAMESPACE}/keys?limit=9")).await, ["b"]);
    assert_eq!(told(200, clear("?confirm=1")).await["removed"], 1);
    assert_eq!(told(200, clear("?confirm=0")).await["removed"], 0);
    assert_eq!(all(&server, "/v1/agents/namespaces/files/keys?limit=9").await, ["a1"]);
}

#[tokio::test]
async fn settings_say_how_long_entries_live() {
    let server = Running::new().await;
    let path = format!("{NAMESPACE}/settings");
    let nothing = json!({"ttl": null, "sliding": false, "honour_ttl_seconds": false});
    assert_eq!(told(200, server.get(&path)).await, nothing);
    let settings = json!({"ttl": 60, "sliding": true, "honour_ttl_seconds": true});
    assert_eq!(told(200, server.put(&path, &settings.to_string())).await, settings);
    assert_eq!(told(200, server.get(&path)).await, settings);
    made(&server, "k", &json!(1)).await;
    let read = answered(200, server.get(&entry("k"))).await;
    assert!(read.headers().contains_key("keyward-expires"));
    let asked = server.put(&entry("l"), r#"{"value":1,"metadata":{"ttl_seconds":"x"}}"#);
    refused(400, "bad-change", asked).await;
    for wrong in [r#"{"ttl":0}"#, r#"{"sliding":true}"#, r#"{"more":1}"#, r#"{"ttl":3162240001}"#] {
        refused(400, "invalid", server.put(&path, wrong)).await;
    }
    assert_eq!(told(200, server.put(&path, "{}")).await, nothing);
}
