//! A credential that is bound to a user reaches nothing of others, by any way there is.

use serde_json::{Value, json};

use super::client::{Agent, Events};
use crate::fixture::{Made, Running, answered};
use crate::spaces::served;

const SECRET: &str = "what only ada knows";

struct Two {
    server: Running,
    ada: Made,
    eve: Made,
}

impl Two {
    async fn new() -> Self {
        let server = served().await;
        let admin = server.admin().await;
        let ada = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await;
        let eve = server.key(&admin, &json!({ "name": "e", "user": "eve" })).await;
        let two = Self { server, ada, eve };
        let agent = two.ada();
        let value = json!({ "title": SECRET, "votes": 1, "slug": "adas" });
        let note = json!({ "space": "notes", "values": { "note": "n1" }, "value": value });
        agent.call("record_save", note).await;
        let entry = json!({ "namespace": "secrets", "key": "k", "value": SECRET });
        agent.call("agent_set", entry).await;
        two
    }

    fn ada(&self) -> Agent<'_> {
        Agent::with(&self.server, &self.ada.secret)
    }

    fn eve(&self) -> Agent<'_> {
        Agent::with(&self.server, &self.eve.secret)
    }
}

/// Whether an answer tells anything of ada's.
fn tells(answer: &Value) -> bool {
    let text = answer.to_string();
    text.contains(SECRET) || text.contains("secrets") || text.contains("notes:n1")
}

#[tokio::test]
async fn no_tool_reaches_what_is_anothers() {
    let two = Two::new().await;
    let eve = two.eve();
    let adas = "user:ada:notes:n1";
    for (tool, arguments) in [
        ("record_get", json!({ "space": "notes", "key": adas })),
        ("record_get", json!({ "space": "notes", "values": { "user": "ada", "note": "n1" } })),
        ("record_save", json!({ "space": "notes", "key": adas, "value": { "title": "x" } })),
        (
            "record_save",
            json!({ "space": "notes", "key": adas, "value": { "title": "x" }, "merge": true }),
        ),
        ("record_delete", json!({ "space": "notes", "key": adas })),
        ("record_delete", json!({ "space": "notes", "prefix": "user:ada:", "confirm": 1 })),
        ("record_list", json!({ "space": "notes", "prefix": "user:ada:" })),
        ("record_query", json!({ "space": "notes", "values": { "user": "ada" } })),
        ("record_query", json!({ "space": "notes", "index": "notes_by_title", "owner": "ada" })),
        ("agent_get", json!({ "user": "ada", "namespace": "secrets", "key": "k" })),
        ("agent_set", json!({ "user": "ada", "namespace": "secrets", "key": "k", "value": 1 })),
        ("agent_patch", json!({ "user": "ada", "namespace": "secrets", "key": "k", "value": {} })),
        ("agent_delete", json!({ "user": "ada", "namespace": "secrets", "key": "k" })),
        (
            "agent_delete",
            json!({ "user": "ada", "namespace": "secrets", "prefix": "", "confirm": 1 }),
        ),
        ("agent_keys", json!({ "user": "ada", "namespace": "secrets" })),
        ("agent_namespaces", json!({ "user": "ada" })),
        ("agent_search", json!({ "user": "ada" })),
        ("agent_history", json!({ "user": "ada", "namespace": "secrets", "key": "k" })),
        ("agent_restore", json!({ "user": "ada", "namespace": "secrets", "key": "k", "to": 1 })),
        ("lock_acquire", json!({ "root": "user:ada:page" })),
        ("lock_acquire", json!({ "root": "shared:page" })),
        ("job_list", json!({})),
        ("job_get", json!({ "id": "x" })),
        ("job_cancel", json!({ "id": "x" })),
    ] {
        let said = eve.refused(tool, arguments.clone()).await;
        assert!(!said.contains(SECRET), "{tool} {arguments}: {said}");
    }
    for (tool, arguments) in [
        ("record_list", json!({ "space": "notes" })),
        ("record_query", json!({ "space": "notes", "index": "notes_by_title" })),
        ("record_query", json!({ "space": "notes", "allow_scan": true })),
        ("agent_namespaces", json!({})),
        ("agent_search", json!({})),
        ("agent_keys", json!({ "namespace": "secrets" })),
        ("agent_get", json!({ "namespace": "secrets", "key": "k" })),
    ] {
        let answer = eve.call(tool, arguments.clone()).await;
        assert!(!tells(&answer), "{tool} {arguments}: {answer}");
    }
    // What there was is there.
    let kept = two.ada().call("record_get", json!({ "space": "notes", "key": adas })).await;
    assert_eq!(kept["value"]["title"], SECRET);
    let kept = json!({ "namespace": "secrets", "key": "k" });
    assert_eq!(two.ada().call("agent_get", kept).await["entry"]["value"], SECRET);
    let names = eve.tool_names().await;
    assert!(!names.iter().any(|name| name.starts_with("job_")), "{names:?}");
}

#[tokio::test]
async fn what_a_tool_says_of_anothers_record_does_not_depend_on_whether_it_is_there() {
    let two = Two::new().await;
    let eve = two.eve();
    for tool in ["record_get", "record_delete"] {
        let there =
            eve.refused(tool, json!({ "space": "notes", "key": "user:ada:notes:n1" })).await;
        let absent =
            eve.refused(tool, json!({ "space": "notes", "key": "user:ada:notes:n2" })).await;
        assert_eq!(there.replace("n1", "n2"), absent, "{tool}");
    }
}

#[tokio::test]
async fn no_resource_and_no_completion_tells_of_what_is_anothers() {
    let two = Two::new().await;
    let eve = two.eve();
    let listed = eve.result("resources/list", json!({})).await;
    for resource in listed["resources"].as_array().unwrap() {
        let read = eve.result("resources/read", json!({ "uri": resource["uri"] })).await;
        assert!(!tells(&read), "{read}");
    }
    let uri = |note: &str| format!("keyward://app/spaces/notes/records/user:ada:notes:{note}");
    let there = eve.error("resources/read", json!({ "uri": uri("n1") })).await;
    let absent = eve.error("resources/read", json!({ "uri": uri("n2") })).await;
    assert_eq!(there["message"], absent["message"]);
    assert_eq!(there["code"], absent["code"]);
    let uri = |key: &str| format!("keyward://agents/namespaces/secrets/entries/{key}");
    let there = eve.error("resources/read", json!({ "uri": uri("k") })).await;
    let absent = eve.error("resources/read", json!({ "uri": uri("none") })).await;
    assert_eq!((&there["message"], &there["code"]), (&absent["message"], &absent["code"]));
    for (name, context) in [("namespace", json!({})), ("key", json!({ "namespace": "secrets" }))] {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": "keyward://agents/namespaces/{namespace}/entries/{key}" },
            "argument": { "name": name, "value": "" },
            "context": { "arguments": context },
        });
        let completed = eve.result("completion/complete", params).await;
        assert_eq!(completed["completion"]["values"], json!([]), "{name}");
    }
    for begun in ["", "user:", "user:ada:notes:"] {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": "keyward://{store}/spaces/{space}/records/{key}" },
            "argument": { "name": "key", "value": begun },
            "context": { "arguments": { "store": "app", "space": "notes" } },
        });
        let completed = eve.result("completion/complete", params).await;
        assert_eq!(completed["completion"]["values"], json!([]), "{begun}");
    }
}

#[tokio::test]
async fn no_subscription_tells_of_what_is_anothers() {
    let two = Two::new().await;
    let (ada, eve) = (two.ada(), two.eve());
    let own = "keyward://app/spaces/notes/records";
    let watched = json!({ "resourceSubscriptions": [
        "keyward://app/spaces/notes/records/user:ada:notes:n1",
        "keyward://agents/namespaces/secrets/entries/k",
        "keyward://agents/namespaces/secrets",
        own,
    ] });
    let listen = eve.request("subscriptions/listen", json!({ "notifications": watched }));
    let mut events = Events::new(answered(200, listen).await);
    events.next().await.unwrap();
    let note = |note: &str| json!({ "space": "notes", "values": { "note": note }, "value": { "title": "t" } });
    ada.call("record_save", note("n1")).await;
    ada.call("record_save", note("n9")).await;
    ada.call("agent_set", json!({ "namespace": "secrets", "key": "k", "value": 2 })).await;
    eve.call("record_save", note("e1")).await;
    let told = events.next().await.unwrap();
    assert_eq!(told["params"]["uri"], own, "{told}");
    // One change was eve's, and one thing is told.
    eve.call("record_delete", json!({ "space": "notes", "values": { "note": "e1" } })).await;
    assert_eq!(events.next().await.unwrap()["params"]["uri"], own);
}

/// On a server without keys an agent works for the user `local`, as one over standard input and output does. The
/// rest of the API has no owner rule there.
#[tokio::test]
async fn without_keys_an_agent_reaches_only_the_local_users_records() {
    let server = served().await;
    let adas = "user:ada:notes:n1";
    let note = json!({ "title": SECRET, "votes": 1, "slug": "adas" }).to_string();
    let path = format!("/v1/spaces/notes/records/{adas}");
    answered(201, server.put(&path, &note)).await;
    let agent = Agent::new(&server);
    for (tool, arguments) in [
        ("record_get", json!({ "space": "notes", "key": adas })),
        ("record_get", json!({ "space": "notes", "values": { "user": "ada", "note": "n1" } })),
        ("record_save", json!({ "space": "notes", "key": adas, "value": { "title": "x" } })),
        ("record_delete", json!({ "space": "notes", "key": adas })),
        ("record_delete", json!({ "space": "notes", "prefix": "user:ada:", "confirm": 1 })),
        ("record_list", json!({ "space": "notes", "prefix": "user:ada:" })),
        ("record_query", json!({ "space": "notes", "index": "notes_by_votes", "owner": "ada" })),
    ] {
        let said = agent.refused(tool, arguments.clone()).await;
        assert!(!said.contains(SECRET), "{tool} {arguments}: {said}");
    }
    for (tool, arguments) in [
        ("record_list", json!({ "space": "notes" })),
        ("record_query", json!({ "space": "notes", "index": "notes_by_votes" })),
        ("record_query", json!({ "space": "notes", "index": "notes_slug", "equal": ["adas"] })),
    ] {
        let found = agent.called(tool, arguments.clone()).await;
        assert!(!tells(&found), "{tool} {arguments}: {found}");
    }
    let uri = format!("keyward://app/spaces/notes/records/{adas}");
    let read = agent.error("resources/read", json!({ "uri": uri })).await;
    assert_eq!(read["code"], -32602, "{read}");
    // What is the local user's, and what is shared, is there.
    let own = json!({ "space": "notes", "key": "user:local:notes:n1" });
    let save = json!({ "space": "notes", "values": { "note": "n1" }, "value": { "title": "own" } });
    assert_eq!(agent.call("record_save", save).await["key"], own["key"]);
    assert_eq!(agent.call("record_get", own).await["value"]["title"], "own");
    let shared =
        json!({ "space": "places", "key": "shared:places:p", "value": { "lat": 1, "lon": 1 } });
    agent.call("record_save", shared).await;
    let kept = answered(200, server.get(&path)).await.text().await.unwrap();
    assert!(kept.contains(SECRET), "{kept}");
}
