//! Dead letters over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use crate::claims::{act, claim};
use crate::fixture::{Running, answered, refused, told};

const QUEUE: &str = "/v1/stores/main/queues/q";
const DEAD: &str = "/v1/stores/main/queues/q/dead-letters";

/// A queue with dead letters, each for a reason of its own.
async fn with_dead_letters(ids: &[&str]) -> Running {
    let server = Running::new().await;
    for id in ids {
        bury(&server, id).await;
    }
    server
}

async fn bury(server: &Running, id: &str) {
    let body = json!({"messages": [{"payload": 1.5, "id": id}]}).to_string();
    answered(200, server.post(&format!("{QUEUE}/messages"), &body)).await;
    let message = claim(server, "{}").await.remove(0);
    let more = format!(r#","reason":"because of {id}""#);
    assert_eq!(told(200, act(server, &message, "fail", &more)).await["outcome"], "failed");
}

async fn ids(server: &Running) -> Vec<Value> {
    let page = told(200, server.get(DEAD)).await;
    page["items"].as_array().unwrap().iter().map(|dead| dead["id"].clone()).collect()
}

#[tokio::test]
async fn dead_letters_are_looked_at_with_their_reasons_and_attempts() {
    let server = with_dead_letters(&["a", "b", "c"]).await;
    let dead = told(200, server.get(&format!("{DEAD}/b"))).await;
    assert_eq!(dead["reason"], "because of b");
    assert_eq!((&dead["payload"], &dead["retry_count"]), (&json!(1.5), &json!(1)));
    assert_eq!(dead["history"][0]["error"], "because of b");
    assert_eq!(dead["history"][0]["by"], "local");
    refused(404, "not-found", server.get(&format!("{DEAD}/none"))).await;
    let page = told(200, server.get(&format!("{DEAD}?limit=2"))).await;
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let next = page["next"].as_str().unwrap();
    let page = told(200, server.get(&format!("{DEAD}?limit=2&cursor={next}"))).await;
    assert_eq!((&page["items"][0]["id"], &page["next"]), (&json!("c"), &Value::Null));
    assert_eq!(told(200, server.get(QUEUE)).await["dead"], json!({"count": 3, "more": false}));
}

#[tokio::test]
async fn a_dead_letter_is_put_back_once_for_each_request() {
    let server = with_dead_letters(&["a"]).await;
    let requeue = |chosen: &str| {
        server.post(&format!("{DEAD}/a/requeue"), "").header("idempotency-key", chosen)
    };
    assert_eq!(told(200, requeue("one")).await["outcome"], "requeued");
    let message = claim(&server, "{}").await.remove(0);
    assert_eq!(message["attempt"], 1);
    answered(200, act(&server, &message, "fail", r#","reason":"again""#)).await;
    // The old request has been done, and is not done again.
    assert_eq!(answered(200, requeue("one")).await.headers()["idempotency-replayed"], "true");
    assert_eq!(ids(&server).await, ["a"]);
    answered(200, requeue("two")).await;
    assert!(ids(&server).await.is_empty());
    refused(404, "not-found", requeue("three")).await;
}

#[tokio::test]
async fn dead_letters_are_put_back_some_at_a_time() {
    let names = ["a1", "a2", "a3", "b1", "b2"];
    let server = with_dead_letters(&names).await;
    let requeue = |body: &Value| server.post(&format!("{DEAD}/requeue"), &body.to_string());
    let some = told(200, requeue(&json!({"reason": "of a", "limit": 2}))).await;
    assert_eq!(some["requeued"], 2);
    let rest = json!({"reason": "of a", "limit": 1_000, "cursor": some["next"]});
    assert_eq!(told(200, requeue(&rest)).await, json!({"requeued": 1, "next": null}));
    assert_eq!(ids(&server).await, ["b1", "b2"]);
    assert_eq!(told(200, requeue(&json!({}))).await["requeued"], 2);
    assert_eq!(told(200, server.get(QUEUE)).await["ready"]["count"], 5);
    refused(400, "invalid", requeue(&json!({})).header("idempotency-key", "k")).await;
    refused(400, "invalid", requeue(&json!({"limit": 0}))).await;
}

#[tokio::test]
async fn a_dead_letter_is_dropped_once_for_each_request() {
    let server = with_dead_letters(&["a"]).await;
    let drop = || {
        let delete = server.request(Method::DELETE, &format!("{DEAD}/a"));
        delete.header("idempotency-key", "k")
    };
    answered(204, drop()).await;
    assert!(ids(&server).await.is_empty());
    bury(&server, "a").await;
    assert_eq!(answered(204, drop()).await.headers()["idempotency-replayed"], "true");
    assert_eq!(ids(&server).await, ["a"]);
    answered(204, server.request(Method::DELETE, &format!("{DEAD}/a"))).await;
    assert!(ids(&server).await.is_empty());
}
