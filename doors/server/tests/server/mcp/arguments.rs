//! Arguments: what a tool's schema does not name, the tool refuses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::{Agent, Session};
use crate::spaces::served;

/// Each tool with arguments that it takes.
fn calls() -> Vec<(&'static str, Value)> {
    let log = json!({ "space": "log", "key": "log:a:00000000000000000001" });
    let kept = |more: Value| with(json!({ "registry": "none" }), more);
    let page = |more: Value| with(json!({ "workspace": "none", "page": "p" }), more);
    vec![
        ("agent_get", json!({ "key": "k" })),
        ("agent_set", json!({ "key": "k", "value": 1 })),
        ("agent_patch", json!({ "key": "k", "value": {} })),
        ("agent_delete", json!({ "key": "k" })),
        ("agent_keys", json!({})),
        ("agent_namespaces", json!({})),
        ("agent_search", json!({})),
        ("agent_history", json!({ "key": "k" })),
        ("agent_restore", json!({ "key": "k", "to": 1 })),
        ("memory", json!({ "command": "view", "path": "/memories" })),
        ("record_save", with(log.clone(), json!({ "value": 1 }))),
        ("record_get", log.clone()),
        ("record_list", json!({ "space": "log" })),
        ("record_query", json!({ "space": "log", "allow_scan": true })),
        ("record_near", json!({ "space": "places", "lat": 1, "lon": 1, "radius_m": 1 })),
        ("record_delete", log),
        ("lock_acquire", json!({ "root": "page:7" })),
        ("lock_renew", json!({ "ticket": "t" })),
        ("lock_release", json!({ "ticket": "t" })),
        ("job_get", json!({ "id": "j" })),
        ("job_list", json!({})),
        ("job_cancel", json!({ "id": "j" })),
        ("registry_status", kept(json!({}))),
        ("registry_list_policies", kept(json!({}))),
        ("registry_get_policy", kept(json!({ "policy": "p" }))),
        ("registry_search", kept(json!({ "text": "t" }))),
        ("registry_plan", kept(json!({}))),
        ("registry_run", kept(json!({}))),
        ("agreement_read_policy", page(json!({}))),
        ("agreement_list_issues", page(json!({}))),
        ("agreement_make_policy", page(json!({ "source": "s" }))),
        ("agreement_move_issue", page(json!({ "issue": "i", "note": "n" }))),
        ("agreement_analyze", page(json!({}))),
    ]
}

fn with(mut arguments: Value, more: Value) -> Value {
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

/// Whether a refusal says that there is no argument of this name.
fn names(said: &str, argument: &str) -> bool {
    said.starts_with("invalid")
        && (said.contains(&format!("no argument called {argument:?}"))
            || said.contains(&format!("no parameter called {argument:?}"))
            || said.contains(&format!("unknown field `{argument}`")))
}

#[tokio::test]
async fn every_tool_refuses_an_argument_that_nothing_names() {
    let server = served().await;
    let agent = Agent::new(&server);
    let session = Session::begin(&server, "2025-11-25", None).await;
    let calls = calls();
    for name in agent.tool_names().await {
        assert!(calls.iter().any(|(tool, _)| *tool == name), "{name} is not called here");
    }
    for (tool, arguments) in calls {
        let arguments = with(arguments, json!({ "made_up": "x" }));
        let said = agent.refused(tool, arguments.clone()).await;
        assert!(names(&said, "made_up"), "{tool}: {said}");
        // Those of older clients come by another way.
        let call = json!({ "name": tool, "arguments": arguments });
        let answer = session.ask("tools/call", call).await;
        let said = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(names(said, "made_up"), "{tool}: {answer}");
    }
}

#[tokio::test]
async fn every_tool_refuses_the_arguments_of_others_that_its_schema_does_not_name() {
    let server = served().await;
    let agent = Agent::new(&server);
    let tools = agent.tools().await;
    let of = |tool: &Value| -> BTreeSet<String> {
        tool["inputSchema"]["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let mut all: BTreeSet<String> = tools.iter().flat_map(of).collect();
    all.extend(["user", "agent", "run", "as", "tenant", "dry_run", "force"].map(str::to_owned));
    for (name, arguments) in calls() {
        let Some(tool) = tools.iter().find(|tool| tool["name"] == name) else { continue };
        for other in all.difference(&of(tool)) {
            let said = agent.refused(name, with(arguments.clone(), json!({ other: "x" }))).await;
            assert!(names(&said, other), "{name} {other}: {said}");
        }
    }
}

#[tokio::test]
async fn whose_entries_are_meant_is_said_only_by_those_who_may_choose() {
    let server = served().await;
    let (get, memories) =
        (json!({ "key": "k" }), json!({ "command": "view", "path": "/memories" }));
    let refuses = async |agent: &Agent<'_>, user: &str| {
        for (tool, arguments) in [("agent_get", &get), ("memory", &memories)] {
            let arguments = with(arguments.clone(), json!({ "user": user }));
            let said = agent.refused(tool, arguments).await;
            assert!(names(&said, "user"), "{tool} {user}: {said}");
        }
        for tool in agent.tools().await {
            assert!(tool["inputSchema"]["properties"]["user"].is_null(), "{tool}");
        }
    };
    // Over HTTP an operator may name anybody, and an agent of the same machine may not.
    let bobs = "/v1/agents/namespaces/default/entries/k?user=bob";
    crate::fixture::answered(201, server.put(bobs, r#"{"value":"bob's"}"#)).await;
    let local = Agent::new(&server);
    refuses(&local, "bob").await;
    refuses(&local, "local").await;
    assert_eq!(local.call("agent_get", get.clone()).await, json!({ "found": false }));

    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await;
    let ada = Agent::with(&server, &ada.secret);
    refuses(&ada, "bob").await;
    refuses(&ada, "ada").await;
    let operator = Agent::with(&server, &admin.secret);
    let bobs = with(get.clone(), json!({ "user": "bob" }));
    assert_eq!(operator.call("agent_get", bobs).await["entry"]["value"], "bob's");
}
