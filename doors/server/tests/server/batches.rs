//! Several records at once.

use serde_json::json;

use crate::fixture::{answered, etag, refused, told};
use crate::spaces::served;

const BATCH: &str = "/v1/spaces/notes/batch";

#[tokio::test]
async fn changes_are_made_together_or_not_at_all() {
    let server = served().await;
    let old = "/v1/spaces/notes/records/user:ada:notes:old";
    let version = etag(&answered(201, server.put(old, r#"{"title":"old","tags":["a"]}"#)).await);
    let operations = json!({"operations": [
        {"create": {"values": {"user": "ada", "note": "n1"}, "value": {"title": "1"}, "ttl": 60}},
        {"put": {"key": "user:ada:notes:n2", "value": {"title": "2"}, "metadata": {"m": 1}}},
        {"merge": {"key": "user:ada:notes:old", "value": {"tags": ["b"], "title": "no"},
                   "arrays": "append", "preserve": ["title"], "if_match": version.trim_matches('"')}},
        {"delete": {"key": "user:ada:notes:none"}},
    ]});
    let done = told(200, server.post(BATCH, &operations.to_string())).await;
    let versions: Vec<_> =
        done["results"].as_array().unwrap().iter().map(|it| &it["version"]).collect();
    assert!(versions[..3].iter().all(|version| version.is_string() && *version == versions[0]));
    assert!(versions[3].is_null());
    assert_eq!(told(200, server.get(old)).await, json!({"title": "old", "tags": ["a", "b"]}));

    // The third has another version by now, so none of them is made.
    let again = operations.to_string().replace("\"n1\"", "\"n3\"").replace("\"2\"", "\"two\"");
    let problem = refused(412, "precondition-failed", server.post(BATCH, &again)).await;
    assert_eq!(problem["failed"], json!([{"operation": 2, "key": "user:ada:notes:old"}]));
    refused(404, "not-found", server.get("/v1/spaces/notes/records/user:ada:notes:n3")).await;
    // The second is there already.
    let twice = json!({"operations": [
        {"put": {"key": "user:ada:notes:n2", "value": {"title": "two"}}},
        {"create": {"key": "user:ada:notes:n1", "value": {"title": "one"}}},
    ]});
    let problem = refused(412, "precondition-failed", server.post(BATCH, &twice.to_string())).await;
    assert_eq!(problem["failed"], json!([{"operation": 1, "key": "user:ada:notes:n1"}]));
    let second = told(200, server.get("/v1/spaces/notes/records/user:ada:notes:n2")).await;
    assert_eq!(second["title"], "2");
}

#[tokio::test]
async fn a_batch_that_makes_no_sense_is_refused() {
    let server = served().await;
    let put =
        |n: usize| json!({"put": {"key": format!("user:ada:notes:{n}"), "value": {"title": "x"}}});
    let batch = |operations: Vec<serde_json::Value>| {
        server.post(BATCH, &json!({"operations": operations}).to_string())
    };
    refused(400, "invalid", batch(vec![])).await;
    refused(400, "bad-change", batch(vec![put(1), put(1)])).await;
    refused(413, "limit-exceeded", batch((0..1001).map(put).collect())).await;
    refused(400, "invalid", batch(vec![json!({"delete": {}})])).await;
    refused(400, "invalid", batch(vec![json!({"drop": {"key": "a"}})])).await;
    refused(400, "key-mismatch", batch(vec![put(1), json!({"delete": {"key": "system:catalog"}})]))
        .await;
    let wrong = json!({"put": {"key": "user:ada:notes:2", "value": {}}});
    refused(422, "schema-mismatch", batch(vec![put(1), wrong])).await;
    refused(404, "not-found", server.get("/v1/spaces/notes/records/user:ada:notes:1")).await;
}

#[tokio::test]
async fn each_on_its_own_tells_what_became_of_each() {
    let server = served().await;
    let body = json!({"together": false, "operations": [
        {"put": {"key": "user:ada:notes:1", "value": {"title": "x"}}},
        {"put": {"key": "user:ada:notes:2", "value": {}}},
        {"create": {"key": "user:ada:notes:1", "value": {"title": "y"}}},
        {"put": {"key": "user:ada:notes:3", "value": {"title": "z"}}},
    ]});
    let done = told(200, server.post(BATCH, &body.to_string())).await;
    let results = done["results"].as_array().unwrap();
    assert!(results[0]["version"].is_string() && results[3]["version"].is_string());
    assert_eq!(results[1]["problem"]["code"], "schema-mismatch");
    assert_eq!(results[2]["problem"]["code"], "precondition-failed");
    let marked = server.post(BATCH, &body.to_string()).header("idempotency-key", "k");
    refused(400, "invalid", marked).await;
}

#[tokio::test]
async fn many_records_are_read_at_once() {
    let server = served().await;
    let value = r#"{"title":"x","n":12345678901234567890123}"#;
    answered(201, server.put("/v1/spaces/notes/records/user:ada:notes:1", value)).await;
    let get = |body: &str| server.post("/v1/spaces/notes/get", body);
    let body = r#"{"keys":["user:ada:notes:1","user:ada:notes:2"]}"#;
    let text = answered(200, get(body)).await.text().await.unwrap();
    assert!(text.contains("12345678901234567890123"), "{text}");
    let records = told(200, get(body)).await;
    assert_eq!(records["records"][0]["key"], "user:ada:notes:1");
    assert!(records["records"][1].is_null());
    refused(400, "key-mismatch", get(r#"{"keys":["system:catalog"]}"#)).await;
    let many = json!({ "keys": vec!["user:ada:notes:1"; 1001] });
    refused(413, "limit-exceeded", get(&many.to_string())).await;
}
