//! Who may speak to the endpoint: hosts, origins, credentials.

use keyward_server::{Config, McpOptions, without_schema};
use serde_json::json;

use super::client::Agent;
use crate::fixture::{Running, answered, configured, refused, told};
use crate::spaces::served;
use crate::tokens::{Signer, trusting, with};

const METADATA: &str = "/.well-known/oauth-protected-resource";

#[tokio::test]
async fn pages_of_other_sites_and_other_names_are_refused() {
    let server = served().await;
    let agent = Agent::new(&server);
    let list = || agent.request("tools/list", json!({}));
    answered(200, list()).await;
    answered(200, list().header("origin", &server.url)).await;
    for origin in [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://localhost:3000",
        "http://127.0.0.1",
    ] {
        refused(403, "cross-origin", list().header("origin", origin)).await;
    }
    refused(403, "cross-origin", list().header("sec-fetch-site", "same-site")).await;
    refused(403, "forbidden", list().header("host", "evil.example")).await;
    refused(403, "forbidden", list().header("host", "localhost.evil.example:7480")).await;
    let untyped = server.request(reqwest::Method::POST, "/mcp").body("{}");
    answered(415, untyped.header("accept", "application/json, text/event-stream")).await;
}

#[tokio::test]
async fn a_server_with_credentials_checks_hosts_and_origins_as_well() {
    let mcp = McpOptions {
        public_url: Some("https://data.example.com/".to_owned()),
        origins: vec!["https://app.example.com".to_owned()],
        ..McpOptions::default()
    };
    let config = Config { mcp, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let admin = server.admin().await;
    let agent = Agent::with(&server, &admin.secret);
    let list = || agent.request("tools/list", json!({}));
    answered(200, list().header("host", "data.example.com")).await;
    answered(200, list().header("origin", "https://app.example.com")).await;
    answered(200, list().header("origin", "https://data.example.com")).await;
    let page = list().header("origin", "https://app.example.com");
    answered(200, page.header("sec-fetch-site", "cross-site")).await;
    refused(403, "forbidden", list().header("host", "evil.example")).await;
    refused(403, "cross-origin", list().header("origin", "https://evil.example")).await;
    refused(403, "forbidden", server.get(METADATA).header("origin", "https://evil.example")).await;
    refused(403, "forbidden", server.get(METADATA).header("host", "evil.example")).await;
    let told = told(200, server.get(METADATA)).await;
    assert_eq!(told["resource"], "https://data.example.com/mcp");
}

#[tokio::test]
async fn without_a_credential_a_client_learns_where_to_get_one() {
    let server = served().await;
    refused(404, "not-found", server.get(METADATA)).await;
    let admin = server.admin().await;
    let stranger = Agent::new(&server);
    let answer = answered(401, stranger.request("tools/list", json!({}))).await;
    let host = server.url.strip_prefix("http://").unwrap();
    let metadata = format!("http://{host}{METADATA}/mcp");
    let challenge = answer.headers()["www-authenticate"].to_str().unwrap();
    assert_eq!(challenge, format!("Bearer resource_metadata=\"{metadata}\""));
    for path in [METADATA.to_owned(), format!("{METADATA}/mcp")] {
        let told = told(200, server.get(&path)).await;
        assert_eq!(told["resource"], format!("http://{host}/mcp"));
        assert_eq!(told["bearer_methods_supported"], json!(["header"]));
    }
    answered(401, Agent::with(&server, "kw_wrong").request("tools/list", json!({}))).await;
    answered(401, server.get("/mcp").header("accept", "text/event-stream")).await;
    assert!(!Agent::with(&server, &admin.secret).tools().await.is_empty());
    // Elsewhere, the challenge is as it was.
    let answer = answered(401, server.get("/v1/stores")).await;
    assert_eq!(answer.headers()["www-authenticate"], "Bearer");
}

#[tokio::test]
async fn tokens_for_another_audience_are_refused_and_the_issuer_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::new();
    let config = trusting(folder.path(), &signer.keys());
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let told = told(200, server.get(METADATA)).await;
    assert_eq!(told["authorization_servers"], json!(["https://id.example"]));
    let good = signer.token(&with("aud", json!(["other", "keyward"])));
    let agent = Agent::with(&server, &good);
    let names = agent.tool_names().await;
    assert!(names.contains(&"agent_set".to_owned()), "{names:?}");
    assert!(!names.contains(&"job_list".to_owned()), "jobs are no user's: {names:?}");
    for audience in [json!("other"), json!("https://data.example.com/mcp"), json!(null)] {
        let other = Agent::with(&server, &signer.token(&with("aud", audience)));
        answered(401, other.request("tools/list", json!({}))).await;
    }
}

#[tokio::test]
async fn tools_that_nothing_can_be_done_with_are_not_shown_and_do_nothing() {
    let server = served().await;
    let admin = server.admin().await;
    let scopes = json!({ "name": "reader", "scopes": ["read:space/notes"] });
    let reader = server.key(&admin, &scopes).await;
    let agent = Agent::with(&server, &reader.secret);
    assert_eq!(agent.tool_names().await, ["record_get", "record_list", "record_query"]);
    let tools = agent.tools().await;
    assert_eq!(tools[0]["inputSchema"]["properties"]["space"]["enum"], json!(["notes"]));
    let save = json!({ "space": "notes", "key": "user:a:notes:n", "value": { "title": "t" } });
    assert!(agent.refused("record_save", save).await.starts_with("forbidden"));
    let other = json!({ "space": "log", "key": "log:a:00000000000000000001", "value": 1 });
    assert!(agent.refused("record_save", other).await.starts_with("unknown-space"));
    for (tool, arguments) in [
        ("record_delete", json!({ "space": "notes", "prefix": "user:a:" })),
        ("lock_acquire", json!({ "root": "page:7" })),
        ("job_list", json!({})),
        ("agent_get", json!({ "key": "k", "user": "ada" })),
    ] {
        assert!(agent.refused(tool, arguments).await.starts_with("forbidden"), "{tool}");
    }
}
