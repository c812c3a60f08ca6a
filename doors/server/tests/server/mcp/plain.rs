//! Calls in their plain form are answered without the protocol's library, and as the library answers them.

use serde_json::{Value, json};

use super::client::Agent;
use crate::fixture::answered;
use crate::spaces::served;

/// Metadata that nobody looks at: with it a call is not in the plain form.
fn other() -> Value {
    json!({ "example.com/other": 1 })
}

/// An answer without what differs from one server, and from one moment, to another.
fn settled(mut answer: Value) -> Value {
    const FLEETING: [&str; 8] = [
        "version",
        "_rev",
        "createdAt",
        "updatedAt",
        "lastAccessedAt",
        "at",
        "requestState",
        "ticket",
    ];
    match &mut answer {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                let fleeting = FLEETING.contains(&name.as_str()) && value.is_string();
                *value = if fleeting { json!("…") } else { settled(value.take()) };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = settled(item.take())),
        // What an answer says as text is JSON itself, or words.
        Value::String(text) => {
            if let Ok(inner @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
                answer = settled(inner);
            }
        }
        _ => {}
    }
    answer
}

#[tokio::test]
async fn answers_are_the_same_as_those_of_the_library() {
    let calls = [
        ("agent_get", json!({ "key": "a" })),
        ("agent_set", json!({ "key": "a", "value": { "n": 1.5, "t": "\"ü\n\\" } })),
        ("agent_set", json!({ "key": "b", "value": null, "metadata": { "by": "x" } })),
        ("agent_get", json!({ "key": "a" })),
        ("agent_get", json!({})),
        ("agent_get", json!({ "key": "a", "colour": "red" })),
        ("agent_get", json!({ "key": 7 })),
        ("agent_set", json!({ "key": "a", "value": 1, "if_version": "999999" })),
        ("agent_patch", json!({ "key": "none", "value": { "a": 1 } })),
        ("agent_keys", json!({ "limit": 10 })),
        ("agent_namespaces", json!(null)),
        ("agent_search", json!({ "filter": { "value.n": 1.5 } })),
        ("agent_delete", json!({ "prefix": "" })),
        ("memory", json!({ "command": "view", "path": "/memories" })),
        ("memory", json!({ "command": "view", "path": "/elsewhere" })),
        ("memory", json!({ "command": "create", "path": "/memories/a.md", "file_text": "one\n" })),
        ("record_save", json!({ "space": "log", "key": "log:a:00000000000000000001", "value": 1 })),
        ("record_get", json!({ "space": "log", "key": "log:a:00000000000000000001" })),
        ("record_list", json!({ "space": "no-such-space" })),
        ("job_get", json!({ "id": "none" })),
        ("lock_release", json!({ "ticket": "none" })),
        ("agent_delete", json!({ "key": "a" })),
    ];
    let (one, another) = (served().await, served().await);
    for asks in [false, true] {
        let agent = |server| if asks { Agent::that_asks(server) } else { Agent::new(server) };
        let (plain, library) = (agent(&one), agent(&another));
        for (tool, arguments) in &calls {
            let call = json!({ "name": tool, "arguments": arguments });
            let mut with_more = call.clone();
            with_more["_meta"] = other();
            let plain = plain.ask("tools/call", call).await;
            let library = library.ask("tools/call", with_more).await;
            assert_eq!(settled(plain), settled(library), "{tool} {arguments}");
        }
    }
}

#[tokio::test]
async fn the_head_of_an_answer_is_the_same_and_its_id_is_the_clients() {
    let server = served().await;
    let agent = Agent::new(&server);
    let call = |meta: Value| json!({ "name": "agent_namespaces", "_meta": meta });
    let plain = answered(200, agent.request("tools/call", call(json!({})))).await;
    let library = answered(200, agent.request("tools/call", call(other()))).await;
    assert_eq!(plain.headers()["content-type"], library.headers()["content-type"]);
    let (plain, library) = (plain.text().await.unwrap(), library.text().await.unwrap());
    assert_eq!(plain, library, "byte for byte");
    assert!(plain.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":"#), "{plain}");
}

#[tokio::test]
async fn the_structure_of_an_answer_has_every_digit() {
    let server = served().await;
    let agent = Agent::new(&server);
    const DIGITS: &str = r#"{"big":123456789012345678901234567890.10}"#;
    let set = format!(r#"{{"value":{DIGITS}}}"#);
    answered(201, server.put("/v1/agents/namespaces/default/entries/digits", &set)).await;
    let mut get = json!({ "name": "agent_get", "arguments": { "key": "digits" } });
    let structure = async |call: &Value| {
        let answer = answered(200, agent.request("tools/call", call.clone())).await;
        let answer = answer.text().await.unwrap();
        answer.split_once("structuredContent").unwrap().1.to_owned()
    };
    let exact = format!(r#""value":{DIGITS}"#);
    assert!(structure(&get).await.contains(&exact));
    // The library has other numbers.
    get["_meta"] = other();
    assert!(!structure(&get).await.contains(&exact));
}

#[tokio::test]
async fn a_number_that_many_clients_cannot_read_is_told_of_and_not_sent() {
    let server = served().await;
    let agent = Agent::new(&server);
    let entry = "/v1/agents/namespaces/default/entries/far";
    answered(201, server.put(entry, r#"{"value":1e400}"#)).await;
    let said = agent.refused("agent_get", json!({ "key": "far" })).await;
    assert!(said.starts_with("unsupported"), "{said}");
}

#[tokio::test]
async fn what_a_call_changed_was_done_by_its_agent_in_its_run_in_either_way() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (key, more) in [("a", json!({})), ("b", other())] {
        let mut call = json!({ "name": "agent_set", "arguments": { "key": key, "value": 1 } });
        call["_meta"] = more;
        call["_meta"]["keyward/run"] = json!("run-7");
        let _ = agent.result("tools/call", call).await;
    }
    for key in ["a", "b"] {
        let item = agent.call("agent_history", json!({ "key": key })).await["items"][0].clone();
        assert_eq!((&item["agent"], &item["run"]), (&json!("planner"), &json!("run-7")), "{key}");
    }
}
