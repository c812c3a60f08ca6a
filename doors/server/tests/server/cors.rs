//! Pages of other origins, in browsers: which may call the server, and what they get.

use keyward::Data;
use keyward_server::{Config, McpOptions, Rate, Rates, StartError, without_schema};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::fixture::{Running, answered, configured, refused};
use crate::mcp::client::Agent;
use crate::watching::Events;

const APP: &str = "https://app.example";
const ENTRY: &str = "/v1/stores/main/entries/user:7:name";

fn allowing(origins: &[&str]) -> Config {
    let cors_origins = origins.iter().map(|&origin| origin.to_owned()).collect();
    Config { cors_origins, ..configured() }
}

async fn served(config: &Config) -> Running {
    Running::start(config, &without_schema("memory:").unwrap()).await
}

/// As browsers send what a page asks for.
fn from(origin: &str, request: RequestBuilder) -> RequestBuilder {
    request.header("origin", origin).header("sec-fetch-site", "cross-site")
}

fn preflight(server: &Running, origin: &str, path: &str) -> RequestBuilder {
    server
        .request(Method::OPTIONS, path)
        .header("origin", origin)
        .header("access-control-request-method", "PUT")
        .header("access-control-request-headers", "authorization,content-type,if-match")
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

fn varies_by_origin(headers: &HeaderMap) -> bool {
    headers.get_all("vary").iter().any(|value| value == "origin")
}

#[track_caller]
fn may_read(headers: &HeaderMap) {
    assert_eq!(text(headers, "access-control-allow-origin"), Some(APP), "{headers:?}");
    let exposed = text(headers, "access-control-expose-headers").unwrap();
    for name in ["etag", "location", "retry-after", "x-request-id"] {
        assert!(exposed.split(", ").any(|one| one == name), "{name}: {exposed}");
    }
    assert!(text(headers, "access-control-allow-credentials").is_none());
    assert!(varies_by_origin(headers), "{headers:?}");
}

#[track_caller]
fn may_not_read(headers: &HeaderMap) {
    let granted = headers.keys().find(|name| name.as_str().starts_with("access-control"));
    assert_eq!(granted, None, "{headers:?}");
}

#[tokio::test]
async fn a_preflight_of_an_allowed_origin_needs_no_credential_and_tells_nothing_of_the_path() {
    let server = served(&allowing(&[APP, "http://localhost:5173"])).await;
    let admin = server.admin().await;
    answered(200, server.put(ENTRY, "1").bearer_auth(&admin.secret)).await;
    let mut answers = Vec::new();
    for path in [ENTRY, "/v1/stores/main/entries/none", "/v1/stores/none", "/none", "/mcp"] {
        let answer = answered(204, preflight(&server, APP, path)).await;
        may_read(answer.headers());
        let mut headers = answer.headers().clone();
        headers.remove("x-request-id");
        headers.remove("date");
        answers.push(headers);
        assert_eq!(answer.text().await.unwrap(), "");
    }
    assert!(answers.iter().all(|headers| *headers == answers[0]), "{answers:?}");
    let methods = text(&answers[0], "access-control-allow-methods").unwrap();
    assert!(["PUT", "PATCH", "DELETE"].iter().all(|one| methods.contains(one)), "{methods}");
    let allowed = text(&answers[0], "access-control-allow-headers").unwrap();
    for name in ["authorization", "content-type", "if-match", "if-none-match", "idempotency-key"] {
        assert!(allowed.contains(name), "{name}: {allowed}");
    }
    assert!(text(&answers[0], "access-control-max-age").is_some());
}

#[tokio::test]
async fn other_origins_are_refused_as_without_any_that_is_allowed() {
    let server = served(&allowing(&[APP])).await;
    let admin = server.admin().await;
    for origin in [
        "https://evil.example",
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil.example",
        "https://sub.app.example",
        "null",
    ] {
        let asked = preflight(&server, origin, ENTRY).send().await.unwrap();
        assert_eq!(asked.status(), 405, "{origin}");
        may_not_read(asked.headers());
        assert!(varies_by_origin(asked.headers()));
        let write = server.put(ENTRY, "1").bearer_auth(&admin.secret);
        refused(403, "cross-origin", from(origin, write)).await;
        // Browsers let pages send this; what comes of it, they do not see.
        let read = server.get("/v1/stores").bearer_auth(&admin.secret);
        may_not_read(answered(200, from(origin, read)).await.headers());
    }
    let plain = answered(200, server.get("/v1/stores").bearer_auth(&admin.secret)).await;
    may_not_read(plain.headers());
    assert!(varies_by_origin(plain.headers()), "caches must tell origins apart");
}

#[tokio::test]
async fn without_configuration_no_origin_is_allowed() {
    let server = Running::new().await;
    let asked = preflight(&server, APP, ENTRY).send().await.unwrap();
    assert_eq!(asked.status(), 405);
    may_not_read(asked.headers());
    assert!(!varies_by_origin(asked.headers()));
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_reads_answers_errors_and_streams() {
    let mut config = allowing(&[APP]);
    config.limits.body_bytes_max = 100;
    config.rates = Rates { stranger: Some(Rate { per_second: 1, burst: 3 }), ..config.rates };
    let server = served(&config).await;
    let admin = server.admin().await;
    let with = |request: RequestBuilder| from(APP, request.bearer_auth(&admin.secret));
    let put = answered(200, with(server.put(ENTRY, "1"))).await;
    may_read(put.headers());
    assert!(put.headers().contains_key("etag"));
    for (status, request) in [
        (200, server.get(ENTRY)),
        (404, server.get("/v1/stores/main/entries/none")),
        (404, server.get("/nothing/here")),
        (405, server.post(ENTRY, "1")),
        (412, server.put(ENTRY, "2").header("if-none-match", "*")),
        (413, server.put(ENTRY, &format!("\"{}\"", "x".repeat(200)))),
        (415, server.request(Method::PUT, ENTRY).body("1")),
    ] {
        let answer = with(request).send().await.unwrap();
        assert_eq!(answer.status(), status);
        may_read(answer.headers());
    }
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let answer = from(APP, server.get(ENTRY).bearer_auth("kw_wrong")).send().await.unwrap();
        may_read(answer.headers());
        statuses.push(answer.status().as_u16());
    }
    assert!(statuses.contains(&401) && statuses.contains(&429), "{statuses:?}");

    let watch = || with(server.get("/v1/stores/main/watch?prefix=user:"));
    may_read(answered(200, watch()).await.headers());
    let mut events = Events::new(watch()).await;
    answered(200, with(server.put(ENTRY, "2"))).await;
    let (_, change) = events.changed().await;
    assert!(change.to_string().contains("user:7:name"), "{change}");
}

#[tokio::test]
async fn an_allowed_origin_gets_no_more_rights_than_its_credential() {
    let schema = "[stores.main]\nurl = \"memory:\"\n[spaces.notes]\n\
                  key = \"user:{user}:notes:{note}\"\nownership = \"user\"\n";
    let schema = keyward::schema::Schema::parse(schema, "schema.toml").unwrap();
    let server = Running::start(&allowing(&[APP]), &Data::new(schema)).await;
    let admin = server.admin().await;
    for user in ["ada", "bob"] {
        let path = format!("/v1/spaces/notes/records/user:{user}:notes:1");
        let put = server.put(&path, r#"{"secret":1}"#).bearer_auth(&admin.secret);
        assert!(put.send().await.unwrap().status().is_success());
    }
    let ada = server.key(&admin, &json!({"name": "ada", "user": "ada"})).await.secret;
    let read = json!({"name": "reader", "scopes": ["read:store/main"]});
    let reader = server.key(&admin, &read).await.secret;
    let own = "/v1/spaces/notes/records/user:ada:notes:1";
    let others = "/v1/spaces/notes/records/user:bob:notes:1";
    answered(200, from(APP, server.get(own).bearer_auth(&ada))).await;
    // The same answers, with and without an origin.
    for (path, key, body) in [
        (others, Some(&ada), None),
        (others, Some(&ada), Some("{}")),
        (ENTRY, Some(&ada), None),
        (ENTRY, Some(&reader), Some("1")),
        ("/v1/keys", Some(&reader), None),
        ("/v1/audit", Some(&ada), None),
        ("/v1/stores", None, None),
        (ENTRY, None, Some("1")),
    ] {
        let request = || {
            let request = match body {
                Some(body) => server.put(path, body),
                None => server.get(path),
            };
            match key {
                Some(key) => request.bearer_auth(key),
                None => request,
            }
        };
        let plain = request().send().await.unwrap();
        let page = from(APP, request()).send().await.unwrap();
        assert!(plain.status().is_client_error(), "{path}: {}", plain.status());
        assert_eq!(plain.status(), page.status(), "{path}");
        may_read(page.headers());
    }
}

#[tokio::test]
async fn without_keys_only_pages_of_this_machine_can_be_allowed() {
    const LOCAL: &str = "http://localhost:5173";
    let server = served(&allowing(&[APP, LOCAL])).await;
    answered(200, from(LOCAL, server.put(ENTRY, "1"))).await;
    refused(403, "cross-origin", from("http://localhost:5174", server.put(ENTRY, "2"))).await;
    // Without a credential they would be the local user, who may do everything.
    for request in [server.put(ENTRY, "2"), server.get(ENTRY), server.get("/v1/stores")] {
        let answer = answered(403, from(APP, request)).await;
        may_read(answer.headers());
        assert!(answer.text().await.unwrap().contains("without credentials"));
    }
    let admin = server.admin().await;
    answered(200, from(APP, server.put(ENTRY, "2").bearer_auth(&admin.secret))).await;
    refused(401, "unauthenticated", from(LOCAL, server.put(ENTRY, "3"))).await;
}

#[tokio::test]
async fn tools_are_called_from_allowed_origins_and_those_of_agents() {
    const AGENT: &str = "https://agent.example";
    let mcp = McpOptions { origins: vec![AGENT.to_owned()], ..McpOptions::default() };
    let server = served(&Config { mcp, ..allowing(&[APP]) }).await;
    let admin = server.admin().await;
    let agent = Agent::with(&server, &admin.secret);
    let list = || agent.request("tools/list", json!({}));
    may_read(answered(200, from(APP, list())).await.headers());
    answered(204, preflight(&server, APP, "/mcp")).await;
    let answer = answered(200, from(AGENT, list())).await;
    assert_eq!(text(answer.headers(), "access-control-allow-origin"), Some(AGENT));
    answered(204, preflight(&server, AGENT, "/mcp")).await;
    // They may call tools, and nothing else.
    let other = preflight(&server, AGENT, ENTRY).send().await.unwrap();
    may_not_read(other.headers());
    let write = server.put(ENTRY, "1").bearer_auth(&admin.secret);
    refused(403, "cross-origin", from(AGENT, write)).await;
    refused(403, "cross-origin", from("https://evil.example", list())).await;
}

#[tokio::test]
async fn what_is_no_origin_is_refused_at_the_start() {
    for wrong in ["*", "null", "app.example", "https://app.example/", "https://*.example", ""] {
        let config = allowing(&[APP, wrong]);
        assert!(matches!(config.check(), Err(StartError::Origin { .. })), "{wrong:?}");
        let data = without_schema("memory:").unwrap();
        let bound = keyward_server::Server::bind(&config, &data).await;
        assert!(matches!(bound, Err(StartError::Origin { .. })), "{wrong:?}");
    }
    allowing(&[APP, "http://localhost:5173", "http://[::1]:8080"]).check().unwrap();
}
