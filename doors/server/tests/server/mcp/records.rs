//! Tools for records.

use std::sync::Arc;

use serde_json::json;

use super::client::Agent;
use crate::fixture::{Running, answered, told};
use crate::spaces::served;

const NOTE: &str = "user:local:notes:n1";

#[tokio::test]
async fn a_record_is_saved_read_changed_and_deleted() {
    let server = served().await;
    let agent = Agent::new(&server);
    let value = json!({ "title": "first", "votes": 3 });
    let save = json!({ "space": "notes", "key": NOTE, "value": value, "metadata": { "by": "me" } });
    let saved = agent.call("record_save", save).await;
    assert_eq!((&saved["key"], &saved["created"]), (&json!(NOTE), &json!(true)));
    let read = agent.call("record_get", json!({ "space": "notes", "key": NOTE })).await;
    assert_eq!((&read["found"], &read["value"]), (&json!(true), &value));
    assert_eq!((&read["version"], &read["metadata"]["by"]), (&saved["version"], &json!("me")));

    let part = json!({
        "space": "notes", "key": NOTE, "value": { "votes": 4 }, "merge": true,
        "if_version": saved["version"],
    });
    let merged = agent.call("record_save", part.clone()).await;
    assert_eq!(merged["created"], false);
    let again = agent.refused("record_save", part).await;
    assert!(again.starts_with("precondition-failed"), "{again}");
    assert!(again.contains("Next: call record_get"), "{again}");
    let read = agent.call("record_get", json!({ "space": "notes", "key": NOTE })).await;
    assert_eq!(read["value"], json!({ "title": "first", "votes": 4 }));

    let absent = json!({ "space": "notes", "key": NOTE, "value": value, "if_absent": true });
    assert!(agent.refused("record_save", absent).await.starts_with("precondition-failed"));
    let delete = json!({ "space": "notes", "key": NOTE });
    assert_eq!(agent.call("record_delete", delete.clone()).await["deleted"], 1);
    assert_eq!(agent.call("record_delete", delete.clone()).await["deleted"], 0);
    assert_eq!(agent.call("record_get", delete).await["found"], false);
}

#[tokio::test]
async fn a_key_can_be_given_by_its_values() {
    let server = served().await;
    let agent = Agent::new(&server);
    let values = json!({ "user": "local", "note": "x:y" });
    let save = json!({ "space": "notes", "values": values, "value": { "title": "t" } });
    assert_eq!(agent.call("record_save", save).await["key"], "user:local:notes:x%3Ay");
    let read = agent.call("record_get", json!({ "space": "notes", "values": values })).await;
    assert_eq!(read["found"], true);
}

#[tokio::test]
async fn digits_and_order_are_stored_as_the_client_wrote_them() {
    let server = served().await;
    let agent = Agent::new(&server);
    let exact = r#"{"z":1.10,"a":123456789012345678901234567890,"m":1e2}"#;
    let request = agent.request(
        "tools/call",
        json!({ "name": "record_save", "arguments": { "space": "places", "key": "shared:places:x", "value": "VALUE" } }),
    );
    let request = request.build().unwrap();
    let body = std::str::from_utf8(request.body().unwrap().as_bytes().unwrap()).unwrap();
    let body = body.replace("\"VALUE\"", exact);
    let mut sent = server.post("/mcp", &body);
    for name in ["accept", "mcp-protocol-version", "mcp-method", "mcp-name"] {
        sent = sent.header(name, request.headers()[name].clone());
    }
    answered(200, sent).await;
    let stored = answered(200, server.get("/v1/spaces/places/records/shared:places:x")).await;
    assert_eq!(stored.text().await.unwrap(), exact);
    let shown = agent.called("record_get", json!({ "space": "places", "key": "shared:places:x" }));
    let shown = shown.await;
    assert!(shown["content"][0]["text"].as_str().unwrap().contains(exact), "{shown}");
}

#[tokio::test]
async fn records_are_listed_queried_and_found_by_place() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (n, votes) in [("a", 1), ("b", 5), ("c", 9)] {
        let key = format!("user:local:notes:{n}");
        let value = json!({ "title": format!("title {n}"), "votes": votes });
        agent.call("record_save", json!({ "space": "notes", "key": key, "value": value })).await;
    }
    let below = json!({ "space": "notes", "prefix": "user:local:", "limit": 2 });
    let first = agent.call("record_list", below).await;
    assert_eq!(first["items"][1]["key"], "user:local:notes:b");
    let rest =
        json!({ "space": "notes", "prefix": "user:local:", "limit": 2, "cursor": first["next"] });
    let rest = agent.call("record_list", rest).await;
    assert_eq!(
        (&rest["items"][0]["key"], &rest["next"]),
        (&json!("user:local:notes:c"), &json!(null))
    );

    let many = json!({
        "space": "notes", "index": "notes_by_votes", "owner": "local", "from": 5,
        "descending": true, "fields": ["title"],
    });
    let found = agent.call("record_query", many).await;
    let titles: Vec<_> = found["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["value"]["title"].clone())
        .collect();
    assert_eq!(titles, ["title c", "title b"]);
    let wrong = agent.refused("record_query", json!({ "space": "notes", "index": "none" })).await;
    assert!(wrong.starts_with("unknown-index") && wrong.contains("keyward://"), "{wrong}");

    for (name, lat) in [("near", 52.52), ("far", 48.14)] {
        let key = format!("shared:places:{name}");
        let value = json!({ "lat": lat, "lon": 13.40 });
        agent.call("record_save", json!({ "space": "places", "key": key, "value": value })).await;
    }
    let circle = json!({ "space": "places", "lat": 52.5, "lon": 13.4, "radius_m": 10_000 });
    let found = agent.call("record_near", circle).await;
    assert_eq!(found["records"].as_array().unwrap().len(), 1);
    assert_eq!(found["records"][0]["key"], "shared:places:near");
    assert!(found["records"][0]["distance_m"].as_f64().unwrap() < 3_000.0);
}

#[tokio::test]
async fn what_is_wrong_says_what_to_call_next() {
    let server = served().await;
    let agent = Agent::new(&server);
    for n in 0..3 {
        let key = format!("shared:places:p{n}");
        let place = json!({ "space": "places", "key": key, "value": { "lat": n, "lon": n } });
        agent.call("record_save", place).await;
    }
    for (tool, arguments, code, next) in [
        ("record_get", json!({ "space": "none", "key": NOTE }), "unknown-space", "notes, places"),
        ("record_get", json!({ "space": "notes", "key": "x:y" }), "key-mismatch", "record_list"),
        ("record_get", json!({ "space": "notes" }), "invalid", "user:{user}:notes:{note}"),
        ("record_get", json!({ "key": NOTE }), "invalid", ""),
        ("record_get", json!({ "space": "notes", "key": NOTE, "more": 1 }), "invalid", "schema"),
        ("record_save", json!({ "space": "notes", "key": NOTE }), "invalid", "value"),
        (
            "record_save",
            json!({ "space": "notes", "key": NOTE, "value": { "title": 1 } }),
            "schema-mismatch",
            "/title",
        ),
        ("record_list", json!({ "space": "notes", "limit": 0 }), "invalid", ""),
        ("record_list", json!({ "space": "notes", "cursor": "x" }), "bad-cursor", "without cursor"),
        (
            "record_near",
            json!({ "space": "places", "lat": 91, "lon": 0, "radius_m": 1 }),
            "bad-query",
            "",
        ),
        (
            "record_near",
            json!({ "space": "notes", "lat": 1, "lon": 0, "radius_m": 1 }),
            "unknown-index",
            "",
        ),
        (
            "record_near",
            json!({ "space": "places", "lat": 1, "lon": 0, "radius_m": 1_000_000, "budget": 1 }),
            "too-expensive",
            "radius_m",
        ),
    ] {
        let said = agent.refused(tool, arguments.clone()).await;
        assert!(said.starts_with(code), "{tool} {arguments}: {said}");
        assert!(said.contains(next), "{tool} {arguments}: {said}");
        assert!(!said.contains("/v1/"), "{tool}: {said}");
    }
}

#[tokio::test]
async fn forty_who_write_at_once_lose_nothing() {
    let server = Arc::new(served().await);
    let key = "shared:places:board";
    let writing = (0..40).map(|n| {
        let server = server.clone();
        tokio::spawn(async move {
            let agent = Agent::new(&server);
            let own = json!({ "space": "log", "values": { "app": "a", "n": n }, "value": n });
            agent.call("record_save", own).await;
            let part = json!({ "space": "places", "key": key, "value": { format!("w{n}"): n }, "merge": true });
            agent.call("record_save", part).await;
        })
    });
    for written in writing.collect::<Vec<_>>() {
        written.await.unwrap();
    }
    let board = told(200, server.get(&format!("/v1/spaces/places/records/{key}"))).await;
    assert_eq!(board.as_object().unwrap().len(), 40);
    let own = Agent::new(&server).call("record_list", json!({ "space": "log" })).await;
    assert_eq!(own["items"].as_array().unwrap().len(), 40);
}

#[tokio::test]
async fn what_an_agent_changes_is_in_the_history_and_in_the_audit_log() {
    let server = served().await;
    let admin = server.admin().await;
    let mut agent = Agent::with(&server, &admin.secret);
    agent.name = "historian".to_owned();
    let save = json!({ "space": "notes", "key": NOTE, "value": { "title": "t" } });
    agent.call("record_save", save).await;
    let path = format!("/v1/spaces/notes/history/{NOTE}");
    let history = told(200, server.get(&path).bearer_auth(&admin.secret)).await;
    assert_eq!(history["items"][0]["agent"], "historian", "{history}");
    let log = audit(&server, &admin.secret).await;
    assert!(log.contains("/mcp/record_save") && log.contains(NOTE), "{log}");
}

/// The audit log, once it has been written.
async fn audit(server: &Running, key: &str) -> String {
    loop {
        let log = answered(200, server.get("/v1/audit").bearer_auth(key)).await;
        let log = log.text().await.unwrap();
        if log.contains("record_save") {
            return log;
        }
        tokio::task::yield_now().await;
    }
}
