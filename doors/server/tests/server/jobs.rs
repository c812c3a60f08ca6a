//! Jobs over HTTP.

use keyward_server::{Config, Limits, without_schema};
use serde_json::{Value, json};

use crate::claims::{act, claim};
use crate::fixture::{Running, answered, configured, refused, told};
use crate::watching::Events;

const JOBS: &str = "/v1/stores/main/jobs";

async fn submit(server: &Running, id: &str) {
    let body = json!({"queue": "q", "payload": 1, "id": id}).to_string();
    answered(201, server.post(JOBS, &body)).await;
}

async fn status(server: &Running, id: &str) -> Value {
    told(200, server.get(&format!("{JOBS}/{id}"))).await["status"].clone()
}

#[tokio::test]
async fn a_job_goes_from_its_submission_to_its_result() {
    let server = Running::new().await;
    let body = r#"{"queue":"q","payload":{"month":1.0},"id":"r/1","timeout_ms":5000}"#;
    let submitted = answered(201, server.post(JOBS, body)).await;
    assert_eq!(submitted.headers()["location"], "/v1/stores/main/jobs/r%2F1");
    assert_eq!(told(200, server.post(JOBS, body)).await["outcome"], "duplicate");
    refused(409, "id-taken", server.post(JOBS, r#"{"queue":"q","payload":2,"id":"r/1"}"#)).await;
    let job = told(200, server.get(&format!("{JOBS}/r%2F1"))).await;
    assert_eq!((&job["queue"], &job["finished"]), (&json!("q"), &Value::Null));
    assert_eq!(job["status"], json!({"activity": {"name": "scheduling", "attempt": 1}}));

    let message = claim(&server, "{}").await.remove(0);
    assert_eq!((&message["job"], &message["timeout_ms"]), (&json!(true), &json!(5_000)));
    let path = "/v1/stores/main/queues/q/messages/r%2F1/progress";
    let progress = json!({"nonce": message["nonce"], "activity": "adding", "done": 1, "total": 3});
    answered(204, server.post(path, &progress.to_string())).await;
    let doing = json!({"name": "adding", "progress": {"done": 1, "total": 3}, "attempt": 1});
    assert_eq!(status(&server, "r%2F1").await, json!({"activity": doing}));
    let complete = "/v1/stores/main/queues/q/messages/r%2F1/complete";
    // A number is a result, and keeps its digits.
    let body = format!(r#"{{"nonce":{},"result":1.50}}"#, message["nonce"]);
    answered(200, server.post(complete, &body)).await;
    let job = answered(200, server.get(&format!("{JOBS}/r%2F1"))).await.text().await.unwrap();
    assert!(job.contains(r#""status":{"result":1.50}"#), "{job}");
    assert!(!job.contains(r#""finished":null"#), "{job}");
    refused(404, "not-found", server.get(&format!("{JOBS}/none"))).await;
}

#[tokio::test]
async fn a_job_without_a_result_leaves_a_trace() {
    let server = Running::new().await;
    submit(&server, "a").await;
    submit(&server, "b").await;
    let message = claim(&server, "{}").await.remove(0);
    answered(200, act(&server, &message, "fail", r#","reason":"no paper""#)).await;
    let failed = json!({"trace": {"kind": "failed", "message": "no paper", "attempts": 1}});
    assert_eq!(status(&server, "a").await, failed);

    let message = claim(&server, "{}").await.remove(0);
    let cancel = |id: &str| server.post(&format!("{JOBS}/{id}/cancel"), "");
    assert_eq!(told(200, cancel("b")).await["outcome"], "cancelled");
    assert_eq!(status(&server, "b").await["trace"]["kind"], "cancelled");
    refused(409, "attempt-lost", act(&server, &message, "complete", "")).await;
    assert_eq!(told(200, cancel("b")).await["outcome"], "finished");
    refused(404, "not-found", cancel("none")).await;
}

#[tokio::test]
async fn a_job_is_submitted_and_cancelled_once_for_each_request() {
    let server = Running::new().await;
    let submit = || {
        let body = r#"{"queue":"q","payload":1,"retention_ms":1}"#;
        server.post(JOBS, body).header("idempotency-key", "s")
    };
    let first = told(201, submit()).await;
    assert_eq!(told(201, submit()).await, first);
    let id = first["id"].as_str().unwrap();
    let cancel =
        |id: &str| server.post(&format!("{JOBS}/{id}/cancel"), "").header("idempotency-key", "c");
    assert_eq!(told(200, cancel(id)).await["outcome"], "cancelled");
    // It was kept for a moment only.
    while server.get(&format!("{JOBS}/{id}")).send().await.unwrap().status() != 404 {}
    assert_eq!(told(200, cancel(id)).await["outcome"], "cancelled");
    let again = answered(201, submit()).await;
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert!(claim(&server, "{}").await.is_empty());
}

#[tokio::test]
async fn jobs_are_listed_in_pages() {
    let server = Running::new().await;
    for id in ["a", "b", "c"] {
        submit(&server, id).await;
    }
    let page = told(200, server.get(&format!("{JOBS}?limit=2"))).await;
    assert_eq!((&page["items"][0]["id"], &page["items"][1]["id"]), (&json!("a"), &json!("b")));
    let next = page["next"].as_str().unwrap();
    let page = told(200, server.get(&format!("{JOBS}?limit=2&cursor={next}"))).await;
    assert_eq!((&page["items"][0]["id"], &page["next"]), (&json!("c"), &Value::Null));
    assert_eq!(page["items"][0]["status"]["activity"]["name"], "scheduling");
    refused(400, "bad-cursor", server.get(&format!("{JOBS}?cursor={next}x"))).await;
}

#[tokio::test]
async fn a_watch_of_a_job_ends_with_it() {
    let server = Running::new().await;
    submit(&server, "j").await;
    let mut events = Events::new(server.get(&format!("{JOBS}/j/watch"))).await;
    let activity = |name: &str| json!({"activity": {"name": name, "attempt": 1}});
    assert_eq!(events.next().await.unwrap().2, activity("scheduling"));
    let message = claim(&server, "{}").await.remove(0);
    assert_eq!(events.next().await.unwrap().2, activity("running"));
    answered(204, act(&server, &message, "progress", r#","activity":"halving""#)).await;
    assert_eq!(events.next().await.unwrap().2, activity("halving"));
    answered(200, act(&server, &message, "complete", r#","result":7"#)).await;
    let (name, _, last) = events.next().await.unwrap();
    assert_eq!((name.as_str(), last), ("status", json!({"result": 7})));
    assert!(events.next().await.is_none());
    // Who comes later is told how it ended.
    let mut late = Events::new(server.get(&format!("{JOBS}/j/watch"))).await;
    assert_eq!(late.next().await.unwrap().2, json!({"result": 7}));
    assert!(late.next().await.is_none());
    refused(404, "not-found", server.get(&format!("{JOBS}/none/watch"))).await;
}

#[tokio::test]
async fn watches_of_jobs_count_among_all_watches_and_end_with_the_server() {
    let limits = Limits { watches_max: 1, ..Limits::default() };
    let config = Config { limits, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    submit(&server, "j").await;
    let mut events = Events::new(server.get(&format!("{JOBS}/j/watch"))).await;
    assert!(events.next().await.is_some());
    refused(503, "overloaded", server.get(&format!("{JOBS}/j/watch"))).await;
    refused(503, "overloaded", server.get("/v1/stores/main/watch")).await;
    server.stop().await;
    assert!(events.next().await.is_none());
}
