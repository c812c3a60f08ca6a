//! Resources and completion.

use serde_json::{Value, json};

use super::client::Agent;
use crate::spaces::served;

#[tokio::test]
async fn what_is_declared_and_what_is_stored_can_be_read() {
    let server = served().await;
    let agent = Agent::new(&server);
    let listed = agent.result("resources/list", json!({})).await;
    let uris: Vec<_> =
        listed["resources"].as_array().unwrap().iter().map(|it| it["uri"].clone()).collect();
    assert!(uris.contains(&json!("keyward://schema")), "{uris:?}");
    assert!(uris.contains(&json!("keyward://app/spaces/notes")), "{uris:?}");
    for uri in &uris {
        let read = agent.result("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["contents"][0]["uri"], *uri);
        assert!(!read["contents"][0]["text"].as_str().unwrap().is_empty());
    }
    let key = "user:local:notes:n%3A1";
    let save = json!({ "space": "notes", "key": key, "value": { "title": "t" } });
    agent.call("record_save", save).await;
    let uri = "keyward://app/spaces/notes/records/user:local:notes:n%253A1";
    let read = agent.result("resources/read", json!({ "uri": uri })).await;
    let record: Value =
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&record["key"], &record["value"]["title"]), (&json!(key), &json!("t")));
    let templates = agent.result("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn what_agents_keep_can_be_read_and_is_completed() {
    let server = served().await;
    let agent = Agent::new(&server);
    for key in ["a/1", "a/2", "b"] {
        let set = json!({ "namespace": "files:apache/repo", "key": key, "value": { "k": key } });
        agent.call("agent_set", set).await;
    }
    let uri = "keyward://agents/namespaces/files:apache%2Frepo";
    let listed = agent.result("resources/list", json!({})).await;
    assert!(listed.to_string().contains(uri), "{listed}");
    let read = async |uri: &str| {
        let read = agent.result("resources/read", json!({ "uri": uri })).await;
        let text = read["contents"][0]["text"].as_str().unwrap().to_owned();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(read(uri).await["keys"], json!(["a/1", "a/2", "b"]));
    let entry = read(&format!("{uri}/entries/a%2F2")).await;
    assert_eq!((&entry["value"]["k"], &entry["key"]), (&json!("a/2"), &json!("a/2")));
    let none = json!({ "uri": format!("{uri}/entries/none") });
    assert_eq!(agent.error("resources/read", none).await["code"], -32602);
    let complete = async |name: &str, value: &str, context: Value| {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": "keyward://agents/namespaces/{namespace}/entries/{key}" },
            "argument": { "name": name, "value": value },
            "context": { "arguments": context },
        });
        agent.result("completion/complete", params).await["completion"]["values"].clone()
    };
    assert_eq!(complete("namespace", "files:", json!({})).await, json!(["files:apache/repo"]));
    let within = json!({ "namespace": "files:apache/repo" });
    assert_eq!(complete("key", "a/", within).await, json!(["a/1", "a/2"]));
}

#[tokio::test]
async fn what_is_not_there_is_an_error_that_names_it() {
    let server = served().await;
    let agent = Agent::new(&server);
    for uri in [
        "keyward://app/spaces/none",
        "keyward://none/spaces/notes",
        "keyward://app/spaces/notes/records/user:local:notes:none",
        "keyward://app/spaces/notes/records/other:key",
        "keyward://",
        "https://example.com",
    ] {
        let error = agent.error("resources/read", json!({ "uri": uri })).await;
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32602), &json!(uri)));
    }
}

#[tokio::test]
async fn stores_spaces_and_keys_are_completed() {
    let server = served().await;
    let agent = Agent::new(&server);
    for n in ["alpha", "beta"] {
        let key = format!("shared:places:{n}");
        agent.call("record_save", json!({ "space": "places", "key": key, "value": {} })).await;
    }
    let complete = async |name: &str, value: &str, context: Value| {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": "keyward://{store}/spaces/{space}/records/{key}" },
            "argument": { "name": name, "value": value },
            "context": { "arguments": context },
        });
        agent.result("completion/complete", params).await["completion"]["values"].clone()
    };
    assert_eq!(complete("store", "", json!({})).await, json!(["app"]));
    assert_eq!(complete("space", "p", json!({ "store": "app" })).await, json!(["places"]));
    let within = json!({ "store": "app", "space": "places" });
    let found = complete("key", "shared:places:a", within).await;
    assert_eq!(found, json!(["shared:places:alpha"]));
    assert_eq!(complete("key", "", json!({ "space": "none" })).await, json!([]));
    let prompt = json!({
        "ref": { "type": "ref/prompt", "name": "explore_space" },
        "argument": { "name": "space", "value": "no" },
    });
    let completed = agent.result("completion/complete", prompt).await;
    assert_eq!(completed["completion"]["values"], json!(["notes"]));
}
