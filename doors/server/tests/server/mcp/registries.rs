//! Registries, as agents reach them.

use serde_json::{Value, json};

use super::client::{Agent, messages};
use crate::fixture::Running;
use crate::registries::Served;

fn of_registries(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| name.starts_with("registry_")).collect()
}

#[tokio::test]
async fn tools_are_there_for_who_can_do_something_with_them() {
    let without = Running::new().await;
    assert!(of_registries(Agent::new(&without).tool_names().await).is_empty());
    let served = Served::new().await;
    let server = &served.server;
    let reading =
        ["registry_status", "registry_list_policies", "registry_get_policy", "registry_search"];
    let all = [&reading[..], &["registry_plan", "registry_run"]].concat();
    assert_eq!(of_registries(Agent::new(server).tool_names().await), all);
    let admin = server.admin().await;
    for (body, expected) in [
        (json!({ "name": "r", "scopes": ["read:registry/policies"] }), &reading[..]),
        (json!({ "name": "w", "scopes": ["write:store/main"] }), &all[..]),
        (json!({ "name": "o", "scopes": ["write:registry/other"] }), &[]),
        (json!({ "name": "u", "user": "ada", "scopes": ["write:*"] }), &[]),
    ] {
        let key = server.key(&admin, &body).await;
        let agent = Agent::with(server, &key.secret);
        assert_eq!(of_registries(agent.tool_names().await), expected, "{body}");
        for tool in &all {
            let arguments = match *tool {
                "registry_get_policy" => json!({ "registry": "policies", "policy": "학칙" }),
                "registry_search" => json!({ "registry": "policies", "text": "a" }),
                _ => json!({ "registry": "policies" }),
            };
            if !expected.contains(tool) {
                let said = agent.refused(tool, arguments).await;
                assert!(said.starts_with("forbidden: "), "{tool}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn policies_are_planned_run_listed_searched_and_read() {
    let served = Served::new().await;
    let agent = Agent::new(&served.server);
    let plan = agent.call("registry_plan", json!({ "limit": 1 })).await;
    assert_eq!((&plan["counts"]["add"], plan["steps"].as_array().unwrap().len()), (&json!(2), 1));
    let run = agent.call("registry_run", json!({ "wait": 20 })).await;
    assert_eq!((&run["outcome"], &run["run"]["added"]), (&json!("ended"), &json!(2)));
    let again = agent.call("registry_run", json!({ "registry": "policies", "wait": 20 })).await;
    assert_eq!(again["outcome"], "unchanged");
    let status = agent.call("registry_status", json!({})).await;
    assert_eq!(status["lastCommit"], served.repository.head());
    let listed = agent.call("registry_list_policies", json!({ "limit": 1 })).await;
    assert_eq!(listed["items"][0]["policyName"], "학칙");
    let rest = agent.call("registry_list_policies", json!({ "after": listed["next"] })).await;
    assert_eq!(rest["items"][0]["policyName"], "휴학");
    let found = agent.call("registry_search", json!({ "text": "leave" })).await;
    assert_eq!(found["items"][0]["policyName"], "휴학");
    let read = agent.call("registry_get_policy", json!({ "policy": "학칙" })).await;
    assert_eq!((&read["entry"]["title"], &read["truncated"]), (&json!("학칙 규정"), &json!(false)));
    assert_eq!(read["content"], "# 학칙 규정\n\n제1조\n");
    let entry = json!({ "policy": "학칙", "content": false });
    assert_eq!(agent.call("registry_get_policy", entry).await["content"], Value::Null);
    let said = agent.refused("registry_get_policy", json!({ "policy": "none" })).await;
    assert!(said.starts_with("not-found: ") && said.contains("registry_search"), "{said}");
    let said = agent.refused("registry_search", json!({})).await;
    assert!(said.starts_with("invalid: "), "{said}");
}

#[tokio::test]
async fn a_long_content_is_told_in_part() {
    let served = Served::new().await;
    served.repository.write("long.md", "é".repeat(300_000)).commit("long");
    served.run().await;
    let read =
        Agent::new(&served.server).call("registry_get_policy", json!({ "policy": "long" })).await;
    assert_eq!(read["truncated"], true);
    assert_eq!(read["content"].as_str().unwrap().len(), 256 * 1024);
}

#[tokio::test]
async fn much_is_deleted_only_after_it_was_confirmed_by_who_may() {
    let served = Served::new().await;
    served.run().await;
    served.repository.remove("학칙.md").remove("b").write("c.md", "# c").commit("gone");
    let agent = Agent::new(&served.server);
    let said = agent.refused("registry_run", json!({ "wait": 20 })).await;
    assert!(said.starts_with("mass-delete: ") && said.contains("registry_plan"), "{said}");
    let allowed = json!({ "wait": 20, "allow_mass_delete": true });
    let said = agent.refused("registry_run", allowed.clone()).await;
    assert!(said.starts_with("unconfirmed: ") && said.contains("confirm: 2"), "{said}");
    let wrong = json!({ "wait": 20, "allow_mass_delete": true, "confirm": 1 });
    assert!(agent.refused("registry_run", wrong).await.starts_with("unconfirmed: "));
    let admin = served.server.admin().await;
    let scopes = json!({ "name": "w", "scopes": ["write:registry/policies"] });
    let writer = served.server.key(&admin, &scopes).await;
    let confirmed = json!({ "wait": 20, "allow_mass_delete": true, "confirm": 2 });
    let writer = Agent::with(&served.server, &writer.secret);
    let said = writer.refused("registry_run", confirmed.clone()).await;
    assert!(said.starts_with("forbidden: "), "{said}");
    let agent = Agent::with(&served.server, &admin.secret);
    let done = agent.call("registry_run", confirmed).await;
    assert_eq!((&done["run"]["deleted"], &done["run"]["added"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn whoever_waits_for_a_run_is_told_how_far_it_is() {
    let served = Served::new().await;
    let agent = Agent::new(&served.server);
    let params = json!({
        "name": "registry_run",
        "arguments": { "wait": 20 },
        "_meta": { "progressToken": "t1" },
    });
    let told = messages(agent.request("tools/call", params).send().await.unwrap()).await;
    let progress: Vec<&Value> =
        told.iter().filter(|it| it["method"] == "notifications/progress").collect();
    assert!(!progress.is_empty(), "{told:?}");
    assert_eq!(progress[0]["params"]["message"], "fetching");
    assert_eq!(told.last().unwrap()["result"]["structuredContent"]["outcome"], "ended");
}

#[tokio::test]
async fn a_policy_is_a_resource_for_who_reaches_it() {
    let served = Served::new().await;
    served.run().await;
    let agent = Agent::new(&served.server);
    let templates = agent.result("resources/templates/list", json!({})).await.to_string();
    assert!(templates.contains("keyward://registries/{registry}/policies/{policy}"), "{templates}");
    let uri = "keyward://registries/policies/policies/%ED%95%99%EC%B9%99";
    let read = agent.result("resources/read", json!({ "uri": uri })).await;
    assert_eq!(read["contents"][0]["text"], "# 학칙 규정\n\n제1조\n");
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
    let complete = |name: &str, value: &str| {
        json!({
            "ref": { "type": "ref/resource", "uri": "keyward://registries/{registry}/policies/{policy}" },
            "argument": { "name": name, "value": value },
            "context": { "arguments": { "registry": "policies" } },
        })
    };
    let words = agent.result("completion/complete", complete("registry", "pol")).await;
    assert_eq!(words["completion"]["values"], json!(["policies"]));
    let words = agent.result("completion/complete", complete("policy", "휴")).await;
    assert_eq!(words["completion"]["values"], json!(["휴학"]));

    let admin = served.server.admin().await;
    let key = served.server.key(&admin, &json!({ "name": "u", "user": "ada" })).await;
    let eve = Agent::with(&served.server, &key.secret);
    let absent = "keyward://registries/none/policies/x";
    let there = eve.error("resources/read", json!({ "uri": uri })).await;
    let none = eve.error("resources/read", json!({ "uri": absent })).await;
    assert_eq!(there["message"], none["message"]);
    let words = eve.result("completion/complete", complete("policy", "")).await;
    assert_eq!(words["completion"]["values"], json!([]));
}
