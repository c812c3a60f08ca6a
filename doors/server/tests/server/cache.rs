//! Results that clients compute, one at a time, at whatever server of a store.

use keyward::Data;
use keyward_server::without_schema;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::fixture::{Running, answered, etag, refused, told};

const POLICY: &str = "/v1/stores/main/cache/page7:policy:1";

fn lookup(server: &Running, version: &str) -> RequestBuilder {
    server.post(&format!("{POLICY}/lookup"), &json!({"version": version}).to_string())
}

fn waiting(server: &Running, version: &str) -> RequestBuilder {
    let body = json!({"version": version, "wait": 20}).to_string();
    server.post(&format!("{POLICY}/lookup"), &body)
}

async fn compute(request: RequestBuilder) -> String {
    let told = told(200, request).await;
    let ticket = told["compute"]["ticket"].as_str();
    ticket.unwrap_or_else(|| panic!("{told} is no right to compute")).to_owned()
}

fn publish(server: &Running, ticket: &str, value: &str) -> RequestBuilder {
    server.put(POLICY, value).header("keyward-ticket", ticket)
}

fn acted(server: &Running, act: &str, body: &Value) -> RequestBuilder {
    server.post(&format!("{POLICY}/{act}"), &body.to_string())
}

async fn two() -> (Data, Running, Running) {
    let data = without_schema("memory:").unwrap();
    let (one, other) = (Running::on(&data).await, Running::on(&data).await);
    (data, one, other)
}

#[tokio::test]
async fn one_client_computes_and_all_get_the_result() {
    let (_data, one, other) = two().await;
    let ticket = compute(lookup(&one, "sha-1")).await;
    let computing = refused(409, "computing", lookup(&other, "sha-1")).await;
    assert_eq!(computing["retryable"], true);
    let waiters: Vec<_> = [&one, &other, &one, &other]
        .map(|server| tokio::spawn(told(200, waiting(server, "sha-1"))))
        .into();
    // It is published at another server than the one that gave the ticket.
    let lease = told(200, acted(&other, "renew", &json!({"ticket": ticket}))).await;
    assert_eq!(lease["ttl"], 30);
    let published = told(200, publish(&other, &ticket, r#"{"n": 12345678901234567890123}"#)).await;
    for waiter in waiters {
        let got = waiter.await.unwrap();
        assert_eq!(got["version"], published["version"]);
        assert_eq!(got["source_version"], "sha-1");
    }
    let fresh = answered(200, lookup(&one, "sha-1")).await.text().await.unwrap();
    assert!(fresh.contains(r#""value":{"n":12345678901234567890123}"#), "{fresh}");
    assert!(fresh.contains(r#""origin":"stored""#), "{fresh}");
    let shown = answered(200, one.get(POLICY)).await;
    assert_eq!(etag(&shown), format!("{:?}", published["version"].as_str().unwrap()));
    // Sent again, whatever the value: one publication.
    let again = told(200, publish(&one, &ticket, "2")).await;
    assert_eq!(again["version"], published["version"]);
    // Another version of the source makes it stale.
    let newer = compute(lookup(&other, "sha-2")).await;
    refused(404, "not-found", one.get(POLICY)).await;
    refused(409, "lock-lost", publish(&one, &ticket, "3")).await;
    told(200, publish(&one, &newer, "4")).await;
    assert_eq!(told(200, lookup(&other, "sha-2")).await["value"], 4);

    let metrics = answered(200, one.get("/metrics")).await.text().await.unwrap();
    for counted in
        ["keyward_cache_hits_total", "keyward_cache_misses_total", "keyward_cache_computed_total"]
    {
        let line = metrics.lines().find(|line| line.starts_with(counted)).unwrap();
        assert_ne!(line, format!("{counted} 0"));
    }
    assert_eq!(metrics.matches("# EOF").count(), 1);
}

#[tokio::test]
async fn a_failure_holds_the_key_back_for_all() {
    let (_data, one, other) = two().await;
    let mut n = 0;
    // The key is held back for a second, which a busy machine may take for two requests.
    let (answer, ticket) = loop {
        n += 1;
        let version = format!("sha-{n}");
        let ticket = compute(lookup(&one, &version)).await;
        let fail = json!({"ticket": ticket, "message": "the page is broken"});
        let held = told(200, acted(&other, "fail", &fail)).await;
        assert_eq!((&held["times"], &held["retry_after"]), (&json!(1), &json!(1)));
        let answer = lookup(&one, &version).send().await.unwrap();
        if answer.status() == 409 {
            break (answer, ticket);
        }
        let late: Value = answer.json().await.unwrap();
        let late = json!({"ticket": late["compute"]["ticket"]});
        answered(204, acted(&one, "release", &late)).await;
    };
    let seconds: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "computation-failed");
    assert_eq!((&problem["message"], &problem["times"]), (&json!("the page is broken"), &json!(1)));
    let exactly = problem["retry_after"].as_f64().unwrap();
    assert!(exactly > 0.0 && exactly < 1.1 && seconds as f64 >= exactly, "{problem} {seconds}");
    assert_eq!(problem["retryable"], true);
    refused(409, "lock-lost", publish(&one, &ticket, "1")).await;
    // Another source is another matter.
    let other_version = compute(lookup(&one, "other")).await;
    answered(204, acted(&one, "release", &json!({"ticket": other_version}))).await;
    compute(lookup(&other, "other")).await;
}

#[tokio::test]
async fn a_right_that_is_given_back_goes_to_whoever_waits() {
    let (_data, one, other) = two().await;
    let ticket = compute(lookup(&one, "1")).await;
    let next = tokio::spawn(compute(waiting(&other, "1")));
    for _ in 0..2 {
        answered(204, acted(&one, "release", &json!({"ticket": ticket}))).await;
    }
    let next = next.await.unwrap();
    let late = refused(409, "lock-lost", publish(&one, &ticket, "1")).await;
    assert_eq!(late["retryable"], false);
    told(200, publish(&one, &next, "2")).await;
}

#[tokio::test]
async fn a_request_sent_again_gets_the_same_right() {
    let (_data, one, other) = two().await;
    let keyed = |server: &Running, version: &str| {
        lookup(server, version).header("idempotency-key", "worker-1")
    };
    let first = compute(keyed(&one, "1")).await;
    let again = compute(keyed(&other, "1")).await;
    // Another request with the same key is another one.
    refused(409, "computing", keyed(&one, "2")).await;
    let (a, b) = tokio::join!(
        told(200, publish(&one, &first, "1")),
        told(200, publish(&other, &again, "2")),
    );
    assert_eq!(a["version"], b["version"], "one publication");
    let value = told(200, one.get(POLICY)).await["value"].clone();
    assert!([json!(1), json!(2)].contains(&value));
    assert_eq!(told(200, keyed(&one, "1")).await["value"], value);
}

#[tokio::test]
async fn what_was_made_from_a_result_goes_with_it() {
    let server = Running::new().await;
    let ticket = compute(lookup(&server, "1")).await;
    told(200, publish(&server, &ticket, "1")).await;
    let french = "/v1/stores/main/cache/translated:fr";
    let body = json!({"version": "1", "depends_on": ["page7:policy:1"]}).to_string();
    let ask = || server.post(&format!("{french}/lookup"), &body);
    let made = compute(ask()).await;
    told(200, server.put(french, r#""un""#).header("keyward-ticket", &made)).await;
    assert_eq!(told(200, ask()).await["value"], "un");
    let dropped = server.request(Method::DELETE, POLICY);
    assert_eq!(told(200, dropped).await, json!({"dropped": 2}));
    refused(404, "not-found", server.get(french)).await;
    // What changes while it is computed from is not cached.
    let ticket = compute(lookup(&server, "1")).await;
    told(200, publish(&server, &ticket, "1")).await;
    let made = compute(ask()).await;
    answered(200, server.request(Method::DELETE, POLICY)).await;
    let told_so = told(200, server.put(french, r#""un""#).header("keyward-ticket", &made)).await;
    assert_eq!(told_so["version"], Value::Null);
    refused(404, "not-found", server.get(french)).await;
}

#[tokio::test]
async fn users_reach_their_own_results_only() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({"name": "ada", "user": "ada"})).await.secret;
    let bob = server.key(&admin, &json!({"name": "bob", "user": "bob"})).await.secret;
    let own = "/v1/stores/main/cache/user:ada:x";
    let ticket = compute(server.post(&format!("{own}/lookup"), "{}").bearer_auth(&ada)).await;
    let publish = |path: &str| server.put(path, "1").header("keyward-ticket", &ticket);
    for request in [
        server.get(own),
        publish(own),
        server.request(Method::DELETE, own),
        server.post(&format!("{own}/lookup"), "{}"),
        server.post(&format!("{own}/renew"), &json!({"ticket": ticket}).to_string()),
        server.post(&format!("{own}/release"), &json!({"ticket": ticket}).to_string()),
        server.post("/v1/stores/main/cache/shared:x/lookup", "{}"),
        server.post("/v1/stores/main/cache/user:bob:x/lookup", r#"{"depends_on":["user:ada:x"]}"#),
    ] {
        refused(403, "forbidden", request.bearer_auth(&bob)).await;
    }
    refused(400, "invalid", publish("/v1/stores/main/cache/user:bob:x").bearer_auth(&bob)).await;
    told(200, publish(own).bearer_auth(&ada)).await;
    // Nor does a ticket that was made up tell what others have.
    let forged = json!({
        "key": "user:bob:x",
        "lock": {"root": "user:ada:x", "id": "x", "token": 1},
        "source": "constant",
        "began": "2026-01-01T00:00:00Z",
    });
    let forged = data_encoding::BASE64URL_NOPAD.encode(forged.to_string().as_bytes());
    let path = "/v1/stores/main/cache/user:bob:x";
    let put = server.put(path, "1").header("keyward-ticket", forged);
    let told = refused(400, "invalid", put.bearer_auth(&bob)).await;
    assert_eq!(told["detail"], "the ticket is of another lock");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let server = Running::new().await;
    for body in [
        r#"{"version":"1","modified":"2026-01-01T00:00:00Z"}"#,
        r#"{"ttl":0}"#,
        r#"{"wait":-1}"#,
        r#"{"lease":0}"#,
        r#"{"depends_on":["page7:policy:1"]}"#,
        r#"{"modified":"yesterday"}"#,
    ] {
        refused(400, "invalid", server.post(&format!("{POLICY}/lookup"), body)).await;
    }
    refused(400, "invalid", server.put(POLICY, "1")).await;
    refused(400, "invalid", publish(&server, "x", "1")).await;
    refused(404, "not-found", server.get(POLICY)).await;
    refused(403, "reserved", server.post("/v1/stores/main/cache/system:x/lookup", "{}")).await;
    answered(200, server.put("/v1/stores/main/entries/page7:policy:1", "1")).await;
    refused(409, "foreign-value", lookup(&server, "1")).await;
    refused(409, "foreign-value", server.request(Method::DELETE, POLICY)).await;
}

#[tokio::test]
async fn a_stop_ends_waits_for_results_at_once() {
    let (_data, one, other) = two().await;
    compute(lookup(&other, "1")).await;
    let waiting = tokio::spawn(refused(503, "stopping", waiting(&one, "1")));
    loop {
        let metrics = answered(200, one.get("/metrics")).await.text().await.unwrap();
        let line = metrics.lines().find(|line| line.starts_with("keyward_locks_contended_total"));
        // Once when it tries, once when it stands in line.
        if line == Some("keyward_locks_contended_total 2") {
            break;
        }
        tokio::task::yield_now().await;
    }
    one.stop().await;
    assert_eq!(waiting.await.unwrap()["retryable"], true);
}
