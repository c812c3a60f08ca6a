//! What removes many things at once is confirmed, in whatever way the client can.

use std::time::Duration;

use keyward::Data;
use keyward::schema::Schema;
use keyward_server::{Config, Limits};
use serde_json::{Value, json};

use super::client::{Agent, Events, Session};
use crate::fixture::{Running, answered, configured, told};
use crate::spaces::{SCHEMA, served};

async fn filled(count: usize) -> Running {
    let server = served().await;
    let agent = Agent::new(&server);
    for n in 0..count {
        let key = format!("log:a:{n:020}");
        let save = json!({ "space": "log", "key": key, "value": n });
        agent.call("record_save", save).await;
        agent.call("agent_set", json!({ "key": format!("t/{n}"), "value": n })).await;
    }
    server
}

async fn left(server: &Running) -> usize {
    let page = told(200, server.get("/v1/spaces/log/records")).await;
    page["items"].as_array().unwrap().len()
}

fn everything() -> Value {
    json!({ "space": "log", "prefix": "log:a:" })
}

#[tokio::test]
async fn a_client_that_cannot_ask_gives_the_number_as_an_argument() {
    let server = filled(3).await;
    let agent = Agent::new(&server);
    for (tool, mut arguments, what) in [
        ("record_delete", everything(), "3 records"),
        ("agent_delete", json!({ "prefix": "t/" }), "3 entries"),
    ] {
        let said = agent.refused(tool, arguments.clone()).await;
        assert!(said.starts_with("unconfirmed") && said.contains(what), "{said}");
        assert!(
            said.contains(&format!("call {tool} again")) && said.contains("confirm: 3"),
            "{said}"
        );
        arguments["confirm"] = json!(2);
        assert!(agent.refused(tool, arguments.clone()).await.contains("confirm: 3"));
        arguments["confirm"] = json!(3);
        assert_eq!(agent.call(tool, arguments.clone()).await["deleted"], 3);
        arguments.as_object_mut().unwrap().remove("confirm");
        assert_eq!(agent.call(tool, arguments).await["deleted"], 0);
    }
    assert_eq!(left(&server).await, 0);
}

#[tokio::test]
async fn a_client_of_the_newest_revision_asks_its_user_and_calls_again() {
    let server = filled(3).await;
    let agent = Agent::that_asks(&server);
    let call = |more: Value| {
        let mut params = json!({ "name": "record_delete", "arguments": everything() });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let asked = agent.result("tools/call", call(json!({}))).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["confirm"];
    assert_eq!(question["method"], "elicitation/create");
    assert!(question["params"]["message"].as_str().unwrap().contains("3 records"), "{asked}");
    let state = asked["requestState"].as_str().unwrap();
    let answer = |action: &str, state: &str| {
        let content = json!({ "confirm": true });
        call(json!({
            "inputResponses": { "confirm": { "action": action, "content": content } },
            "requestState": state,
        }))
    };

    // A state that was changed, or is for something else, is none.
    let forged = state.replace(".3", ".2");
    assert_eq!(agent.error("tools/call", answer("accept", &forged)).await["code"], -32602);
    assert_eq!(agent.error("tools/call", answer("accept", "")).await["code"], -32602);
    let mut other = answer("accept", state);
    other["arguments"]["prefix"] = json!("log:");
    assert_eq!(agent.error("tools/call", other).await["code"], -32602);
    let declined = agent.result("tools/call", answer("decline", state)).await;
    assert_eq!(declined["isError"], true);
    assert_eq!(left(&server).await, 3);

    // One more has come meanwhile: the user is asked again.
    let more = json!({ "space": "log", "values": { "app": "a", "n": 9 }, "value": 9 });
    agent.call("record_save", more).await;
    let again = agent.result("tools/call", answer("accept", state)).await;
    assert!(
        again["inputRequests"]["confirm"]["params"]["message"]
            .as_str()
            .unwrap()
            .contains("4 records")
    );
    let state = again["requestState"].as_str().unwrap();
    let done = agent.result("tools/call", answer("accept", state)).await;
    assert_eq!(done["structuredContent"]["deleted"], 4, "{done}");
    assert_eq!(left(&server).await, 0);
}

#[tokio::test]
async fn the_user_of_an_older_client_is_asked_within_the_call() {
    let server = filled(2).await;
    for (action, expected) in [("decline", 2), ("accept", 0)] {
        let can = json!({ "elicitation": {} });
        let session = Session::begin_as(&server, "2025-06-18", None, can).await;
        let params = json!({ "name": "record_delete", "arguments": everything() });
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
        let mut events = Events::new(answered(200, session.request(&call)).await);
        let asked = events.next().await.unwrap();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert!(asked["params"]["message"].as_str().unwrap().contains("2 records"));
        let answer = json!({ "action": action, "content": { "confirm": true } });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer });
        answered(202, session.request(&answer)).await;
        let done = events.next().await.unwrap();
        assert_eq!(done["result"]["isError"], action == "decline", "{done}");
        assert_eq!(left(&server).await, expected, "{action}");
    }
}

#[tokio::test]
async fn what_was_asked_and_what_was_done_are_two_acts_in_the_audit_log() {
    let server = served().await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await;
    let agent = Agent::with(&server, &ada.secret);
    for name in ["a", "b"] {
        let path = format!("/memories/d/{name}.md");
        let made = json!({ "command": "create", "path": path, "file_text": "x" });
        assert_ne!(agent.called("memory", made).await["isError"], true);
    }
    let can = json!({ "elicitation": {} });
    let session = Session::begin_as(&server, "2025-06-18", Some(&ada.secret), can).await;
    let arguments = json!({ "command": "delete", "path": "/memories/d" });
    let params = json!({ "name": "memory", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    let mut events = Events::new(answered(200, session.request(&call)).await);
    let asked = events.next().await.unwrap();
    let answer = json!({ "action": "accept", "content": { "confirm": true } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer });
    answered(202, session.request(&answer)).await;
    assert_ne!(events.next().await.unwrap()["result"]["isError"], true);
    let acts = loop {
        let log = told(200, server.get("/v1/audit").bearer_auth(&admin.secret)).await;
        let acts = log["items"].as_array().unwrap().clone();
        // Two files were made before.
        let calls = acts.into_iter().filter(|act| act["path"] == "/mcp/memory");
        let calls: Vec<Value> = calls.skip(2).collect();
        if calls.len() == 2 {
            break calls;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&acts[0]["status"], &acts[1]["status"]), (&json!(409), &json!(200)));
    assert_eq!(acts[0].get("keys_total"), None, "nothing was done yet: {acts:?}");
    assert_eq!(acts[1]["keys_total"], 2, "{acts:?}");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_user() {
    let limits = Limits { drain_time_max: Duration::from_secs(60), ..Limits::default() };
    let config = Config { limits, ..configured() };
    let server =
        Running::start(&config, &Data::new(Schema::parse(SCHEMA, "s.toml").unwrap())).await;
    for n in 0..2 {
        let save = json!({ "space": "log", "key": format!("log:a:{n:020}"), "value": n });
        Agent::new(&server).call("record_save", save).await;
    }
    let can = json!({ "elicitation": {} });
    let session = Session::begin_as(&server, "2025-06-18", None, can).await;
    let params = json!({ "name": "record_delete", "arguments": everything() });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    let mut events = Events::new(answered(200, session.request(&call)).await);
    assert_eq!(events.next().await.unwrap()["method"], "elicitation/create");
    drop(session);
    let told = tokio::spawn(async move {
        let mut said = Vec::new();
        while let Some(message) = events.next().await {
            said.push(message);
        }
        said
    });
    let stopping = tokio::time::timeout(Duration::from_secs(30), server.stop());
    assert!(stopping.await.is_ok(), "it waited for the user");
    // Whoever is still told anything is told that nothing was done.
    for message in told.await.unwrap() {
        if message["id"] == 3 {
            let text = message["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.starts_with("stopping"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_model_does_not_confirm_where_its_user_can_be_asked() {
    let server = filled(3).await;
    let mut sure = everything();
    sure["confirm"] = json!(3);
    for (tool, arguments) in
        [("record_delete", sure), ("agent_delete", json!({ "prefix": "t/", "confirm": 3 }))]
    {
        let asked = Agent::that_asks(&server).called(tool, arguments).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
    }
    assert_eq!(left(&server).await, 3);
    // A client that only opens pages for its user cannot ask this.
    let mut agent = Agent::new(&server);
    agent.capabilities = json!({ "elicitation": { "url": {} } });
    let done = agent.call("agent_delete", json!({ "prefix": "t/", "confirm": 3 })).await;
    assert_eq!(done["deleted"], 3);
}
