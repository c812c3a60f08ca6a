//! Earlier versions of records.

use reqwest::Method;
use serde_json::json;

use crate::fixture::{answered, etag, refused, told};
use crate::spaces::served;

const NOTE: &str = "/v1/spaces/notes/records/user:ada:notes:n1";
const HISTORY: &str = "/v1/spaces/notes/history/user:ada:notes:n1";
const RESTORE: &str = "/v1/spaces/notes/restore/user:ada:notes:n1";

#[tokio::test]
async fn versions_are_shown_and_given_back() {
    let server = served().await;
    let body = r#"{"value":{"title":"1","n":12345678901234567890123},"metadata":{"by":"x"}}"#;
    answered(201, server.put(&format!("{NOTE}?view=entry"), body)).await;
    answered(200, server.sent(Method::PATCH, NOTE, r#"{"title":"2"}"#)).await;
    answered(204, server.request(Method::DELETE, NOTE)).await;

    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let page = told(200, server.get(&format!("{HISTORY}?limit=2{before}"))).await;
        assert_eq!(page["guarantee"], "atomic");
        for item in page["items"].as_array().unwrap() {
            seen.push((item["number"].as_u64().unwrap(), item["act"].as_str().unwrap().to_owned()));
        }
        match page["next"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    let expected = [(3, "delete"), (2, "merge"), (1, "put")];
    assert_eq!(seen, expected.map(|(number, act)| (number, act.to_owned())));
    let text = answered(200, server.get(HISTORY)).await.text().await.unwrap();
    assert!(text.contains("12345678901234567890123"), "{text}");

    let restored = answered(201, server.post(RESTORE, r#"{"to":1}"#)).await;
    let version = etag(&restored);
    let entry = told(200, server.get(&format!("{NOTE}?view=entry"))).await;
    assert_eq!((&entry["value"]["title"], &entry["metadata"]), (&json!("1"), &json!({"by": "x"})));
    let again = server.post(RESTORE, r#"{"to":2}"#).header("if-match", &version);
    answered(200, again).await;
    let late = server.post(RESTORE, r#"{"to":1}"#).header("if-match", &version);
    refused(412, "precondition-failed", late).await;
}

#[tokio::test]
async fn what_is_not_kept_is_not_given_back() {
    let server = served().await;
    answered(201, server.put(NOTE, r#"{"title":"1"}"#)).await;
    answered(204, server.request(Method::DELETE, NOTE)).await;
    refused(400, "bad-change", server.post(RESTORE, r#"{"to":2}"#)).await;
    refused(400, "bad-change", server.post(RESTORE, r#"{"to":99}"#)).await;
    refused(400, "invalid", server.post(RESTORE, r#"{"number":1}"#)).await;
    refused(400, "invalid", server.get(&format!("{HISTORY}?limit=0"))).await;
    refused(400, "key-mismatch", server.get("/v1/spaces/notes/history/user:ada")).await;
    refused(400, "bad-query", server.get("/v1/spaces/places/history/shared:places:p")).await;
}
