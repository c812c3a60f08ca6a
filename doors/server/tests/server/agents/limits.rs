//! How large an entry may be.

use serde_json::{Value, json};

use super::{entry, patch};
use crate::fixture::{Running, answered, refused, told};

const MIB: usize = 1 << 20;

fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test]
async fn a_value_of_a_mebibyte_fits_and_a_byte_more_does_not() {
    let server = Running::new().await;
    let put = |value: &str, metadata: &str| {
        server.put(&entry("k"), &format!(r#"{{"value":{value},"metadata":{metadata}}}"#))
    };
    let largest = format!(r#"{{"m":"{}"}}"#, "y".repeat((64 << 10) - 8));
    assert_eq!(largest.len(), 64 << 10);
    answered(201, put(&text(MIB), &largest)).await;
    let read = answered(200, server.get(&format!("{}/value", entry("k")))).await;
    assert_eq!(read.bytes().await.unwrap().len(), MIB);
    refused(413, "value-too-large", put(&text(MIB + 1), "{}")).await;
    let more = format!(r#"{{"m":"{}"}}"#, "y".repeat((64 << 10) - 7));
    refused(400, "bad-change", put("1", &more)).await;
    refused(413, "limit-exceeded", put(&text(2 * MIB), "{}")).await;
    // What a patch makes of it counts.
    answered(200, put(&format!(r#"{{"a":{}}}"#, text(MIB - 10)), "{}")).await;
    let part = json!({"value": {"b": "0123456789"}});
    refused(413, "value-too-large", patch(&server, &entry("k"), &part)).await;
    let kept = told(200, server.get(&entry("k"))).await;
    assert_eq!(kept["value"]["b"], Value::Null);
}

#[tokio::test]
async fn a_value_nests_as_deep_as_documents_can_be_read_again() {
    let server = Running::new().await;
    let put = |value: &str| server.put(&entry("k"), &format!(r#"{{"value":{value}}}"#));
    answered(201, put(&nested(60))).await;
    answered(200, server.get(&entry("k"))).await;
    refused(400, "bad-change", put(&nested(61))).await;
    refused(400, "invalid", put(&nested(65))).await;
    let deep = put(&nested(100_000)).send().await.unwrap();
    assert_eq!(deep.status(), 400);
}

#[tokio::test]
async fn a_key_that_no_store_takes_is_refused() {
    let server = Running::new().await;
    let long = "k".repeat(20_000);
    for request in [
        server.put(&entry(&long), r#"{"value":1}"#),
        server.get(&entry(&long)),
        server.put(&format!("/v1/agents/namespaces/{long}/settings"), r#"{"ttl":60}"#),
        server.get(&format!("/v1/agents/namespaces/{long}/entries/k")),
        server.get(&format!("/v1/agents/runs/{long}/operations")),
    ] {
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        assert!(matches!(status, 400 | 413), "{status} {}", &text[..text.len().min(200)]);
    }
}
