//! Conditions on versions, and requests that are sent again.

use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{NAMESPACE, by, delete, entry, made, patch};
use crate::fixture::{Running, answered, etag, refused, told};

fn keyed(request: RequestBuilder, chosen: &str) -> RequestBuilder {
    request.header("idempotency-key", chosen)
}

#[tokio::test]
async fn what_a_request_expects_must_be_so() {
    let server = Running::new().await;
    let put = |value: i32| server.put(&entry("k"), &json!({ "value": value }).to_string());
    let failed = |request| refused(412, "precondition-failed", request);
    failed(put(1).header("if-match", "*")).await;
    failed(put(1).header("if-match", "\"17\"")).await;
    failed(delete(&server, &entry("k")).header("if-match", "*")).await;
    let first = etag(&answered(201, put(1).header("if-none-match", "*")).await);
    failed(put(2).header("if-none-match", "*")).await;
    let second = etag(&answered(200, put(2).header("if-match", &first)).await);
    failed(put(3).header("if-match", &first)).await;
    failed(patch(&server, &entry("k"), &json!({"value": 3})).header("if-match", &first)).await;
    failed(delete(&server, &entry("k")).header("if-match", &first)).await;
    let either = format!("{first}, {second}");
    let third = etag(&answered(200, put(3).header("if-match", either)).await);

    let known = server.get(&entry("k")).header("if-none-match", &third);
    let unmodified = answered(304, known).await;
    assert_eq!(etag(&unmodified), third);
    answered(200, server.get(&entry("k")).header("if-none-match", &first)).await;
    let request = delete(&server, &entry("k")).header("if-match", &third);
    assert_eq!(told(200, request).await, json!({"deleted": true}));
}

#[tokio::test]
async fn ten_of_one_request_at_once_make_one_change() {
    let server = Running::new().await;
    let set = json!({"entries": [{"key": "k", "value": {"n": 5}}, {"key": "l", "value": 1}]});
    let requests = |kind: &str| match kind {
        "put" => server.put(&entry("k"), r#"{"value":{"n":1}}"#),
        "replace" => server.put(&entry("k"), r#"{"value":{"n":2}}"#),
        "patch" => patch(&server, &entry("k"), &json!({"value": {"m": 1}})),
        "set_many" => server.post(&format!("{NAMESPACE}/set"), &set.to_string()),
        "restore" => server.post(&format!("{}/history/1/restore", entry("k")), ""),
        _ => delete(&server, &entry("k")),
    };
    let kinds = ["put", "replace", "patch", "set_many", "restore", "delete"];
    for (done, kind) in kinds.into_iter().enumerate() {
        let answers = join_all((0..10).map(|_| keyed(requests(kind), kind).send())).await;
        let mut made = 0;
        let mut bodies = Vec::new();
        for answer in answers {
            let answer = answer.unwrap();
            made += usize::from(!answer.headers().contains_key("idempotency-replayed"));
            let status = answer.status().as_u16();
            bodies.push((status, answer.text().await.unwrap()));
        }
        assert_eq!(made, 1, "{kind}: {bodies:?}");
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{kind}: {bodies:?}");
        assert_eq!(bodies[0].0, if kind == "put" { 201 } else { 200 }, "{kind}: {bodies:?}");
        let history = told(200, server.get(&format!("{}/history", entry("k")))).await;
        assert_eq!(history["items"].as_array().unwrap().len(), done + 1, "{kind}");
    }
}

#[tokio::test]
async fn a_replay_answers_as_the_first_time_whatever_came_later() {
    let server = Running::new().await;
    let put = || keyed(server.put(&entry("k"), r#"{"value":1}"#), "first");
    let first = answered(201, put()).await.text().await.unwrap();
    answered(200, server.put(&entry("k"), r#"{"value":2}"#)).await;
    let removed = || keyed(delete(&server, &entry("k")), "gone");
    assert_eq!(told(200, removed()).await, json!({"deleted": true}));
    let nothing = || keyed(delete(&server, &entry("k")), "nothing");
    assert_eq!(told(200, nothing()).await, json!({"deleted": false}));
    made(&server, "k", &json!(3)).await;

    let replay = answered(201, put()).await;
    assert_eq!(replay.headers()["idempotency-replayed"], "true");
    assert_eq!(replay.text().await.unwrap(), first);
    assert_eq!(told(200, removed()).await, json!({"deleted": true}));
    assert_eq!(told(200, nothing()).await, json!({"deleted": false}));
    assert_eq!(told(200, server.get(&entry("k"))).await["value"], 3);
    for other in [
        server.put(&entry("k"), r#"{"value":2}"#),
        server.put(&entry("l"), r#"{"value":1}"#),
        delete(&server, &entry("k")),
        server.put(&format!("{}?user=local", entry("k")), r#"{"value":1}"#),
    ] {
        refused(422, "idempotency-reuse", keyed(other, "first")).await;
    }
}

#[tokio::test]
async fn racing_sets_keep_the_metadata_of_all() {
    let server = Running::new().await;
    let sets = (0..20).map(|n| {
        let body = json!({"value": n, "metadata": {format!("m{n}"): n}}).to_string();
        by(&format!("agent{n}"), server.sent(Method::PUT, &entry("k"), &body)).send()
    });
    for answer in join_all(sets).await {
        assert!(answer.unwrap().status().is_success());
    }
    let document = told(200, server.get(&entry("k"))).await;
    let all: Value = (0..20).map(|n| (format!("m{n}"), json!(n))).collect();
    assert_eq!(document["metadata"], all);
}
