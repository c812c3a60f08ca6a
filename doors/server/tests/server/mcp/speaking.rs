//! Revisions of the protocol, and what a server says of itself.

use keyward_server::without_schema;
use serde_json::{Value, json};

use super::client::{Agent, NEWEST, Session, messages};
use crate::fixture::{Running, answered};
use crate::spaces::served;

#[tokio::test]
async fn a_client_of_the_newest_revision_needs_no_session() {
    let server = served().await;
    let agent = Agent::new(&server);
    let about = agent.result("server/discover", json!({})).await;
    let versions: Vec<_> = about["supportedVersions"].as_array().unwrap().iter().collect();
    for version in [NEWEST, "2025-11-25", "2025-06-18", "2025-03-26"] {
        assert!(versions.contains(&&json!(version)), "{about}");
    }
    let name = &about["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
    assert_eq!(name, "keyward", "{about}");
    for capability in ["tools", "resources", "prompts", "completions"] {
        assert!(about["capabilities"][capability].is_object(), "{about}");
    }
    assert_eq!(about["capabilities"]["resources"]["subscribe"], true);
    assert!(about["instructions"].as_str().unwrap().contains("agent_namespaces"));
    assert!(!agent.tools().await.is_empty());
}

#[tokio::test]
async fn older_clients_begin_a_session_on_the_same_endpoint() {
    let server = served().await;
    let newest = Agent::new(&server).tool_names().await;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let session = Session::begin(&server, version, None).await;
        assert_eq!(session.welcome["protocolVersion"], version);
        assert_eq!(session.welcome["serverInfo"]["name"], "keyward");
        let listed = session.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, newest, "{version}");
        assert!(listed["result"]["resultType"].is_null(), "{version}: {listed}");
        assert_eq!(session.ask("ping", json!({})).await["result"], json!({}));
    }
}

#[tokio::test]
async fn a_session_that_was_ended_is_gone() {
    let server = served().await;
    let session = Session::begin(&server, "2025-11-25", None).await;
    let end = session.within(server.request(reqwest::Method::DELETE, "/mcp"));
    assert!(end.send().await.unwrap().status().is_success());
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    answered(404, session.request(&list)).await;
}

#[tokio::test]
async fn tools_are_not_many_come_in_one_order_and_say_what_they_do() {
    let server = served().await;
    let agent = Agent::new(&server);
    let tools = agent.tools().await;
    assert_eq!(tools, agent.tools().await);
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "agent_get",
            "agent_set",
            "agent_patch",
            "agent_delete",
            "agent_keys",
            "agent_namespaces",
            "agent_search",
            "agent_history",
            "agent_restore",
            "memory",
            "record_save",
            "record_get",
            "record_list",
            "record_query",
            "record_near",
            "record_delete",
            "lock_acquire",
            "lock_renew",
            "lock_release",
            "job_get",
            "job_list",
            "job_cancel",
        ]
    );
    for tool in &tools {
        let name = &tool["name"];
        assert!(tool["description"].as_str().unwrap().len() > 20, "{name}");
        assert!(!tool["title"].as_str().unwrap().is_empty(), "{name}");
        // It answers in words.
        let schemas = if name == "memory" { 1 } else { 2 };
        for schema in ["inputSchema", "outputSchema"].into_iter().take(schemas) {
            assert_eq!(tool[schema]["type"], "object", "{name}");
            walk(&tool[schema], &mut |schema| {
                assert!(!schema.is_boolean(), "{name} has a schema that is {schema}");
                assert!(schema["format"].is_null(), "{name} has a format: {schema}");
            });
        }
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{name} {hint}");
        }
        let reads = ["get", "list", "query", "near", "keys", "namespaces", "search", "history"];
        let last = name.as_str().unwrap().rsplit('_').next().unwrap();
        assert_eq!(tool["annotations"]["readOnlyHint"], reads.contains(&last), "{name}");
    }
}

/// Every schema within one.
fn walk(schema: &Value, look: &mut impl FnMut(&Value)) {
    look(schema);
    for member in schema["properties"].as_object().into_iter().flat_map(|all| all.values()) {
        walk(member, look);
    }
    if !schema["items"].is_null() {
        walk(&schema["items"], look);
    }
}

#[tokio::test]
async fn without_a_schema_there_is_what_needs_none() {
    let server = Running::on(&without_schema("memory:").unwrap()).await;
    let names = Agent::new(&server).tool_names().await;
    assert!(names.contains(&"agent_set".to_owned()) && names.contains(&"job_list".to_owned()));
    assert!(!names.iter().any(|name| name.starts_with("record_")), "{names:?}");
}

#[tokio::test]
async fn the_tools_of_the_conformance_suite_are_not_there() {
    let server = served().await;
    let agent = Agent::new(&server);
    assert!(!agent.tool_names().await.iter().any(|name| name.starts_with("test_")));
    let error =
        agent.error("tools/call", json!({ "name": "test_simple_text", "arguments": {} })).await;
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("tools/list"), "{error}");
    let error = agent.error("resources/read", json!({ "uri": "test://static-text" })).await;
    assert_eq!(error["code"], -32602);
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_a_body_has_a_bound() {
    let server = served().await;
    let accept = "application/json, text/event-stream";
    for body in ["", "no JSON", "[]", r#"{"jsonrpc":"2.0"}"#] {
        let answer = server.post("/mcp", body).header("accept", accept).send().await.unwrap();
        assert!(answer.status().is_client_error(), "{body}: {}", answer.status());
    }
    let large = "x".repeat(8 * 1024 * 1024);
    let answer = server.post("/mcp", &large).header("accept", accept);
    answered(413, answer).await;
    let agent = Agent::new(&server);
    let unknown = agent.request("no/method", json!({})).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    assert_eq!(messages(unknown).await[0]["error"]["code"], -32601);
}

#[tokio::test]
async fn prompts_say_what_to_do_with_what_is_declared() {
    let server = served().await;
    let agent = Agent::new(&server);
    let listed = agent.result("prompts/list", json!({})).await;
    let names: Vec<_> =
        listed["prompts"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["explore_space", "find_records", "work_under_lock"]);
    let asked = json!({
        "name": "find_records",
        "arguments": { "space": "notes", "question": "which have votes?" },
    });
    let prompt = agent.result("prompts/get", asked).await;
    let resource = &prompt["messages"][0]["content"]["resource"];
    assert_eq!(resource["uri"], "keyward://app/spaces/notes");
    assert!(resource["text"].as_str().unwrap().contains("notes_by_votes"));
    let said = prompt["messages"][1]["content"]["text"].as_str().unwrap();
    assert!(said.contains("which have votes?") && said.contains("record_query"));
    for wrong in [
        json!({ "name": "none" }),
        json!({ "name": "explore_space" }),
        json!({ "name": "explore_space", "arguments": { "space": "none" } }),
    ] {
        assert_eq!(agent.error("prompts/get", wrong.clone()).await["code"], -32602, "{wrong}");
    }
}

#[tokio::test]
async fn arguments_that_a_prompt_does_not_declare_are_refused() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (prompt, arguments) in [
        ("explore_space", json!({ "space": "notes", "user": "bob" })),
        ("find_records", json!({ "space": "notes", "question": "?", "user": "bob" })),
        ("work_under_lock", json!({ "root": "page:7", "task": "write", "user": "bob" })),
    ] {
        let asked = json!({ "name": prompt, "arguments": arguments });
        let error = agent.error("prompts/get", asked).await;
        assert_eq!(error["code"], -32602, "{prompt}: {error}");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains(r#"there is no argument called "user""#), "{prompt}: {said}");
    }
}
