use serde_json::{Value, json};

use super::{AT, Served};
use crate::fixture::{answered, etag, refused, told};

#[tokio::test]
async fn a_registry_is_listed_and_tells_how_it_stands() {
    let served = Served::with(json!({ "branch": "main" })).await;
    let all = told(200, served.server.get("/v1/registries")).await;
    let about = &all["items"][0];
    assert_eq!(all["items"].as_array().unwrap().len(), 1);
    assert_eq!((&about["name"], &about["store"]), (&json!("policies"), &json!("main")));
    assert_eq!((&about["branch"], &about["nextRun"]), (&json!("main"), &Value::Null));
    let before = told(200, served.server.get(AT)).await;
    assert_eq!((&before["lastRun"], &before["lastCommit"]), (&Value::Null, &Value::Null));
    served.run().await;
    let after = told(200, served.server.get(AT)).await;
    assert_eq!(after["lastCommit"], served.repository.head());
    assert_eq!((&after["lastRun"]["added"], &after["entries"]), (&json!(2), &json!(2)));
    assert_eq!(after["queue"]["ready"], json!({ "count": 2, "more": false }));
    assert_eq!(after["running"], Value::Null);
    refused(404, "unknown-registry", served.server.get("/v1/registries/none")).await;
}

#[tokio::test]
async fn a_registry_with_a_schedule_tells_when_it_is_due() {
    let served = Served::with(json!({ "schedule": { "cron": "0 16 * * *" } })).await;
    let due = told(200, served.server.get(AT)).await["nextRun"].as_str().unwrap().to_owned();
    assert!(due.ends_with("T16:00:00.000000Z"), "{due}");
}

#[tokio::test]
async fn policies_are_listed_searched_and_read_as_they_are_stored() {
    let served = Served::new().await;
    served.run().await;
    let get = |path: &str| served.server.get(&format!("{AT}/policies{path}"));
    let first = told(200, get("?limit=1")).await;
    assert_eq!(first["items"][0]["policyName"], "학칙");
    let next = format!("?limit=1&after={}", first["next"].as_str().unwrap());
    let second = told(200, get(&next)).await;
    assert_eq!(second["items"][0]["policyName"], "휴학");
    let found = told(200, get("?search=lEAVE")).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(found["items"][0]["path"], "b/휴학.md");

    let answer = answered(200, get("/휴학")).await;
    let tag = etag(&answer);
    let entry: Value = answer.json().await.unwrap();
    assert_eq!(entry["sha"], served.repository.id_of("b/휴학.md"));
    assert_eq!(entry["title"], "Leave");
    let known = answered(304, get("/휴학").header("if-none-match", &tag)).await;
    assert_eq!(etag(&known), tag);
    refused(404, "not-found", get("/none")).await;
    refused(400, "invalid", get("?limit=0")).await;
    refused(400, "invalid", get("?cursor=x")).await;
    refused(400, "invalid", get(&format!("?search={}", "x".repeat(201)))).await;
}

#[tokio::test]
async fn a_content_is_what_git_has_and_runs_nothing_in_a_browser() {
    let served = Served::new().await;
    served.run().await;
    let at = format!("{AT}/policies/학칙/content");
    let answer = answered(200, served.server.get(&at)).await;
    let headers = answer.headers().clone();
    assert_eq!(headers["content-type"], "text/markdown; charset=utf-8");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert!(headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    let tag = etag(&answer);
    assert_eq!(tag, format!("\"{}\"", served.repository.id_of("학칙.md")));
    assert_eq!(answer.text().await.unwrap(), "# 학칙 규정\n\n제1조\n");
    answered(304, served.server.get(&at).header("if-none-match", &tag)).await;
    let other = served.server.get(&at).header("if-none-match", "\"0\"");
    answered(200, other).await;
    refused(404, "not-found", served.server.get(&format!("{AT}/policies/none/content"))).await;
}
