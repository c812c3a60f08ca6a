use std::time::Duration;

use keyward_server::{Config, Limits};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{AT, Served, ended, registry, repository};
use crate::fixture::{answered, configured, refused, told};
use crate::watching::Events;

#[tokio::test]
async fn a_plan_tells_what_a_run_then_does() {
    let served = Served::new().await;
    let plan = || served.server.post(&format!("{AT}/plan"), "{}");
    let planned = told(200, plan()).await;
    assert_eq!(planned["counts"], json!({ "add": 2, "update": 0, "delete": 0 }));
    assert_eq!(planned["steps"][0]["operation"], "add");
    assert_eq!(planned["commit"], served.repository.head());
    let part = told(200, served.server.post(&format!("{AT}/plan"), r#"{"limit":1}"#)).await;
    assert_eq!((&part["counts"], part["steps"].as_array().unwrap().len()), (&planned["counts"], 1));
    assert_eq!(told(200, served.server.get(AT)).await["lastRun"], Value::Null);

    let run = served.run().await;
    assert_eq!((&run["status"], &run["added"]), (&json!("success"), &json!(2)));
    assert_eq!((&run["trigger"], &run["commit"]), (&json!("hand"), &planned["commit"]));
    assert_eq!(told(200, plan()).await["counts"]["add"], 0);
    let again = told(200, served.server.post(&format!("{AT}/runs?wait=true"), "{}")).await;
    assert_eq!((&again["outcome"], &again["id"]), (&json!("unchanged"), &Value::Null));
    assert_eq!(again["commit"], planned["commit"]);

    let id = run["id"].as_str().unwrap();
    assert_eq!(told(200, served.server.get(&format!("{AT}/runs/{id}"))).await, run);
    let listed = told(200, served.server.get(&format!("{AT}/runs"))).await;
    assert_eq!(listed, json!({ "items": [run], "next": null }));
    refused(404, "not-found", served.server.get(&format!("{AT}/runs/none"))).await;
    for (path, body) in [("plan", r#"{"x":1}"#), ("runs", r#"{"wait":true}"#), ("runs", "[")] {
        refused(400, "invalid", served.server.post(&format!("{AT}/{path}"), body)).await;
    }
    let marked = served.server.post(&format!("{AT}/runs"), "{}").header("idempotency-key", "k");
    refused(400, "invalid", marked).await;
}

#[tokio::test]
async fn a_second_run_is_told_that_one_is_under_way() {
    let served = Served::new().await;
    let guard = served.held().await;
    let busy = served.server.post(&format!("{AT}/runs"), "{}");
    let told_of = refused(409, "busy", busy).await;
    assert_eq!(told_of["retryable"], true);
    assert!(told_of["holder"].is_string() && told_of["since"].is_string(), "{told_of}");
    assert!(told(200, served.server.get(AT)).await["running"]["holder"].is_string());
    // A plan takes no lock.
    answered(200, served.server.post(&format!("{AT}/plan"), "{}")).await;
    guard.release().await.unwrap();
    assert_eq!(served.run().await["added"], 2);
}

#[tokio::test]
async fn much_is_deleted_only_by_who_may_and_says_so() {
    let served = Served::new().await;
    let admin = served.server.admin().await;
    let writer = served
        .server
        .key(&admin, &json!({ "name": "w", "scopes": ["write:registry/policies"] }))
        .await;
    let run = |body: &str, secret: &str| {
        served.server.post(&format!("{AT}/runs?wait=true"), body).bearer_auth(secret)
    };
    told(200, run("{}", &writer.secret)).await;
    served.repository.remove("학칙.md").remove("b").write("c.md", "# c").commit("gone");
    let stopped = refused(409, "mass-delete", run("{}", &writer.secret)).await;
    assert_eq!((&stopped["deletes"], &stopped["entries"]), (&json!(2), &json!(2)));
    let allowed = r#"{"allow_mass_delete":true}"#;
    let needs = refused(403, "forbidden", run(allowed, &writer.secret)).await;
    assert_eq!(needs["needs"], "admin:registry/policies");
    let done = told(200, run(allowed, &admin.secret)).await;
    assert_eq!((&done["run"]["deleted"], &done["run"]["added"]), (&json!(2), &json!(1)));
    let failed =
        told(200, served.server.get(&format!("{AT}/runs")).bearer_auth(&admin.secret)).await;
    assert_eq!(failed["items"][1]["status"], "failed");
}

#[tokio::test]
async fn runs_are_told_as_they_begin_go_on_and_end() {
    let served = Served::new().await;
    for n in 0..60 {
        served.repository.write(&format!("many/p{n}.md"), format!("# {n}\n"));
    }
    served.repository.commit("many");
    let mut events = Events::new(served.server.get(&format!("{AT}/runs/events"))).await;
    let (name, began, _) = events.next().await.unwrap();
    assert_eq!(name, "reached");
    let run = served.run().await;
    assert_eq!(run["added"], 62);
    let (mut steps, mut ids) = (Vec::new(), Vec::new());
    loop {
        let (name, id, data) = events.next().await.unwrap();
        match name.as_str() {
            "progress" => steps.push(data["step"].as_str().unwrap().to_owned()),
            "run" => {
                assert_eq!(data["id"], run["id"]);
                ids.push(id);
                if ids.len() == 2 {
                    assert_eq!(data, run);
                    break;
                }
            }
            _ => {}
        }
    }
    // Some may be left out, and the end of the run may come before the last of them.
    let order = ["fetching", "comparing", "reading", "applying"];
    let places: Vec<_> =
        steps.iter().map(|step| order.iter().position(|known| known == step)).collect();
    assert!(!places.is_empty() && !places.contains(&None) && places.is_sorted(), "{steps:?}");
    drop(events);

    // From an event on, and from before all of them.
    for (from, count) in [(&ids[0], 1), (&began, 2)] {
        let resumed = served.server.get(&format!("{AT}/runs/events"));
        let mut events = Events::new(resumed.header("last-event-id", from)).await;
        for _ in 0..count {
            assert_eq!(ended(&mut events).await["id"], run["id"]);
        }
    }
    let bad = served.server.get(&format!("{AT}/runs/events")).header("last-event-id", "x");
    refused(400, "invalid", bad).await;
}

#[tokio::test]
async fn a_run_goes_on_when_nobody_waits_and_ends_with_the_server() {
    // A forge that never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let repository = repository();
    let more = json!({ "repository": format!("http://{address}/p.git") });
    let limits = Limits {
        answer_time_max: Duration::from_secs(3),
        drain_time_max: Duration::from_millis(100),
        ..Limits::default()
    };
    let config = Config { limits, registries: vec![registry(&repository, more)], ..configured() };
    let served = Served::start(repository, config).await;
    let begun = answered(202, served.server.post(&format!("{AT}/runs"), "{}")).await;
    assert_eq!(begun.headers()["location"], format!("{AT}/runs"));
    let begun: Value = begun.json().await.unwrap();
    assert_eq!((&begun["outcome"], &begun["id"]), (&json!("running"), &Value::Null));
    refused(409, "busy", served.server.post(&format!("{AT}/runs?wait=true"), "{}")).await;
    refused(409, "timed-out", served.server.post(&format!("{AT}/plan"), "{}")).await;
    served.server.stop().await;
}

#[tokio::test]
async fn a_source_that_cannot_be_read_is_told_of_and_changes_nothing() {
    let served = Served::new().await;
    served.run().await;
    std::fs::remove_dir_all(served.repository.path().join(".git/objects")).unwrap();
    let run = served.server.post(&format!("{AT}/runs?wait=true"), "{}");
    refused(502, "source-failed", run).await;
    let standing = told(200, served.server.get(AT)).await;
    assert_eq!(standing["lastRun"]["status"], "failed");
    answered(200, served.server.get(&format!("{AT}/policies/학칙"))).await;
}
