use std::path::Path;

use keyward::{Json, Key, Put};
use keyward_server::{Config, without_schema};
use serde_json::json;

use super::letters::until;
use super::{AT, Served, ended, registry, repository};
use crate::fixture::{Running, answered, configured, told};

#[tokio::test]
async fn consumers_are_told_while_the_server_runs() {
    let repository = repository();
    let public = repository.beside("public");
    let consumers = json!({ "site": { "export": public } });
    let registries = vec![registry(&repository, json!({ "consumers": consumers }))];
    let served = Served::start(repository, Config { registries, ..configured() }).await;
    served.run().await;
    let worked_off = |queue: &serde_json::Value| {
        ["ready", "delayed", "claimed", "dead"].iter().all(|state| queue[state]["count"] == 0)
    };
    until(&served, "/queue", worked_off).await;
    let exported = |name: &str| public.join(Path::new("policies").join(name).join("policy.md"));
    let text = std::fs::read_to_string(exported("학칙")).unwrap();
    assert!(text.starts_with("---\n") && text.contains("제1조"), "{text}");
    served.repository.remove("b/휴학.md").commit("gone");
    served.run().await;
    until(&served, "/queue", worked_off).await;
    assert!(!exported("휴학").exists());
}

#[tokio::test]
async fn a_run_that_was_due_while_no_server_ran_is_made_good() {
    let repository = repository();
    let data = without_schema("memory:").unwrap();
    let store = data.records("main").await.unwrap().store().clone();
    let row =
        r#"{"moment":"2020-01-01T16:00:00Z","begunAt":"2020-01-01T16:00:00Z","finished":true}"#;
    let key = Key::parse("system:registry:policies:schedule").unwrap();
    store.put(key, Put::new(Json::parse(row).unwrap())).await.unwrap();
    let schedule = json!({ "schedule": { "cron": "0 16 * * *" } });
    let registries = vec![registry(&repository, schedule)];
    let server = Running::start(&Config { registries, ..configured() }, &data).await;
    let served = Served { repository, server, store };
    let mut events = served.events().await;
    let run = ended(&mut events).await;
    assert_eq!((&run["trigger"], &run["added"]), (&json!("schedule"), &json!(2)));
    served.server.stop().await;
}

#[tokio::test]
async fn what_registries_do_is_counted_by_name() {
    let served = Served::new().await;
    served.run().await;
    let metrics = answered(200, served.server.get("/metrics")).await.text().await.unwrap();
    for line in [
        "keyward_registry_added_total{registry=\"policies\"} 2",
        "keyward_registry_runs_succeeded_total{registry=\"policies\"} 1",
        "keyward_registry_run_seconds_count{registry=\"policies\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[tokio::test]
async fn what_is_asked_of_registries_is_in_the_audit_log() {
    let served = Served::new().await;
    let admin = served.server.admin().await;
    let as_admin =
        |path: &str, body: &str| served.server.post(path, body).bearer_auth(&admin.secret);
    answered(200, as_admin(&format!("{AT}/runs?wait=true"), "{}")).await;
    answered(404, as_admin(&format!("{AT}/dead-letters/x/requeue"), "")).await;
    answered(200, as_admin(&format!("{AT}/migrate"), r#"{"dry_run":true}"#)).await;
    let drop = served.server.request(reqwest::Method::DELETE, &format!("{AT}/dead-letters/x"));
    answered(204, drop.bearer_auth(&admin.secret)).await;
    let wanted = [
        ("DELETE", "dead-letters/x", "admin", json!(["dead-letter:x"])),
        ("POST", "migrate", "admin", json!(null)),
        ("POST", "dead-letters/x/requeue", "write", json!(["dead-letter:x"])),
        ("POST", "runs", "write", json!(null)),
    ];
    let log = loop {
        let log = told(200, served.server.get("/v1/audit").bearer_auth(&admin.secret)).await;
        let of_registries = |line: &&serde_json::Value| line["target"] == "registry/policies";
        let items = log["items"].as_array().unwrap().clone();
        let lines: Vec<_> = items.iter().filter(of_registries).cloned().collect();
        if lines.len() >= wanted.len() {
            break lines;
        }
    };
    for (method, path, act, keys) in wanted {
        let found = log
            .iter()
            .find(|line| line["method"] == method && line["path"] == format!("{AT}/{path}"));
        let line = found.unwrap_or_else(|| panic!("{method} {path}: {log:?}"));
        assert_eq!((&line["act"], &line["keys"]), (&json!(act), &keys), "{path}");
    }
}

#[tokio::test]
async fn entries_of_version_1_are_moved_to_their_names() {
    let served = Served::new().await;
    let old = r#"{"title":"Leave","fileNo":7,"status":"active"}"#;
    let key = Key::parse("policy:Leave").unwrap();
    served.store.put(key, Put::new(Json::parse(old).unwrap())).await.unwrap();
    let migrate = |body: &str| served.server.post(&format!("{AT}/migrate"), body);
    let would = told(200, migrate(r#"{"dry_run":true}"#)).await;
    assert_eq!(would["moved"], json!([["Leave", "휴학"]]));
    answered(200, served.server.get("/v1/stores/main/entries/policy:Leave")).await;
    assert_eq!(told(200, migrate("{}")).await["moved"], would["moved"]);
    answered(404, served.server.get("/v1/stores/main/entries/policy:Leave")).await;
    let moved = told(200, served.server.get(&format!("{AT}/policies/휴학"))).await;
    assert_eq!(moved["title"], "Leave");
}
