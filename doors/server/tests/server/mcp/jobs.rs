//! Tools for jobs.

use serde_json::{Value, json};

use super::client::{Agent, messages};
use crate::fixture::{Running, told};
use crate::spaces::served;

async fn submitted(server: &Running, id: &str) {
    let job = json!({ "queue": "prints", "payload": { "pages": 12 }, "id": id });
    told(201, server.post("/v1/stores/app/jobs", &job.to_string())).await;
}

#[tokio::test]
async fn jobs_are_shown_listed_and_cancelled() {
    let server = served().await;
    let agent = Agent::new(&server);
    for id in ["print-1", "print-2"] {
        submitted(&server, id).await;
    }
    let job = agent.call("job_get", json!({ "id": "print-1" })).await;
    assert_eq!((&job["queue"], &job["finished"]), (&json!("prints"), &json!(null)));
    assert_eq!(job["status"]["activity"]["name"], "scheduling");
    let page = agent.call("job_list", json!({ "limit": 1 })).await;
    assert_eq!(page["items"][0]["id"], "print-1");
    let rest = agent.call("job_list", json!({ "limit": 5, "cursor": page["next"] })).await;
    assert_eq!(rest["items"][0]["id"], "print-2");
    let cancel = json!({ "id": "print-1" });
    assert_eq!(agent.call("job_cancel", cancel.clone()).await["outcome"], "cancelled");
    assert_eq!(agent.call("job_cancel", cancel.clone()).await["outcome"], "finished");
    let job = agent.call("job_get", json!({ "id": "print-1", "wait": 20 })).await;
    assert_eq!(job["status"]["trace"]["kind"], "cancelled");
    for tool in ["job_get", "job_cancel"] {
        let said = agent.refused(tool, json!({ "id": "none" })).await;
        assert!(said.starts_with("not-found") && said.contains("job_list"), "{said}");
    }
}

#[tokio::test]
async fn whoever_waits_for_a_job_is_told_how_far_it_is() {
    let server = served().await;
    submitted(&server, "print-1").await;
    let agent = Agent::new(&server);
    let params = json!({
        "name": "job_get",
        "arguments": { "id": "print-1", "wait": 0.2 },
        "_meta": { "progressToken": "t1" },
    });
    let told = messages(agent.request("tools/call", params).send().await.unwrap()).await;
    let progress: Vec<&Value> =
        told.iter().filter(|it| it["method"] == "notifications/progress").collect();
    assert_eq!(progress.len(), 1, "{told:?}");
    assert_eq!(progress[0]["params"]["progressToken"], "t1");
    assert_eq!(progress[0]["params"]["message"], "scheduling");
    assert_eq!(told.last().unwrap()["result"]["structuredContent"]["id"], "print-1");
}
