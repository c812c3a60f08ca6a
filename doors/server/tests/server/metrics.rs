//! The metrics at `/metrics`, and who may see the names of queues there.

use std::collections::BTreeSet;

use keyward_server::without_schema;
use serde_json::{Value, json};

use crate::fixture::{Running, answered, refused};
use crate::{agreements, registries};

const MESSAGES: &str = "/v1/stores/main/queues/payroll/messages";

/// The metrics of a scrape by sample: `name{labels}` and the value.
fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map(|value| value.split(' ').next().unwrap().parse().unwrap())
}

async fn scraped(server: &Running, key: Option<&str>) -> String {
    let request = server.get("/metrics");
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    answered(200, request).await.text().await.unwrap()
}

/// A server on an embedded store, with a queue of two messages, one of them delayed.
async fn with_queue(folder: &tempfile::TempDir) -> Running {
    let url = format!("embedded:{}", folder.path().join("store").display());
    let server = Running::on(&without_schema(&url).unwrap()).await;
    let body = r#"{"messages":[{"payload":1},{"payload":2,"delay_ms":60000}]}"#;
    answered(200, server.post(MESSAGES, body)).await;
    server
}

#[tokio::test]
async fn the_build_the_process_and_the_disk_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_queue(&folder).await;
    let text = scraped(&server, None).await;
    let build = format!("keyward_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(value(&text, &build), Some(1.0), "{text}");
    let of = |name: &str| value(&text, name).unwrap_or_else(|| panic!("{name}: {text}"));
    assert!(of("keyward_store_size_bytes{store=\"main\"}") >= 4096.0);
    let free = of("keyward_store_free_disk_bytes{store=\"main\"}");
    assert!(free > 0.0 && free <= of("keyward_store_disk_bytes{store=\"main\"}"));
    if cfg!(target_os = "linux") {
        assert!(of("process_cpu_seconds_total") > 0.0);
        assert!(of("process_resident_memory_bytes") > 1e6);
        assert!(of("process_open_fds") >= 3.0 && of("process_max_fds") >= of("process_open_fds"));
        assert!(of("process_threads") >= 1.0 && of("process_start_time_seconds") > 1.5e9);
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[tokio::test]
async fn messages_are_counted_and_names_of_queues_are_for_those_who_may_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_queue(&folder).await;
    let admin = server.admin().await;
    let key = |scopes: &str| json!({"name": "k", "scopes": [scopes]});
    let reader = server.key(&admin, &key("read:store/main")).await.secret;
    let other = server.key(&admin, &key("read:store/other")).await.secret;
    let user = server.key(&admin, &json!({"name": "u", "user": "ada"})).await.secret;
    let ready = "keyward_queue_messages{store=\"main\",queue=\"payroll\",state=\"ready\"}";
    for (key, sees_names) in [
        (Some(&admin.secret), true),
        (Some(&reader), true),
        (Some(&other), false),
        (Some(&user), false),
        (None, false),
    ] {
        let text = scraped(&server, key.map(String::as_str)).await;
        for (state, count) in [("ready", 1.0), ("delayed", 1.0), ("claimed", 0.0), ("dead", 0.0)] {
            let all = format!("keyward_messages{{store=\"main\",state=\"{state}\"}}");
            assert_eq!(value(&text, &all), Some(count), "{state}: {text}");
        }
        assert!(value(&text, "keyward_messages_oldest_seconds{store=\"main\"}").is_some());
        assert_eq!(text.contains("payroll"), sees_names, "{text}");
        assert_eq!(value(&text, ready), sees_names.then_some(1.0), "{text}");
    }
    refused(401, "unauthenticated", server.get("/metrics").bearer_auth("kw_wrong")).await;
}

#[tokio::test]
async fn the_local_user_of_a_server_without_keys_sees_queues_and_other_sites_do_not() {
    let server = Running::new().await;
    answered(200, server.post(MESSAGES, r#"{"messages":[{"payload":1}]}"#)).await;
    assert!(scraped(&server, None).await.contains("queue=\"payroll\""));
    // A name that another site lets point at this machine.
    let rebound = answered(200, server.get("/metrics").header("host", "evil.example")).await;
    assert!(!rebound.text().await.unwrap().contains("payroll"));
}

#[tokio::test]
async fn scrapes_within_seconds_share_one_count() {
    let server = Running::new().await;
    let enqueue = || server.post(MESSAGES, r#"{"messages":[{"payload":1}]}"#);
    let ready = "keyward_messages{store=\"main\",state=\"ready\"}";
    answered(200, enqueue()).await;
    assert_eq!(value(&scraped(&server, None).await, ready), Some(1.0));
    answered(200, enqueue()).await;
    assert_eq!(value(&scraped(&server, None).await, ready), Some(1.0));
}

/// The names of metrics on a server, as queries use them.
fn names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        else {
            continue;
        };
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            "info" => &["_info"],
            _ => &[""],
        };
        names.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    names
}

/// The words of a text that look like metrics of ours.
fn mentioned(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let ours = |word: &&str| word.starts_with("keyward_") || word.starts_with("process_");
    words.filter(ours).map(str::to_owned).collect()
}

fn file(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    std::fs::read_to_string(format!("{root}{path}")).unwrap()
}

/// Every metric that a server can have: those with labels are there once they have a value.
async fn all_names() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let server = with_queue(&folder).await;
    let admin = server.admin().await;
    refused(401, "unauthenticated", server.get("/v1/stores")).await;
    let mut all = names(&scraped(&server, Some(&admin.secret)).await);
    let registries = registries::Served::new().await;
    all.extend(names(&scraped(&registries.server, None).await));
    let agreements = agreements::Served::new().await;
    all.extend(names(&scraped(&agreements.server, None).await));
    // A test of certificates looks whether it is there.
    all.insert("keyward_tls_certificate_not_after_seconds".to_owned());
    all
}

#[tokio::test]
async fn every_metric_is_in_the_table_and_every_one_of_the_table_exists() {
    let docs = file("docs/server.md");
    let table = docs.split("\n### Metrics\n").nth(1).expect("server.md has a section Metrics");
    let table = table.split("\n### ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let documented: BTreeSet<String> =
        rows.flat_map(|row| mentioned(row.split('|').nth(1).unwrap())).collect();
    // Of a histogram the table has the name alone.
    let base = |name: &String| {
        let of = |suffix: &str| name.strip_suffix(suffix).filter(|it| it.ends_with("_seconds"));
        of("_bucket").or(of("_sum")).or(of("_count")).unwrap_or(name).to_owned()
    };
    let existing: BTreeSet<String> = all_names().await.iter().map(base).collect();
    let missing: Vec<_> = existing.difference(&documented).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    let gone: Vec<_> = documented.difference(&existing).collect();
    assert!(gone.is_empty(), "not on the server: {gone:?}");
}

#[tokio::test]
async fn the_dashboard_and_the_alert_rules_name_metrics_that_exist() {
    let existing = all_names().await;
    let dashboard: Value = serde_json::from_str(&file("deploy/grafana/keyward.json")).unwrap();
    let mut queries = String::new();
    let panels = dashboard["panels"].as_array().unwrap();
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
    {
        queries.push_str(target["expr"].as_str().unwrap());
        queries.push('\n');
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        queries.push_str(variable["query"].as_str().unwrap_or_default());
        queries.push('\n');
    }
    assert!(mentioned(&queries).len() > 20, "{queries}");
    let rules = file("deploy/prometheus/keyward.rules.yml");
    let rules: String = rules
        .lines()
        .filter(|line| !line.trim().starts_with('#'))
        .fold(String::new(), |text, line| text + line + "\n");
    for (place, text) in [("the dashboard", &queries), ("the rules", &rules)] {
        let unknown: Vec<String> =
            mentioned(text).into_iter().filter(|name| !existing.contains(name)).collect();
        assert!(unknown.is_empty(), "{place}: {unknown:?}");
    }
    for document in ["docs/deployment.md", "docs/server.md"] {
        let text = file(document);
        let unknown: Vec<String> = mentioned(&text)
            .into_iter()
            .filter(|name| name.ends_with("_total") && !existing.contains(name))
            .collect();
        assert!(unknown.is_empty(), "{document}: {unknown:?}");
    }
}

/// What stands behind this in lines of a file.
fn lines_after(text: &str, start: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| line.trim().strip_prefix(start)).map(str::to_owned).collect()
}

#[test]
fn every_alert_has_a_test() {
    let alerts = lines_after(&file("deploy/prometheus/keyward.rules.yml"), "- alert: ");
    let tested = lines_after(&file("deploy/prometheus/keyward.rules.test.yml"), "alertname: ");
    assert!(alerts.len() > 20, "{alerts:?}");
    assert_eq!(alerts, tested);
}

/// What of a description can say how long a request waits: a parameter of it, or a member of its body.
fn waits(openapi: &Value, operation: &Value) -> bool {
    let target = |it: &'_ Value| match it["$ref"].as_str() {
        Some(place) => openapi.pointer(place.trim_start_matches('#')).unwrap().clone(),
        None => it.clone(),
    };
    let is_wait = |name: &str| name == "wait" || name == "wait_ms";
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let bodies = operation["requestBody"]["content"].as_object().into_iter().flatten();
    parameters.map(target).any(|it| is_wait(it["name"].as_str().unwrap()))
        || bodies.map(|(_, body)| target(&body["schema"])).any(|schema| {
            schema["properties"].as_object().is_some_and(|all| all.keys().any(|it| is_wait(it)))
        })
}

/// The test file of the rules has a slow series for each route, and no alert for them: promtool looks at that.
#[test]
fn every_route_that_waits_on_purpose_is_in_the_test_of_the_alert_for_slow_requests() {
    let openapi: Value = serde_json::from_str(&file("docs/openapi.json")).unwrap();
    let tests = file("deploy/prometheus/keyward.rules.test.yml");
    let mut waiting = 0;
    for (path, operations) in openapi["paths"].as_object().unwrap() {
        let mut operations = operations.as_object().unwrap().values();
        if path.ends_with("/watch") || operations.any(|operation| waits(&openapi, operation)) {
            let series = format!(
                "keyward_http_request_seconds_bucket{{job=\"keyward\", instance=\"waiting\", \
                 route=\"{path}\", le=\"+Inf\"}}"
            );
            assert!(tests.contains(&series), "there is no series {series}");
            waiting += 1;
        }
    }
    assert!(waiting >= 10, "{waiting}");
}

#[test]
fn the_dashboard_counts_messages_of_a_shared_store_once() {
    let dashboard = file("deploy/grafana/keyward.json");
    let counts: Vec<&str> = dashboard
        .lines()
        .filter(|line| {
            line.contains("keyward_messages{") || line.contains("keyward_queue_messages{")
        })
        .collect();
    assert!(counts.len() >= 4, "{counts:?}");
    for line in counts {
        let before = &line[..line.find("keyward_").unwrap()];
        assert!(before.trim_end_matches('(').trim_end().ends_with(')'), "{line}");
        assert!(before.contains("max by (store"), "{line}");
    }
}

#[tokio::test]
async fn a_count_that_is_cut_off_is_told() {
    let server = Running::new().await;
    let truncated = "keyward_messages_truncated{store=\"main\"}";
    assert_eq!(value(&scraped(&server, None).await, truncated), Some(0.0));
    let server = Running::new().await;
    let messages: Vec<Value> = (0..500).map(|n| json!({ "payload": n })).collect();
    let body = json!({ "messages": messages }).to_string();
    for _ in 0..21 {
        answered(200, server.post(MESSAGES, &body)).await;
    }
    let text = scraped(&server, None).await;
    assert_eq!(value(&text, truncated), Some(1.0), "{text}");
    assert_eq!(value(&text, "keyward_messages{store=\"main\",state=\"ready\"}"), Some(10_000.0));
}

/// Run with Debian's promtool, which testing/services brings.
mod promtool {
    use std::process::Command;

    fn promtool(arguments: &[&str]) {
        let program = std::env::var("KEYWARD_TEST_PROMTOOL").expect(
            "KEYWARD_TEST_PROMTOOL names no promtool: run the tests through testing/services/run",
        );
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus");
        let ran = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
        let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(ran.status.success(), "{}{}", told(&ran.stdout), told(&ran.stderr));
    }

    #[test]
    fn the_alert_rules_are_sound() {
        promtool(&["check", "rules", "keyward.rules.yml"]);
    }

    #[test]
    fn the_alerts_fire_when_they_must_and_not_otherwise() {
        promtool(&["test", "rules", "keyward.rules.test.yml"]);
    }
}
