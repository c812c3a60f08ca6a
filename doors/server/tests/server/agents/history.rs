//! Earlier versions, and what runs did.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::{NAMESPACE, by, delete, entry, made};
use crate::fixture::{Running, answered, refused, told};

fn in_run(run: &str, request: RequestBuilder) -> RequestBuilder {
    by("planner", request).header("keyward-run", run)
}

async fn versions(server: &Running, key: &str) -> Vec<Value> {
    let history = told(200, server.get(&format!("{}/history", entry(key)))).await;
    history["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn history_tells_who_did_what_and_gives_it_back() {
    let server = Running::new().await;
    for n in 1..=3 {
        let body = json!({"value": n, "metadata": {"n": n}}).to_string();
        let put = in_run(&format!("r{n}"), server.put(&entry("k"), &body));
        assert!(put.send().await.unwrap().status().is_success());
    }
    let past = versions(&server, "k").await;
    assert_eq!(past.len(), 3);
    assert_eq!((&past[0]["value"], &past[2]["metadata"]), (&json!(3), &json!({"n": 1})));
    assert_eq!((&past[0]["agent"], &past[0]["run"]), (&json!("planner"), &json!("r3")));
    assert_eq!(past[0]["user"], "local");
    let page = told(200, server.get(&format!("{}/history?limit=2", entry("k")))).await;
    let older = format!("{}/history?limit=2&before={}", entry("k"), page["next"]);
    assert_eq!(told(200, server.get(&older)).await["items"], json!([past[2]]));

    let restore = |n: &Value| server.post(&format!("{}/history/{n}/restore", entry("k")), "");
    assert_eq!(told(200, restore(&past[2]["number"])).await["created"], false);
    let document = told(200, server.get(&entry("k"))).await;
    assert_eq!((&document["value"], &document["metadata"]), (&json!(1), &json!({"n": 1})));
    refused(400, "bad-change", restore(&json!(999))).await;
    answered(200, delete(&server, &entry("k"))).await;
    assert_eq!(told(201, restore(&past[1]["number"])).await["created"], true);
    assert_eq!(told(200, server.get(&entry("k"))).await["value"], 2);
    refused(412, "precondition-failed", restore(&past[0]["number"]).header("if-match", "\"1\""))
        .await;
}

#[tokio::test]
async fn a_redacted_version_says_nothing_any_more() {
    let server = Running::new().await;
    made(&server, "k", &json!("secret")).await;
    answered(200, server.put(&entry("k"), r#"{"value":"public"}"#)).await;
    let past = versions(&server, "k").await;
    let path = |n: &Value, act: &str| format!("{}/history/{n}/{act}", entry("k"));
    let (now, then) = (&past[0]["number"], &past[1]["number"]);
    refused(400, "bad-change", server.post(&path(now, "redact"), "")).await;
    let redact = || by("cleaner", server.post(&path(then, "redact"), ""));
    assert_eq!(told(200, redact()).await, json!({"redacted": true}));
    assert_eq!(told(200, redact()).await, json!({"redacted": false}));
    let past = versions(&server, "k").await;
    assert_eq!(past[1]["redacted"]["agent"], "cleaner");
    assert!(!json!(past).to_string().contains("secret"));
    refused(400, "bad-change", server.post(&path(then, "restore"), "")).await;
    assert_eq!(told(200, server.get(&entry("k"))).await["value"], "public");
}

#[tokio::test]
async fn a_run_has_a_log_of_what_it_did() {
    let server = Running::new().await;
    let long = "x".repeat(500);
    let body = json!({ "value": long }).to_string();
    answered(201, in_run("r:1/2", server.put(&entry("k"), &body))).await;
    answered(200, in_run("r:1/2", server.get(&format!("{}/value", entry("k"))))).await;
    answered(404, in_run("r:1/2", server.get(&entry("none")))).await;
    answered(200, by("planner", server.get(&entry("k")))).await;
    answered(200, in_run("other", delete(&server, &entry("k")))).await;

    let log = told(200, server.get("/v1/agents/runs/r:1%2F2/operations")).await;
    let lines = log["items"].as_array().unwrap();
    let told_of: Vec<_> =
        lines.iter().map(|line| (line["op"].as_str().unwrap(), &line["found"])).collect();
    let (yes, no) = (json!(true), json!(false));
    assert_eq!(told_of, [("set", &no), ("get", &yes), ("entry", &no)]);
    assert_eq!(lines[0]["preview"].as_str().unwrap().chars().count(), 200);
    for line in lines {
        assert_eq!(
            (&line["agent"], &line["namespace"]),
            (&json!("planner"), &json!("files:apache/repo"))
        );
    }
    let first = told(200, server.get("/v1/agents/runs/r:1%2F2/operations?limit=2")).await;
    let cursor = first["next"].as_str().unwrap();
    let rest = format!("/v1/agents/runs/r:1%2F2/operations?limit=2&cursor={cursor}");
    assert_eq!(told(200, server.get(&rest)).await["items"], json!([lines[2]]));
    let elsewhere = format!("/v1/agents/runs/other/operations?limit=2&cursor={cursor}");
    refused(400, "bad-cursor", server.get(&elsewhere)).await;
    assert_eq!(told(200, server.get("/v1/agents/runs")).await["items"], json!(["other", "r:1/2"]));
    let unknown = told(200, server.get("/v1/agents/runs/none/operations")).await;
    assert_eq!(unknown, json!({"items": [], "next": null}));
}

#[tokio::test]
async fn the_names_of_agents_and_runs_are_bounded() {
    let server = Running::new().await;
    let long = "x".repeat(257);
    for (name, value) in [
        ("keyward-agent", &*long),
        ("keyward-run", &*long),
        ("keyward-agent", ""),
        ("keyward-agent", "a\tb"),
    ] {
        let request = server.get(&format!("{NAMESPACE}/keys")).header(name, value);
        refused(400, "invalid", request).await;
    }
    let twice = server.get(&format!("{NAMESPACE}/keys")).header("keyward-agent", "a");
    refused(400, "invalid", twice.header("keyward-agent", "b")).await;
    answered(200, by("a b/c:ü", server.get(&format!("{NAMESPACE}/keys")))).await;
}
