//! Sessions of older clients: whose they are, how many, and their end.

use std::time::Duration;

use keyward::Data;
use keyward::schema::Schema;
use keyward_server::{Config, Limits, McpOptions};
use serde_json::json;

use super::client::{Agent, Session, initialize};
use crate::fixture::{Running, answered, configured, refused};
use crate::spaces::{SCHEMA, served};

const LIST: &str = "tools/list";

#[tokio::test]
async fn a_session_is_good_for_the_credential_that_began_it() {
    let server = served().await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await.secret;
    let bob = server.key(&admin, &json!({ "name": "b", "user": "bob" })).await.secret;
    let session = Session::begin(&server, "2025-11-25", Some(&ada)).await;
    assert!(session.ask(LIST, json!({})).await["result"].is_object());
    let body = json!({ "jsonrpc": "2.0", "id": 2, "method": LIST });
    for method in [reqwest::Method::POST, reqwest::Method::GET, reqwest::Method::DELETE] {
        let request = server
            .sent(method.clone(), "/mcp", &body.to_string())
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", &session.id)
            .header("mcp-protocol-version", "2025-11-25")
            .bearer_auth(&bob);
        refused(404, "not-found", request).await;
    }
    assert!(session.ask(LIST, json!({})).await["result"].is_object());
}

#[tokio::test]
async fn there_are_no_more_sessions_than_the_server_holds() {
    let mcp = McpOptions { sessions_max: 2, ..McpOptions::default() };
    let config = Config { mcp, ..configured() };
    let data = Data::new(Schema::parse(SCHEMA, "schema.toml").unwrap());
    let server = Running::start(&config, &data).await;
    let first = Session::begin(&server, "2025-11-25", None).await;
    let _second = Session::begin(&server, "2025-11-25", None).await;
    let third = || initialize(&server, "2025-11-25", None, &json!({}));
    refused(503, "overloaded", third()).await;
    // Clients without sessions are served all the same.
    assert!(!Agent::new(&server).tools().await.is_empty());
    // Clients log any other success as an error.
    answered(204, first.within(server.request(reqwest::Method::DELETE, "/mcp"))).await;
    answered(200, third()).await;
}

#[tokio::test]
async fn a_stop_ends_what_only_listens() {
    let limits = Limits { drain_time_max: Duration::from_secs(60), ..Limits::default() };
    let config = Config { limits, ..configured() };
    let data = Data::new(Schema::parse(SCHEMA, "schema.toml").unwrap());
    let server = Running::start(&config, &data).await;
    let session = Session::begin(&server, "2025-11-25", None).await;
    let mut told = session.listen().await;
    let agent = Agent::new(&server);
    let watched = json!({ "resourceSubscriptions": ["keyward://app/spaces/notes/records"] });
    let listen = agent.request("subscriptions/listen", json!({ "notifications": watched }));
    let mut changes = super::client::Events::new(answered(200, listen).await);
    let first = changes.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    drop((agent, session));
    let stopping = tokio::time::timeout(Duration::from_secs(30), server.stop());
    assert!(stopping.await.is_ok(), "it waited for those who listen");
    assert_eq!(told.next().await, None);
    // The last word is a result, and then it ends.
    while changes.next().await.is_some() {}
}

#[tokio::test]
async fn one_credential_holds_a_quarter_of_all_sessions_and_streams() {
    let mcp = McpOptions { sessions_max: 8, ..McpOptions::default() };
    let limits = Limits { watches_max: 4, ..Limits::default() };
    let config = Config { mcp, limits, ..configured() };
    let data = Data::new(Schema::parse(SCHEMA, "schema.toml").unwrap());
    let server = Running::start(&config, &data).await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await.secret;
    let bob = server.key(&admin, &json!({ "name": "b", "user": "bob" })).await.secret;
    // Those that come at once count as well.
    let begin = || initialize(&server, "2025-11-25", Some(&ada), &json!({})).send();
    let begun = futures_util::future::join_all((0..8).map(|_| begin())).await;
    let begun: Vec<u16> = begun.into_iter().map(|it| it.unwrap().status().as_u16()).collect();
    let count = |status: u16| begun.iter().filter(|it| **it == status).count();
    assert_eq!((count(200), count(503)), (2, 6), "{begun:?}");
    let of_bob = Session::begin(&server, "2025-11-25", Some(&bob)).await;
    let other = Session::begin(&server, "2025-11-25", Some(&bob)).await;
    refused(503, "overloaded", initialize(&server, "2025-11-25", Some(&bob), &json!({}))).await;
    // One that is refused by the protocol's library gives its place back.
    let end = other.within(server.request(reqwest::Method::DELETE, "/mcp"));
    assert!(end.send().await.unwrap().status().is_success());
    for _ in 0..3 {
        let wrong = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": 7 });
        let wrong = server.post("/mcp", &wrong.to_string());
        let wrong = wrong.header("accept", "application/json, text/event-stream");
        let answer = wrong.bearer_auth(&bob).send().await.unwrap();
        assert!(answer.headers().get("mcp-session-id").is_none());
    }
    let again = Session::begin(&server, "2025-11-25", Some(&bob)).await;
    let _listens = of_bob.listen().await;
    let stream = again.within(server.get("/mcp").header("accept", "text/event-stream"));
    refused(503, "overloaded", stream).await;
    // There is room for others, whatever they watch.
    answered(200, server.get("/v1/stores/app/watch").bearer_auth(&admin.secret)).await;
}
