//! Tools for what agents keep.

use serde_json::{Value, json};

use super::client::Agent;
use crate::fixture::answered;
use crate::spaces::served;

#[tokio::test]
async fn an_entry_is_kept_read_changed_and_brought_back() {
    let server = served().await;
    let agent = Agent::new(&server);
    let at = |more: serde_json::Value| {
        let mut arguments = json!({ "namespace": "files:apache/repo", "key": "src/main.py" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    assert_eq!(agent.call("agent_get", at(json!({}))).await, json!({ "found": false }));
    let set =
        at(json!({ "value": { "lines": 2, "of": null }, "metadata": { "source": "crawler" } }));
    let kept = agent.call("agent_set", set).await;
    assert_eq!((&kept["created"], &kept["namespace"]), (&json!(true), &json!("files:apache/repo")));
    let entry = agent.call("agent_get", at(json!({}))).await["entry"].clone();
    assert_eq!(entry["value"], json!({ "lines": 2, "of": null }));
    assert_eq!((&entry["createdByAgent"], &entry["userId"]), (&json!("planner"), &json!("local")));
    assert_eq!(entry["_rev"], kept["version"]);

    let patch = at(json!({ "value": { "lines": 3 }, "metadata": { "status": "new" } }));
    agent.call("agent_patch", patch).await;
    let stale = at(json!({ "value": 1, "if_version": kept["version"] }));
    let said = agent.refused("agent_set", stale).await;
    assert!(said.starts_with("precondition-failed") && said.contains("agent_get"), "{said}");
    let entry = agent.call("agent_get", at(json!({}))).await["entry"].clone();
    assert_eq!(entry["value"]["lines"], 3);
    assert_eq!(entry["metadata"], json!({ "source": "crawler", "status": "new" }));

    assert_eq!(agent.call("agent_delete", at(json!({}))).await["deleted"], 1);
    let history = agent.call("agent_history", at(json!({}))).await;
    let acts: Vec<_> = history["items"].as_array().unwrap().iter().map(|it| &it["act"]).collect();
    assert_eq!(acts[0], "delete", "{history}");
    assert_eq!(history["items"][0]["agent"], "planner");
    let first = history["items"].as_array().unwrap().last().unwrap()["number"].clone();
    agent.call("agent_restore", at(json!({ "to": first }))).await;
    let entry = agent.call("agent_get", at(json!({}))).await["entry"].clone();
    assert_eq!(entry["value"]["lines"], 2);
}

#[tokio::test]
async fn entries_are_listed_and_searched() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (namespace, key, status) in
        [("default", "task/1", "open"), ("default", "task/2", "done"), ("other", "task/3", "open")]
    {
        let set = json!({ "namespace": namespace, "key": key, "value": { "status": status } });
        agent.call("agent_set", set).await;
    }
    let names = agent.call("agent_namespaces", json!({})).await;
    assert_eq!(names, json!({ "namespaces": ["default", "other"], "next": null }));
    let keys = agent.call("agent_keys", json!({ "prefix": "task/", "limit": 1 })).await;
    assert_eq!(keys["keys"], json!(["task/1"]));
    let rest = json!({ "prefix": "task/", "limit": 1, "cursor": keys["next"] });
    assert_eq!(agent.call("agent_keys", rest).await["keys"], json!(["task/2"]));
    let open = json!({ "filter": { "value.status": "open" } });
    let found = agent.call("agent_search", open).await;
    assert_eq!(found["entries"].as_array().unwrap().len(), 2, "{found}");
    let open =
        json!({ "namespace": "other", "prefix": "task/", "filter": { "value.status": "open" } });
    let found = agent.call("agent_search", open).await;
    assert_eq!(found["entries"][0]["key"], "task/3");
}

#[tokio::test]
async fn what_is_wrong_says_what_to_call_next() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (tool, arguments, code, next) in [
        ("agent_get", json!({}), "invalid", "agent_keys"),
        ("agent_get", json!({ "key": "" }), "invalid", ""),
        ("agent_get", json!({ "namespace": "", "key": "k" }), "invalid", ""),
        ("agent_set", json!({ "key": "k" }), "invalid", "value"),
        ("agent_set", json!({ "key": "k", "value": 1, "sliding": true }), "invalid", "ttl_seconds"),
        ("agent_set", json!({ "key": "k", "value": 1, "ttl_seconds": 0 }), "invalid", "from 1 to"),
        ("agent_set", json!({ "key": "k", "value": 1, "ttl_seconds": "0" }), "invalid", "never"),
        ("agent_set", json!({ "key": "k", "value": 1, "metadata": 1 }), "", ""),
        ("agent_patch", json!({ "key": "none", "value": { "a": 1 } }), "not-found", "agent_keys"),
        ("agent_patch", json!({ "key": "none" }), "invalid", ""),
        ("agent_restore", json!({ "key": "none" }), "invalid", "agent_history"),
        ("agent_keys", json!({ "cursor": "x" }), "bad-cursor", "without cursor"),
        ("agent_search", json!({ "filter": 1 }), "", ""),
    ] {
        let said = agent.refused(tool, arguments.clone()).await;
        assert!(said.starts_with(code), "{tool} {arguments}: {said}");
        assert!(said.contains(next), "{tool} {arguments}: {said}");
    }
}

#[tokio::test]
async fn an_entry_lives_for_some_time_or_never_ends() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (ttl, ends) in [(json!(60), true), (json!("never"), false), (json!(null), false)] {
        let set = json!({ "key": "k", "value": 1, "ttl_seconds": ttl });
        agent.call("agent_set", set).await;
        let read = server.get("/v1/agents/namespaces/default/entries/k");
        let read = answered(200, read).await;
        assert_eq!(read.headers().contains_key("keyward-expires"), ends, "{ttl}");
    }
}

#[tokio::test]
async fn null_is_a_value() {
    let server = served().await;
    let agent = Agent::new(&server);
    agent.call("agent_set", json!({ "key": "k", "value": null })).await;
    let read = agent.call("agent_get", json!({ "key": "k" })).await;
    assert_eq!((&read["found"], &read["entry"]["value"]), (&json!(true), &json!(null)));
}

#[tokio::test]
async fn somebody_who_is_nobody_in_particular_says_whose_entries_are_meant() {
    let server = served().await;
    let admin = server.admin().await;
    let agent = Agent::with(&server, &admin.secret);
    let tools = agent.tools().await;
    let set = tools.iter().find(|tool| tool["name"] == "agent_set").unwrap();
    assert!(set["inputSchema"]["properties"]["user"].is_object());
    let said = agent.refused("agent_set", json!({ "key": "k", "value": 1 })).await;
    assert!(said.starts_with("invalid"), "{said}");
    agent.call("agent_set", json!({ "user": "ada", "key": "k", "value": 1 })).await;
    let key = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await;
    let ada = Agent::with(&server, &key.secret);
    assert_eq!(ada.call("agent_get", json!({ "key": "k" })).await["entry"]["value"], 1);
}

#[tokio::test]
async fn a_page_is_bounded_in_bytes_and_says_where_it_goes_on() {
    const PAGE_BYTES_MAX: usize = 1 << 20;
    let server = served().await;
    let agent = Agent::new(&server);
    let text = "x".repeat(100 * 1_024);
    for n in 0..25 {
        let key = format!("k{n:02}");
        for key in [key.as_str(), "same"] {
            agent.call("agent_set", json!({ "key": key, "value": [n, text] })).await;
        }
    }
    let mut found = Vec::new();
    let mut search = json!({ "namespace": "default", "prefix": "k", "limit": 1_000 });
    loop {
        let page = agent.call("agent_search", search.clone()).await;
        assert!(page.to_string().len() <= PAGE_BYTES_MAX);
        let entries = page["entries"].as_array().unwrap();
        assert!(!entries.is_empty());
        found.extend(entries.iter().map(|entry| entry["value"][0].as_u64().unwrap()));
        match &page["next"] {
            Value::Null => break,
            next => search["cursor"] = next.clone(),
        }
    }
    assert_eq!(found, (0..25).collect::<Vec<u64>>());
    let page = agent.call("agent_history", json!({ "key": "same" })).await;
    assert!(page.to_string().len() <= PAGE_BYTES_MAX);
    let last = page["items"].as_array().unwrap().last().unwrap();
    assert_eq!(page["next"], last["number"]);
    // Of those that do not fit together, one is given.
    let large = "x".repeat(900 * 1_024);
    for key in ["l1", "l2"] {
        agent.call("agent_set", json!({ "key": key, "value": large })).await;
    }
    let page = agent.call("agent_search", json!({ "namespace": "default", "prefix": "l" })).await;
    assert_eq!(page["entries"].as_array().unwrap().len(), 1);
    assert!(page["next"].is_string());
}
