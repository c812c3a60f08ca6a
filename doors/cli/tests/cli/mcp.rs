//! mcp: one agent over standard input and output, and many of them on one store.

use std::thread;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// What an older client says first.
fn greeting() -> Vec<Value> {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "tester", "version": "1" },
    });
    vec![
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ]
}

fn call(id: usize, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// What a process answers to these calls, by their ids, when nothing more comes.
fn answers(kw: &Sandbox, arguments: &[&str], calls: Vec<Value>) -> Vec<Value> {
    let lines = greeting().into_iter().chain(calls).map(|message| format!("{message}\n"));
    let said = kw.run_with(arguments, lines.collect::<String>()).ok();
    // Nothing but messages is on standard output.
    let mut answers: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "keyward", "{said}");
    answers.remove(0);
    answers
}

fn told(answer: &Value) -> &Value {
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    &answer["result"]["structuredContent"]
}

#[test]
fn what_one_process_keeps_the_next_one_finds() {
    let kw = Sandbox::new();
    let value = json!({ "text": "a\nb", "n": 1 });
    let set = call(1, "agent_set", json!({ "key": "k", "value": value }));
    let kept = answers(&kw, &["mcp"], vec![set]);
    assert_eq!(told(&kept[0])["created"], true);
    let found = answers(&kw, &["mcp"], vec![call(1, "agent_get", json!({ "key": "k" }))]);
    let entry = &told(&found[0])["entry"];
    assert_eq!((&entry["value"], &entry["createdByAgent"]), (&value, &json!("tester")));
}

#[test]
fn what_was_read_is_counted_exactly_after_the_end() {
    let kw = Sandbox::new();
    let set = call(1, "agent_set", json!({ "key": "k", "value": 1 }));
    answers(&kw, &["mcp"], vec![set]);
    for _ in 0..3 {
        let reads = (1..=7).map(|id| call(id, "agent_get", json!({ "key": "k" })));
        assert_eq!(answers(&kw, &["mcp"], reads.collect()).len(), 7);
    }
    let last = answers(&kw, &["mcp"], vec![call(1, "agent_get", json!({ "key": "k" }))]);
    // The last read counts itself.
    assert_eq!(told(&last[0])["entry"]["accessCount"], 22);
}

#[test]
fn forty_processes_on_one_store_lose_nothing() {
    let kw = Sandbox::new();
    thread::scope(|scope| {
        for n in 0..40 {
            let kw = &kw;
            scope.spawn(move || {
                let own = call(1, "agent_set", json!({ "key": format!("k{n:02}"), "value": n }));
                let board =
                    json!({ "key": "board", "value": n, "metadata": { format!("w{n}"): n } });
                let done = answers(kw, &["mcp"], vec![own, call(2, "agent_set", board)]);
                assert!(done.iter().all(|answer| told(answer)["version"].is_string()));
            });
        }
    });
    let calls = vec![
        call(1, "agent_keys", json!({ "prefix": "k" })),
        call(2, "agent_get", json!({ "key": "board" })),
    ];
    let found = answers(&kw, &["mcp"], calls);
    assert_eq!(told(&found[0])["keys"].as_array().unwrap().len(), 40);
    assert_eq!(told(&found[1])["entry"]["metadata"].as_object().unwrap().len(), 40);
}

#[test]
fn an_agent_is_bound_to_the_user_that_is_named_and_to_local_otherwise() {
    let kw = Sandbox::new();
    let set = |value: &str| vec![call(1, "agent_set", json!({ "key": "k", "value": value }))];
    let get = || vec![call(1, "agent_get", json!({ "key": "k" }))];
    told(&answers(&kw, &["mcp", "--user", "bob"], set("bob's"))[0]);
    assert_eq!(told(&answers(&kw, &["mcp"], get())[0])["found"], false);
    let of_bob = vec![call(1, "agent_get", json!({ "key": "k", "user": "bob" }))];
    let refused = &answers(&kw, &["mcp"], of_bob)[0]["result"];
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("\"user\""), "{refused}");
    told(&answers(&kw, &["mcp"], set("mine"))[0]);
    let found = answers(&kw, &["mcp", "--user", "local"], get());
    assert_eq!(told(&found[0])["entry"]["value"], "mine");
    let found = answers(&kw, &["mcp", "--user", "bob", "--role", "any"], get());
    assert_eq!(told(&found[0])["entry"]["value"], "bob's");
    kw.fails(2, &["mcp", "--user", ""]);
}

#[test]
fn lines_that_are_no_messages_do_not_end_it() {
    let kw = Sandbox::new();
    let long = format!("{{\"x\":\"{}\"}}\n", "x".repeat(8 * 1024 * 1024));
    let mut input: String = greeting().iter().map(|message| format!("{message}\n")).collect();
    input.push_str("no JSON\n\n{\"jsonrpc\":\"2.0\"}\n");
    input.push_str(&long);
    input.push_str(&format!("{}\n", call(9, "agent_namespaces", json!({}))));
    let said = kw.run_with(&["mcp"], input).ok();
    let answers: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = answers.iter().find(|answer| answer["id"] == 9).unwrap();
    assert_eq!(told(last)["namespaces"], json!([]));
    let refused = answers.iter().filter(|answer| answer["error"].is_object());
    assert_eq!(refused.count(), 2, "{said}");
}

#[test]
fn a_client_is_told_to_start_it() {
    let kw = Sandbox::new();
    kw.write(".mcp.json", r#"{"mcpServers":{"other":{"command":"x"}},"more":1.10}"#);
    kw.ok(&["mcp", "install", "claude-code", "--project", "-s", "embedded:./notes"]);
    let text = kw.read(".mcp.json");
    assert!(text.contains("1.10"), "{text}");
    let written: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(written["mcpServers"]["other"]["command"], "x");
    let entry = &written["mcpServers"]["keyward"];
    let given: Vec<&str> =
        entry["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(given[..2], ["mcp", "--store"]);
    assert!(given[2].starts_with("embedded:/") && given[2].ends_with("notes"), "{given:?}");
    kw.ok(&["mcp", "install", "claude-code", "--project", "-s", "embedded:./notes"]);
    assert_eq!(kw.read(".mcp.json"), text);
    let shown = kw.ok(&["mcp", "install", "vscode", "--print"]);
    assert!(serde_json::from_str::<Value>(&shown).unwrap()["servers"]["keyward"].is_object());
    kw.write(".cursor/mcp.json", "no JSON");
    let said = kw.fails(2, &["mcp", "install", "cursor", "--project"]);
    assert!(said.contains("mcp.json"), "{said}");
    assert_eq!(kw.read(".cursor/mcp.json"), "no JSON");
}
