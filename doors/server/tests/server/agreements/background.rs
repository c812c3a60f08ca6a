//! What workspaces do while a server runs.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{INBOX, Model, PAGE, POLICY, SHELF, Served};
use crate::fixture::{answered, told};

/// Waits until a list of issues is as it should be.
async fn until(served: &Served, path: &str, good: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..600 {
        let seen = told(200, served.server.get(path)).await;
        if good(&seen) {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path} did not become what it should");
}

#[tokio::test]
async fn a_file_that_changes_makes_its_issues_stale() {
    let served = Served::new().await;
    let page = format!("{SHELF}/pages/lease");
    let job = told(202, served.server.post(&format!("{page}/analysis"), "{}")).await;
    let at = format!("{SHELF}/jobs/{}", job["id"].as_str().unwrap());
    until(&served, &at, |job| !job["finished"].is_null()).await;
    let fresh = told(200, served.server.get(&format!("{page}/issues?stale=false"))).await;
    assert_eq!(fresh["total"], 1, "{fresh}");
    let changed = POLICY.replace("thirty", "forty");
    std::fs::write(served.folder.path().join("lease/leave.md"), changed).unwrap();
    let stale = format!("{page}/issues?stale=true");
    until(&served, &stale, |listed| listed["total"] == 1).await;
}

#[tokio::test]
async fn an_attachment_that_is_replaced_or_detached_makes_its_issues_stale() {
    let served = Served::new().await;
    served.analyze().await;
    answered(200, served.attach("leave", &POLICY.replace("thirty", "forty"))).await;
    let stale = format!("{PAGE}/issues?stale=true");
    let listed = until(&served, &stale, |listed| listed["total"] == 1).await;
    assert_eq!(listed["items"][0]["title"], "Leave is not the same");
    answered(204, served.server.request(Method::DELETE, &format!("{PAGE}/attachments/leave")))
        .await;
    let catalog = told(200, served.server.get(&format!("{PAGE}/policies"))).await;
    assert_eq!(catalog["policies"], json!({}));
}

#[tokio::test]
async fn a_stop_waits_for_tasks_and_the_next_server_goes_on() {
    let served = Served::with(Model::held()).await;
    let task = json!({ "task": "policy", "page": "nda", "source": "leave", "language": "fr" });
    answered(202, served.server.post(&format!("{INBOX}/tasks"), &task.to_string())).await;
    let Served { server, model, .. } = served;
    let letting = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        model.let_answer();
    };
    tokio::join!(server.stop(), letting);
}

#[tokio::test]
async fn what_workspaces_do_is_counted_by_name() {
    let served = Served::new().await;
    served.analyze().await;
    let metrics = answered(200, served.server.get("/metrics")).await.text().await.unwrap();
    let value = |name: &str| -> u64 {
        let line = format!("keyward_agreements_{name}_total{{workspace=\"inbox\"}} ");
        let found = metrics.lines().find_map(|text| text.strip_prefix(&line));
        found.unwrap_or_else(|| panic!("{name}: {metrics}")).parse().unwrap()
    };
    assert!(value("tasks_completed") >= 1);
    assert_eq!((value("tasks_failed"), value("tasks_given_up")), (0, 0));
    assert!(value("input_tokens") > 0 && value("output_tokens") > 0);
}

#[tokio::test]
async fn who_changes_something_stands_in_the_audit_log() {
    let served = Served::new().await;
    let issue = served.issue("Audited", 1).await;
    let id = issue["id"].as_str().unwrap();
    let admin = served.server.admin().await;
    let as_admin = |request: reqwest::RequestBuilder| request.bearer_auth(&admin.secret);
    answered(200, as_admin(served.server.put(PAGE, r#"{"title":"NDA"}"#))).await;
    answered(200, as_admin(served.attach("more", POLICY))).await;
    answered(200, as_admin(served.change(&issue, json!({ "severity": 3 })))).await;
    let task = json!({ "task": "clear", "page": "none" }).to_string();
    let job = told(202, as_admin(served.server.post(&format!("{INBOX}/tasks"), &task))).await;
    let job = format!("job:{}", job["id"].as_str().unwrap());
    let wanted = [
        ("PUT", PAGE.to_owned(), "write", json!(["upload:nda"])),
        ("PUT", format!("{PAGE}/attachments/more"), "write", json!(["upload:nda"])),
        ("PATCH", format!("{PAGE}/issues/{id}"), "write", json!([format!("nda:issue:{id}")])),
        ("POST", format!("{INBOX}/tasks"), "write", json!([job])),
    ];
    let lines = loop {
        let log = told(200, as_admin(served.server.get("/v1/audit"))).await;
        let items = log["items"].as_array().unwrap().clone();
        let of_inbox =
            |line: &&Value| line["target"] == "agreements/inbox" && line["tenant"] != "local";
        let lines: Vec<_> = items.iter().filter(of_inbox).cloned().collect();
        if lines.len() >= wanted.len() {
            break lines;
        }
    };
    for (method, path, act, keys) in wanted {
        let found = lines.iter().find(|line| line["method"] == method && line["path"] == path);
        let line = found.unwrap_or_else(|| panic!("{method} {path}: {lines:?}"));
        assert_eq!((&line["act"], &line["keys"]), (&json!(act), &keys), "{path}");
    }
}
