//! Tasks, and the jobs that do them.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::{INBOX, Model, PAGE, Served};
use crate::fixture::{answered, refused, told};
use crate::watching::Events;

/// Submits a task.
fn submit(served: &Served, task: &Value) -> reqwest::RequestBuilder {
    served.server.post(&format!("{INBOX}/tasks"), &task.to_string())
}

#[tokio::test]
async fn a_task_is_watched_from_its_queue_to_its_result() {
    let served = Served::with(Model::held()).await;
    let task = json!({ "task": "policy", "page": "nda", "source": "leave", "language": "fr" });
    let accepted = answered(202, submit(&served, &task)).await;
    let place = accepted.headers()["location"].to_str().unwrap().to_owned();
    let mut events = Events::new(served.server.get(&format!("{place}/watch"))).await;
    let mut seen = Vec::new();
    let result = loop {
        let (name, _, status) = events.next().await.unwrap();
        assert_eq!(name, "status");
        if let Some(activity) = status["activity"]["name"].as_str() {
            seen.push(activity.to_owned());
            if activity == "translating" {
                served.model.let_answer();
            }
        } else {
            break status["result"].clone();
        }
    };
    assert_eq!((&result["language"], &result["title"]), (&json!("fr"), &json!("Congé")));
    assert!(seen.contains(&"translating".to_owned()), "{seen:?}");
    assert!(events.next().await.is_none());
    // Who comes later is told how it ended.
    let mut late = Events::new(served.server.get(&format!("{place}/watch"))).await;
    assert_eq!(late.next().await.unwrap().2["result"], result);
    let job = told(200, served.server.get(&place)).await;
    assert_eq!((&job["queue"], &job["status"]["result"]), (&json!("agreements"), &result));
}

#[tokio::test]
async fn a_status_is_told_within_a_tenth_of_a_second() {
    let served = Served::with(Model::held()).await;
    let mut times = Vec::new();
    for language in ["fr", "de", "es", "it", "pt"] {
        let task =
            json!({ "task": "policy", "page": "nda", "source": "leave", "language": language });
        let job = told(202, submit(&served, &task)).await;
        let at = format!("{INBOX}/jobs/{}", job["id"].as_str().unwrap());
        let mut events = Events::new(served.server.get(&format!("{at}/watch"))).await;
        while events.next().await.unwrap().2["activity"]["name"] != "translating" {}
        let cancelled = Instant::now();
        answered(200, served.server.request(Method::DELETE, &at)).await;
        let (_, _, status) = events.next().await.unwrap();
        times.push(cancelled.elapsed());
        assert_eq!(status["trace"]["kind"], "cancelled", "{status}");
        assert!(events.next().await.is_none());
    }
    // A machine that has much to do may be late now and then.
    assert!(times.iter().min().unwrap() < &Duration::from_millis(100), "{times:?}");
}

#[tokio::test]
async fn a_cancelled_task_is_dropped_and_the_next_goes_on() {
    let served = Served::with(Model::held()).await;
    let job = told(202, served.server.post(&format!("{PAGE}/analysis"), "{}")).await;
    let at = format!("{INBOX}/jobs/{}", job["id"].as_str().unwrap());
    let mut events = Events::new(served.server.get(&format!("{at}/watch"))).await;
    while events.next().await.unwrap().2["activity"]["name"] != "analyzing" {}
    let cancel = || served.server.request(Method::DELETE, &at);
    assert_eq!(told(200, cancel()).await["outcome"], "cancelled");
    assert_eq!(told(200, cancel()).await["outcome"], "finished");
    assert_eq!(told(200, served.server.get(&at)).await["status"]["trace"]["kind"], "cancelled");
    // Its lock is free again.
    served.model.let_answer();
    let ended = served.analyze().await;
    assert_eq!(ended["status"]["result"]["found"], 1, "{ended}");
}

#[tokio::test]
async fn an_analysis_finds_issues_once_and_is_remembered() {
    let served = Served::new().await;
    refused(404, "not-found", served.server.get(&format!("{PAGE}/analysis"))).await;
    let ended = served.analyze().await;
    let result = &ended["status"]["result"];
    assert_eq!((&result["found"], &result["policies"]), (&json!(1), &json!(1)), "{ended}");
    let last = told(200, served.server.get(&format!("{PAGE}/analysis"))).await;
    assert_eq!(last["fingerprint"], result["fingerprint"]);
    assert_eq!(last["made"]["receipt"]["model"], "scripted-demo");
    let listed = told(200, served.server.get(&format!("{PAGE}/issues?source=leave"))).await;
    let issue = &listed["items"][0];
    assert_eq!(issue["severity"], 3);
    let reference = &issue["description"][1];
    let start = super::POLICY.find("thirty days").unwrap();
    assert_eq!((&reference["source"], &reference["offset"]), (&json!("leave"), &json!(start)));
    assert_eq!(served.analyze().await["status"]["result"]["unchanged"], true);
    let again =
        told(202, served.server.post(&format!("{PAGE}/analysis"), r#"{"again":true}"#)).await;
    assert_eq!(served.ended(&again).await["status"]["result"]["found"], 0);
    let none = "/v1/agreements/inbox/pages/none/analysis";
    refused(404, "unknown-page", served.server.post(none, "{}")).await;
    refused(404, "unknown-page", served.server.get(none)).await;
    refused(400, "invalid", served.server.post(&format!("{PAGE}/analysis"), r#"{"more":1}"#)).await;
}

#[tokio::test]
async fn the_same_request_is_one_job() {
    let served = Served::new().await;
    let policies = json!({ "task": "policies", "page": "nda" });
    let marked = |task: &Value| submit(&served, task).header("idempotency-key", "k1");
    let first = told(202, marked(&policies)).await;
    let again = answered(202, marked(&policies)).await;
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(again.json::<Value>().await.unwrap()["id"], first["id"]);
    refused(409, "id-taken", marked(&json!({ "task": "issues", "page": "nda" }))).await;
    let ended = served.ended(&first).await;
    assert_eq!(ended["status"]["result"]["leave"]["name"], "leave.md", "{ended}");
    let other = told(202, submit(&served, &policies)).await;
    assert_ne!(other["id"], first["id"]);
}

#[tokio::test]
async fn every_task_can_be_submitted_and_others_are_refused() {
    let served = Served::new().await;
    let issue = served.issue("Task", 1).await;
    let id = &issue["id"];
    for (task, member, wanted) in [
        (
            json!({ "task": "classify", "page": "nda", "issue": id, "severity": 3 }),
            "severity",
            json!(3),
        ),
        (
            json!({ "task": "annotate", "page": "nda", "issue": id, "annotations": "x" }),
            "annotations",
            json!("x"),
        ),
        (
            json!({ "task": "transition", "page": "nda", "issue": id, "to": "active" }),
            "state",
            json!("active"),
        ),
        (
            json!({ "task": "archive", "page": "nda", "issue": id, "archived": true }),
            "archived",
            json!(true),
        ),
    ] {
        let job = told(202, submit(&served, &task)).await;
        let ended = served.ended(&job).await;
        assert!(ended["status"]["result"].is_object(), "{ended}");
        let shown = served.server.get(&format!("{PAGE}/issues/{}", id.as_str().unwrap()));
        assert_eq!(told(200, shown).await[member], wanted, "{task}");
    }
    let failing = json!({ "task": "policy", "page": "nda", "source": "none" });
    let ended = served.ended(&told(202, submit(&served, &failing)).await).await;
    let trace = &ended["status"]["trace"];
    assert_eq!(trace["kind"], "failed");
    assert!(trace["message"].as_str().unwrap().starts_with("unknown-policy: "), "{trace}");
    for task in [json!({ "task": "clear", "page": "nda" }), json!({ "task": "purge", "now": true })]
    {
        let ended = served.ended(&told(202, submit(&served, &task)).await).await;
        assert!(ended["status"]["result"].is_object(), "{ended}");
    }
    for task in [
        json!({ "task": "none", "page": "nda" }),
        json!({ "task": "policies" }),
        json!({ "task": "policies", "page": "job" }),
        json!({ "page": "nda" }),
    ] {
        refused(400, "invalid", submit(&served, &task)).await;
    }
}

#[tokio::test]
async fn jobs_of_others_are_none_here() {
    let served = Served::new().await;
    let body = r#"{"queue":"mails","payload":1,"id":"m1"}"#;
    answered(201, served.server.post("/v1/stores/inbox/jobs", body)).await;
    for id in ["m1", "none"] {
        let at = format!("{INBOX}/jobs/{id}");
        refused(404, "not-found", served.server.get(&at)).await;
        refused(404, "not-found", served.server.request(Method::DELETE, &at)).await;
        refused(404, "not-found", served.server.get(&format!("{at}/watch"))).await;
    }
}
