//! Entries: set, read, patched, removed.

use serde_json::{Value, json};

use super::{NAMESPACE, by, delete, entry, made, patch};
use crate::fixture::{Running, answered, etag, refused, told};

#[tokio::test]
async fn an_entry_is_set_and_read_as_a_document() {
    let server = Running::new().await;
    let body = json!({"value": {"lines": 2}, "metadata": {"version": "1.0", "author": "alice"}});
    let put = by("indexer", server.put(&entry("src%2Fmain.py"), &body.to_string()));
    let made = answered(201, put).await;
    assert_eq!(made.headers()["location"], entry("src%2Fmain.py").as_str());
    let version = etag(&made);
    let told_of: Value = made.json().await.unwrap();
    assert_eq!(told_of["key"], "src/main.py");
    assert_eq!(told_of["namespace"], "files:apache/repo");
    assert_eq!(told_of["created"], true);

    let read = answered(200, by("reader", server.get(&entry("src%2Fmain.py")))).await;
    assert_eq!(etag(&read), version);
    let document: Value = read.json().await.unwrap();
    assert_eq!(document["_id"], "local:files:apache/repo:c3JjL21haW4ucHk=");
    assert_eq!(document["_rev"], told_of["version"]);
    for (field, value) in [
        ("userId", json!("local")),
        ("namespace", json!("files:apache/repo")),
        ("key", json!("src/main.py")),
        ("value", json!({"lines": 2})),
        ("metadata", json!({"version": "1.0", "author": "alice"})),
        ("createdByAgent", json!("indexer")),
        ("lastAccessedByAgent", json!("reader")),
        ("accessCount", json!(1)),
    ] {
        assert_eq!(document[field], value, "{field}");
    }

    let body = json!({"value": 3, "metadata": {"version": "2.0", "reviewer": "bob"}});
    let again = by("editor", server.put(&entry("src%2Fmain.py"), &body.to_string()));
    assert_eq!(told(200, again).await["created"], false);
    let later = told(200, server.get(&entry("src%2Fmain.py"))).await;
    let merged = json!({"version": "2.0", "author": "alice", "reviewer": "bob"});
    assert_eq!((&later["value"], &later["metadata"]), (&json!(3), &merged));
    assert_eq!(later["createdByAgent"], "indexer");
    assert_eq!(later["createdAt"], document["createdAt"]);
    assert_ne!(later["_rev"], document["_rev"]);
}

#[tokio::test]
async fn the_value_alone_is_as_it_was_sent() {
    let server = Running::new().await;
    let sent = r#"{"big":12345678901234567890123456789.000100,"z":1,"a":[1e400,-0.0]}"#;
    let body = format!(r#"{{"value":{sent},"metadata":{{"n":9007199254740993.10}}}}"#);
    answered(201, server.put(&entry("n"), &body)).await;
    for path in [format!("{}?value=true", entry("n")), format!("{}/value", entry("n"))] {
        let answer = answered(200, server.get(&path)).await;
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert_eq!(answer.text().await.unwrap(), sent, "{path}");
    }
    for path in [entry("n"), format!("{NAMESPACE}/entries")] {
        let text = answered(200, server.get(&path)).await.text().await.unwrap();
        assert!(text.contains(sent) && text.contains("9007199254740993.10"), "{text}");
    }
    let part = r#"{"value":{"z":18446744073709551616.0}}"#;
    let request = server.sent(reqwest::Method::PATCH, &entry("n"), part);
    answered(200, request).await;
    let text = answered(200, server.get(&entry("n"))).await.text().await.unwrap();
    assert!(text.contains("12345678901234567890123456789.000100"), "{text}");
    assert!(text.contains("18446744073709551616.0"), "{text}");
}

#[tokio::test]
async fn a_patch_merges_and_null_removes() {
    let server = Running::new().await;
    let body = json!({"value": {"a": 1, "b": {"c": 2}}, "metadata": {"x": null, "y": 1}});
    answered(201, server.put(&entry("k"), &body.to_string())).await;
    let part = json!({"value": {"a": null, "b": {"d": 3}}, "metadata": {"y": null, "z": 2}});
    assert_eq!(told(200, patch(&server, &entry("k"), &part)).await["created"], false);
    let document = told(200, server.get(&entry("k"))).await;
    assert_eq!(document["value"], json!({"b": {"c": 2, "d": 3}}));
    assert_eq!(document["metadata"], json!({"x": null, "z": 2}));
    answered(200, patch(&server, &entry("k"), &json!({"value": null}))).await;
    assert_eq!(told(200, server.get(&entry("k"))).await["value"], Value::Null);
    refused(404, "not-found", patch(&server, &entry("none"), &json!({"value": 1}))).await;
    refused(400, "invalid", patch(&server, &entry("k"), &json!({}))).await;
    refused(400, "bad-change", patch(&server, &entry("k"), &json!({"metadata": 1}))).await;
    refused(400, "invalid", patch(&server, &entry("k"), &json!({"values": 1}))).await;
}

#[tokio::test]
async fn removing_tells_whether_it_was_there() {
    let server = Running::new().await;
    made(&server, "k", &json!(1)).await;
    assert_eq!(told(200, delete(&server, &entry("k"))).await, json!({"deleted": true}));
    assert_eq!(told(200, delete(&server, &entry("k"))).await, json!({"deleted": false}));
    refused(404, "not-found", server.get(&entry("k"))).await;
    refused(404, "not-found", server.get(&format!("{}/value", entry("k")))).await;
    let head = server.request(reqwest::Method::HEAD, &entry("k"));
    assert_eq!(head.send().await.unwrap().status(), 404);
    made(&server, "k", &json!(2)).await;
    let head = answered(200, server.request(reqwest::Method::HEAD, &entry("k"))).await;
    assert!(head.headers().contains_key("etag"));
}

#[tokio::test]
async fn keys_that_look_like_routes_are_keys() {
    let server = Running::new().await;
    for key in ["get", "set", "value", "history", "entries", "a%2Fb", "%C3%BC", "a:b", "%25", "%20"]
    {
        made(&server, key, &json!(key)).await;
        assert_eq!(told(200, server.get(&entry(key))).await["value"], key);
    }
    for namespace in ["search", "runs", "import", "default", "a%2F%2E%2E%2Fb", "%3A%3A"] {
        let path = format!("/v1/agents/namespaces/{namespace}/entries/k");
        answered(201, server.put(&path, r#"{"value":1}"#)).await;
        answered(200, server.get(&path)).await;
    }
}

#[tokio::test]
async fn an_entry_ends_when_it_was_told_to() {
    let server = Running::new().await;
    let put = |body: &str| server.put(&entry("k"), body);
    answered(201, put(r#"{"value":1,"ttl":60}"#)).await;
    let read = answered(200, server.get(&entry("k"))).await;
    assert!(read.headers().contains_key("keyward-expires"));
    answered(200, put(r#"{"value":1,"ttl":"never"}"#)).await;
    let read = answered(200, server.get(&entry("k"))).await;
    assert!(!read.headers().contains_key("keyward-expires"));
    answered(200, put(r#"{"value":1,"ttl":60,"sliding":true}"#)).await;
    for wrong in [
        r#"{"value":1,"ttl":0}"#,
        r#"{"value":1,"ttl":-1}"#,
        r#"{"value":1,"ttl":"keep"}"#,
        r#"{"value":1,"ttl":3162240001}"#,
        r#"{"value":1,"sliding":true}"#,
        r#"{"value":1,"ttl":"never","sliding":true}"#,
        r#"{"metadata":{}}"#,
        r#"{"value":1,"value":2}"#,
        r#"{"value":{"a":1,"a":2}}"#,
        r#"{"value":1,"more":2}"#,
        "1",
        "",
    ] {
        refused(400, "invalid", put(wrong)).await;
    }
    refused(400, "bad-change", put(r#"{"value":1,"metadata":[]}"#)).await;
    let text = server.request(reqwest::Method::PUT, &entry("k")).body(r#"{"value":1}"#);
    refused(415, "unsupported-media-type", text.header("content-type", "text/plain")).await;
}

#[tokio::test]
async fn several_entries_are_read_and_set_at_once() {
    let server = Running::new().await;
    let set = json!({"entries": [
        {"key": "a", "value": 1, "metadata": {"m": 1}},
        {"key": "b/c", "value": {"x": null}, "ttl": 60},
    ]});
    let set_many = |body: &Value| server.post(&format!("{NAMESPACE}/set"), &body.to_string());
    let stored = told(200, by("batch", set_many(&set))).await;
    assert_eq!(stored["items"][0]["key"], "a");
    assert_eq!(stored["items"][0]["version"], stored["items"][1]["version"], "one commit");
    let get_many = |keys: Value| {
        server.post(&format!("{NAMESPACE}/get"), &json!({ "keys": keys }).to_string())
    };
    let read = told(200, by("reader", get_many(json!(["b/c", "none", "a"])))).await;
    let items = json!([
        {"key": "b/c", "found": true, "value": {"x": null}},
        {"key": "none", "found": false},
        {"key": "a", "found": true, "value": 1},
    ]);
    assert_eq!(read["items"], items);
    let document = told(200, server.get(&entry("a"))).await;
    assert_eq!(
        (&document["accessCount"], &document["createdByAgent"]),
        (&json!(1), &json!("batch"))
    );

    let one_is_there = json!({"entries": [
        {"key": "new", "value": 1},
        {"key": "a", "value": 2, "create": true},
    ]});
    let problem = refused(412, "precondition-failed", set_many(&one_is_there)).await;
    assert_eq!(problem["failed"], json!([{"entry": 1, "key": "a"}]));
    refused(404, "not-found", server.get(&entry("new"))).await;
    let version = &stored["items"][0]["version"];
    for (if_match, status) in [(version.clone(), 200), (version.clone(), 412), (json!("*"), 200)] {
        let one = json!({"entries": [{"key": "a", "value": 3, "if_match": if_match}]});
        answered(status, set_many(&one)).await;
    }
    refused(400, "invalid", set_many(&json!({"entries": []}))).await;
    let twice = json!({"entries": [{"key": "t", "value": 1}, {"key": "t", "value": 2}]});
    answered(400, set_many(&twice)).await;
    let many: Vec<Value> = (0..1001).map(|n| json!({"key": format!("k{n}"), "value": n})).collect();
    refused(413, "limit-exceeded", set_many(&json!({ "entries": many }))).await;
}

#[tokio::test]
async fn entries_are_searched_by_keys_metadata_and_values() {
    let server = Running::with_schema(
        r#"
        [stores.app]
        url = "memory:"
        [spaces.agent_data_store]
        key = "agents:{user}:{namespace}:{key}"
        ownership = "user"
        history = 3
        indexes.by_status = { field = "value.status", type = "text" }
        "#,
    )
    .await;
    for (key, status, source) in
        [("t1", "open", "crawler"), ("t2", "done", "crawler"), ("u1", "open", "mail")]
    {
        let body = json!({"value": {"status": status}, "metadata": {"source": source}});
        answered(201, server.put(&entry(key), &body.to_string())).await;
    }
    let path = format!("{NAMESPACE}/search");
    let found = |body: Value| {
        let request = server.post(&path, &body.to_string());
        async move {
            let page = told(200, request).await;
            let keys = page["items"].as_array().unwrap().iter().map(|it| it["key"].clone());
            (Value::from_iter(keys), page["index"].clone())
        }
    };
    let by_status = found(json!({"filter": {"value.status": "open"}})).await;
    assert_eq!(by_status, (json!(["t1", "u1"]), json!("by_status")));
    let by_source = found(json!({"filter": {"metadata.source": "crawler"}})).await;
    assert_eq!(by_source, (json!(["t1", "t2"]), Value::Null));
    let both = json!({"prefix": "t", "filter": {"value.status": "open"}});
    assert_eq!(found(both).await.0, json!(["t1"]));
    refused(400, "invalid", server.post(&path, r#"{"filter":{"other":1}}"#)).await;
    let everywhere = server.post("/v1/agents/search", r#"{"filter":{"value.status":"done"}}"#);
    assert_eq!(told(200, everywhere).await["items"][0]["key"], "t2");
}
