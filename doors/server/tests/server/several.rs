//! Several keys in one request.

use keyward_server::{Config, Limits, without_schema};
use serde_json::{Value, json};

use crate::fixture::{Running, answered, configured, refused, told};
use crate::spaces::served;

const GET: &str = "/v1/stores/main/get";
/// How many bytes one response has at most.
const BYTES_MAX: usize = 64 * 1024 * 1024;
const LARGE: usize = 8 * 1024 * 1024;

/// A server that takes large values, with so many of them.
async fn with_large(count: usize) -> Running {
    let limits = Limits { body_bytes_max: 2 * LARGE, ..Limits::default() };
    let config = Config { limits, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let large = format!("\"{}\"", "x".repeat(LARGE - 2));
    for n in 0..count {
        answered(200, server.put(&format!("/v1/stores/main/entries/k{n}"), &large)).await;
    }
    server
}

fn keys(names: impl Iterator<Item = usize>) -> String {
    json!({ "keys": names.map(|n| format!("k{n}")).collect::<Vec<_>>() }).to_string()
}

#[tokio::test]
async fn what_several_keys_hold_together_is_bounded() {
    let server = with_large(9).await;
    let whole = answered(200, server.post(GET, &keys(0..8))).await;
    assert!(whole.text().await.unwrap().len() > BYTES_MAX);
    for path in [GET, "/v1/stores/main/raw/get"] {
        let problem = refused(413, "limit-exceeded", server.post(path, &keys(0..9))).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&BYTES_MAX.to_string()), "{path}: {detail}");
        // One key counts as often as it is in the response.
        let again = server.post(path, &keys(std::iter::repeat_n(0, 9)));
        refused(413, "limit-exceeded", again).await;
        answered(200, server.post(path, &keys(std::iter::repeat_n(0, 2)))).await;
    }
}

#[tokio::test]
async fn a_key_that_is_asked_for_often_is_in_the_response_as_often() {
    let server = Running::new().await;
    answered(200, server.put("/v1/stores/main/entries/k0", "7")).await;
    let read = told(200, server.post(GET, &keys((0..1_000).map(|n| n % 2)))).await;
    let entries = read["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1_000);
    for (n, entry) in entries.iter().enumerate() {
        let expected = if n % 2 == 0 { json!(7) } else { Value::Null };
        assert_eq!(entry["value"], expected, "{n}");
    }
}

#[tokio::test]
async fn records_and_agents_entries_cannot_be_named_twice() {
    let server = served().await;
    let note = "user:ada:notes:n1";
    let put = server.put(&format!("/v1/spaces/notes/records/{note}"), r#"{"title":"t"}"#);
    answered(201, put).await;
    let agents = "/v1/agents/namespaces/n/entries/a";
    answered(201, server.put(agents, r#"{"value":1}"#)).await;
    for (path, key) in [("/v1/spaces/notes/get", note), ("/v1/agents/namespaces/n/get", "a")] {
        let twice = server.post(path, &json!({ "keys": [key, key] }).to_string());
        let problem = refused(400, "invalid", twice).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("the key {key} is named twice")), "{path}: {detail}");
        answered(200, server.post(path, &json!({ "keys": [key] }).to_string())).await;
    }
}
