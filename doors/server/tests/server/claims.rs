//! Working on messages over HTTP: claims, signs of life, ends.

use std::time::Duration;

use keyward_server::{Config, Limits, without_schema};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::fixture::{Running, answered, configured, refused, told};

const QUEUE: &str = "/v1/stores/main/queues/q";

pub async fn enqueue(server: &Running, payload: &str) -> String {
    let body = format!(r#"{{"messages":[{{"payload":{payload}}}]}}"#);
    let done = told(200, server.post(&format!("{QUEUE}/messages"), &body)).await;
    done["messages"][0]["id"].as_str().unwrap().to_owned()
}

pub async fn claim(server: &Running, body: &str) -> Vec<Value> {
    let claimed = told(200, server.post(&format!("{QUEUE}/claim"), body)).await;
    claimed["messages"].as_array().unwrap().clone()
}

pub fn act(server: &Running, message: &Value, how: &str, more: &str) -> RequestBuilder {
    let (id, nonce) = (message["id"].as_str().unwrap(), &message["nonce"]);
    let path = format!("{QUEUE}/messages/{id}/{how}");
    server.post(&path, &format!(r#"{{"nonce":{nonce}{more}}}"#))
}

#[tokio::test]
async fn a_message_is_worked_on_at_whichever_server_of_its_store() {
    let data = without_schema("memory:").unwrap();
    let (one, other) = (Running::on(&data).await, Running::on(&data).await);
    let id = enqueue(&one, r#"{"n":1.50}"#).await;
    let claimed = answered(200, other.post(&format!("{QUEUE}/claim"), r#"{"worker":"w-1"}"#)).await;
    let claimed = claimed.text().await.unwrap();
    assert!(claimed.contains(r#""payload":{"n":1.50}"#), "{claimed}");
    let message = serde_json::from_str::<Value>(&claimed).unwrap()["messages"][0].clone();
    assert_eq!((&message["id"], &message["attempt"]), (&json!(id), &json!(1)));
    assert_eq!((&message["job"], &message["lease_ms"]), (&json!(false), &json!(30_000)));
    let shown = told(200, one.get(&format!("{QUEUE}/messages/{id}"))).await;
    assert_eq!((&shown["state"], &shown["holder"]), (&json!("claimed"), &json!("w-1")));
    assert!(claim(&one, "{}").await.is_empty());
    assert_eq!(told(200, act(&one, &message, "heartbeat", "")).await["lease_ms"], 30_000);
    // However often, and wherever.
    for server in [&one, &other, &one] {
        assert_eq!(told(200, act(server, &message, "complete", "")).await["outcome"], "completed");
    }
    for how in ["heartbeat", "release"] {
        refused(409, "attempt-lost", act(&other, &message, how, "")).await;
    }
    refused(404, "not-found", one.get(&format!("{QUEUE}/messages/{id}"))).await;
}

#[tokio::test]
async fn who_was_taken_over_from_is_told() {
    let server = Running::new().await;
    enqueue(&server, "1").await;
    let stale = claim(&server, r#"{"lease_ms":20}"#).await.remove(0);
    // Waits for the lease to end.
    let held = claim(&server, r#"{"wait_ms":20000}"#).await.remove(0);
    assert_eq!((&held["attempt"], &held["id"]), (&json!(2), &stale["id"]));
    assert!(held["history"][0]["error"].as_str().unwrap().contains("no sign of life"));
    assert!(held["history"][0].get("nonce").is_none());
    for (how, more) in [
        ("complete", ""),
        ("heartbeat", ""),
        ("release", ""),
        ("progress", ""),
        ("retry", r#","reason":"x""#),
        ("fail", r#","reason":"x""#),
    ] {
        refused(409, "attempt-lost", act(&server, &stale, how, more)).await;
    }
    answered(200, act(&server, &held, "complete", "")).await;
    refused(409, "attempt-lost", act(&server, &stale, "complete", "")).await;
}

#[tokio::test]
async fn an_attempt_that_fails_is_tried_again_and_ends_among_the_dead_letters() {
    let server = Running::new().await;
    let id = enqueue(&server, "1").await;
    for attempt in 1..=3 {
        let message = claim(&server, r#"{"wait_ms":20000}"#).await.remove(0);
        assert_eq!(message["attempt"], attempt);
        // An answer that was lost changes nothing.
        for _ in 0..2 {
            let reason = format!(r#","reason":"no {attempt}","after_ms":1"#);
            assert_eq!(
                told(200, act(&server, &message, "retry", &reason)).await["outcome"],
                "failed"
            );
        }
    }
    let dead = told(200, server.get(&format!("{QUEUE}/dead-letters/{id}"))).await;
    assert_eq!((&dead["reason"], &dead["retry_count"]), (&json!("no 3"), &json!(3)));
    assert_eq!(dead["history"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_is_released_has_had_no_attempt() {
    let server = Running::new().await;
    enqueue(&server, "1").await;
    let message = claim(&server, "{}").await.remove(0);
    let release = || act(&server, &message, "release", "").header("idempotency-key", "r");
    assert_eq!(told(200, release()).await["outcome"], "released");
    let again = answered(200, release()).await;
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(claim(&server, "{}").await[0]["attempt"], 1);
}

#[tokio::test]
async fn an_end_with_an_idempotency_key_is_remembered_for_longer_than_its_message() {
    let server = Running::new().await;
    enqueue(&server, "1").await;
    let message = claim(&server, "{}").await.remove(0);
    let retry = || {
        let more = r#","reason":"x","after_ms":0"#;
        act(&server, &message, "retry", more).header("idempotency-key", "k")
    };
    answered(200, retry()).await;
    let next = claim(&server, r#"{"wait_ms":20000}"#).await.remove(0);
    answered(200, act(&server, &next, "complete", "")).await;
    // Nothing of the message is left that would tell.
    assert_eq!(answered(200, retry()).await.headers()["idempotency-replayed"], "true");
    refused(409, "attempt-lost", act(&server, &message, "retry", r#","reason":"x""#)).await;
}

#[tokio::test]
async fn what_cannot_be_claimed_so_is_told() {
    let server = Running::new().await;
    let claim = |body: &str| server.post(&format!("{QUEUE}/claim"), body);
    for body in [
        r#"{"max":0}"#,
        r#"{"max":257}"#,
        r#"{"lease_ms":0}"#,
        r#"{"lease_ms":99999999999}"#,
        r#"{"worker":""}"#,
        r#"{"worker":"a b"}"#,
        r#"{"more":1}"#,
        "[]",
    ] {
        refused(400, "invalid", claim(body)).await;
    }
    refused(400, "invalid", claim("{}").header("idempotency-key", "k")).await;
    let message = json!({"id": "m", "nonce": "n"});
    let long = format!(r#","detail":"{}""#, "x".repeat(1_001));
    refused(413, "limit-exceeded", act(&server, &message, "progress", &long)).await;
    refused(400, "invalid", act(&server, &message, "progress", r#","total":1"#)).await;
    refused(400, "invalid", act(&server, &message, "retry", "")).await;
}

/// A number that the server counts.
async fn counted(server: &Running, name: &str) -> u64 {
    let metrics = answered(200, server.get("/metrics")).await.text().await.unwrap();
    let value = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    value.unwrap().parse().unwrap()
}

async fn until_counted(server: &Running, name: &str, value: u64) {
    while counted(server, name).await != value {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_claim_waits_for_a_message() {
    let data = without_schema("memory:").unwrap();
    let (one, other) = (Running::on(&data).await, Running::on(&data).await);
    let claim = one.post(&format!("{QUEUE}/claim"), r#"{"wait_ms":20000}"#);
    let waiting = tokio::spawn(told(200, claim));
    until_counted(&one, "keyward_claims_waiting", 1).await;
    let id = enqueue(&other, "1").await;
    assert_eq!(waiting.await.unwrap()["messages"][0]["id"], id);
    assert_eq!(counted(&one, "keyward_claims_waiting").await, 0);
    let none = told(200, one.post(&format!("{QUEUE}/claim"), r#"{"wait_ms":1}"#)).await;
    assert_eq!(none["messages"], json!([]));
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_has_claimed_nothing() {
    let server = Running::new().await;
    let claim_waiting = server.post(&format!("{QUEUE}/claim"), r#"{"wait_ms":20000}"#);
    let waiting = tokio::spawn(claim_waiting.send());
    until_counted(&server, "keyward_claims_waiting", 1).await;
    waiting.abort();
    until_counted(&server, "keyward_claims_waiting", 0).await;
    let id = enqueue(&server, "1").await;
    let message = claim(&server, "{}").await.remove(0);
    assert_eq!((&message["id"], &message["attempt"]), (&json!(id), &json!(1)));
    // The request that asks is the only one that is under way.
    until_counted(&server, "keyward_http_requests_under_way", 1).await;
}

#[tokio::test]
async fn a_stop_ends_waiting_claims_at_once() {
    let server = Running::new().await;
    let claim = server.post(&format!("{QUEUE}/claim"), r#"{"wait_ms":20000}"#);
    let waiting = tokio::spawn(told(200, claim));
    until_counted(&server, "keyward_claims_waiting", 1).await;
    let begun = tokio::time::Instant::now();
    server.stop().await;
    assert_eq!(waiting.await.unwrap()["messages"], json!([]));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn those_who_wait_leave_room_for_others() {
    let limits = Limits { requests_max: 4, ..Limits::default() };
    let config = Config { limits, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let claim = |body: &str| server.post(&format!("{QUEUE}/claim"), body);
    let waiting: Vec<_> =
        (0..2).map(|_| tokio::spawn(told(200, claim(r#"{"wait_ms":20000}"#)))).collect();
    until_counted(&server, "keyward_claims_waiting", 2).await;
    let problem = refused(503, "overloaded", claim(r#"{"wait_ms":20000}"#)).await;
    assert_eq!(problem["retryable"], true);
    answered(200, claim("{}")).await;
    enqueue(&server, "1").await;
    enqueue(&server, "2").await;
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap()["messages"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_wait_is_shorter_than_an_answer_may_take() {
    let limits = Limits { answer_time_max: Duration::from_millis(600), ..Limits::default() };
    let config = Config { limits, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    assert!(claim(&server, r#"{"wait_ms":60000}"#).await.is_empty());
}
