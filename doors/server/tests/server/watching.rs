//! Watches, and the end of a server that has some.

use std::time::Duration;

use futures_util::StreamExt;
use keyward_server::{Config, Limits, without_schema};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{Running, answered, configured, refused};

/// The events of a watch, one after the other.
pub struct Events {
    body: futures_util::stream::BoxStream<'static, Vec<u8>>,
    text: String,
}

impl Events {
    pub async fn new(request: reqwest::RequestBuilder) -> Self {
        let answer = answered(200, request).await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let chunks = answer.bytes_stream().map(|chunk| chunk.unwrap().to_vec());
        Self { body: chunks.boxed(), text: String::new() }
    }

    /// The next event: its name, its id, its data. `None` at the end.
    pub async fn next(&mut self) -> Option<(String, String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let mut lines = event.lines();
                    let found = lines.find_map(|line| line.strip_prefix(&format!("{name}: ")));
                    found.unwrap_or_default().to_owned()
                };
                if !event.starts_with(':') {
                    let data = serde_json::from_str(&field("data")).unwrap();
                    return Some((field("event"), field("id"), data));
                }
            } else {
                let chunk = self.body.next().await?;
                self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        }
    }

    pub async fn changed(&mut self) -> (String, Value) {
        loop {
            let (name, id, data) = self.next().await.unwrap();
            if name == "changed" {
                return (id, data["changes"].clone());
            }
        }
    }
}

#[tokio::test]
async fn a_watch_tells_what_changes_and_goes_on_where_it_ended() {
    let server = Running::new().await;
    let put = |key: &str| server.put(&format!("/v1/stores/main/entries/{key}"), "1");
    answered(200, put("user:7:before")).await;
    let watch = || server.get("/v1/stores/main/watch?prefix=user:7:");
    let mut events = Events::new(watch()).await;
    let (name, id, data) = events.next().await.unwrap();
    assert_eq!((name.as_str(), data["revision"].to_string()), ("reached", id));
    answered(200, put("user:70:other")).await;
    answered(200, put("user:7:a").header("idempotency-key", "k")).await;
    let (id, changes) = events.changed().await;
    assert_eq!(changes, json!([{"key": "user:7:a", "kind": "put"}]));
    drop(events);

    let delete = server.request(reqwest::Method::DELETE, "/v1/stores/main/entries/user:7:a");
    answered(204, delete).await;
    let mut events = Events::new(watch().header("last-event-id", &id)).await;
    assert_eq!(events.changed().await.1, json!([{"key": "user:7:a", "kind": "deleted"}]));
    refused(400, "invalid", watch().header("last-event-id", "x")).await;
    refused(403, "reserved", server.get("/v1/stores/main/watch?prefix=system:")).await;
}

#[tokio::test]
async fn keywards_own_changes_are_not_told() {
    let server = Running::new().await;
    let mut events = Events::new(server.get("/v1/stores/main/watch")).await;
    events.next().await.unwrap();
    let put = server.put("/v1/stores/main/entries/a", "1").header("idempotency-key", "k");
    answered(200, put).await;
    assert_eq!(events.changed().await.1, json!([{"key": "a", "kind": "put"}]));
}

#[tokio::test]
async fn a_stop_ends_watches_and_finishes_requests() {
    let server = Running::new().await;
    let mut events = Events::new(server.get("/v1/stores/main/watch")).await;
    assert_eq!(events.next().await.unwrap().0, "reached");
    answered(200, server.put("/v1/stores/main/entries/a", "1")).await;
    server.stop().await;
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn a_watch_ends_with_its_credential() {
    let recheck_interval = std::time::Duration::from_millis(5);
    let limits = Limits { recheck_interval, ..Limits::default() };
    let config = Config { limits, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let mut local = Events::new(server.get("/v1/stores/main/watch")).await;
    assert_eq!(local.next().await.unwrap().0, "reached");
    let admin = server.admin().await;
    while local.next().await.is_some() {}

    let key = server.key(&admin, &json!({"name": "watcher"})).await;
    let watch = || server.get("/v1/stores/main/watch").bearer_auth(&key.secret);
    let mut events = Events::new(watch()).await;
    assert_eq!(events.next().await.unwrap().0, "reached");
    let revoke = server.request(reqwest::Method::DELETE, &format!("/v1/keys/{}", key.id));
    answered(200, revoke.bearer_auth(&admin.secret)).await;
    while events.next().await.is_some() {}
    refused(401, "unauthenticated", watch()).await;
}

/// A number of the server's metrics.
async fn metric(server: &Running, name: &str) -> u64 {
    let metrics = answered(200, server.get("/metrics")).await.text().await.unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_closed_and_misses_nothing_when_it_comes_back() {
    const COMMITS: usize = 20;
    let watch_stall_time_max = Duration::from_millis(300);
    let limits = Limits { watch_stall_time_max, ..Limits::default() };
    let config = Config { limits, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let mut began = Events::new(server.get("/v1/stores/main/watch")).await;
    let (_, id, _) = began.next().await.unwrap();
    drop(began);
    let address = server.url.strip_prefix("http://").unwrap();
    let mut watchers = Vec::new();
    for path in ["watch", "raw/watch"] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let head = format!("GET /v1/stores/main/{path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0; 1];
        connection.read_exact(&mut first).await.unwrap();
        watchers.push(connection);
    }
    for n in 0..COMMITS {
        let keys = (0..200).map(|m| format!("{n}:{m}:{}", "x".repeat(1_000)));
        let writes: Vec<_> = keys.map(|key| json!({"put": {"key": key, "value": 1}})).collect();
        let body = json!({ "writes": writes }).to_string();
        answered(200, server.post("/v1/stores/main/commit", &body)).await;
    }
    let closed = async {
        while metric(&server, "keyward_watches").await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), closed).await.expect("they are closed");
    assert_eq!(metric(&server, "keyward_watches_unread_total").await, 2);
    for mut connection in watchers {
        let mut held = Vec::new();
        // A reset is an end too.
        let _ = connection.read_to_end(&mut held).await;
        let all = COMMITS * 200 * 1_000;
        assert!(held.len() < all / 2, "{} bytes were held", held.len());
    }
    let watch = server.get("/v1/stores/main/watch").header("last-event-id", id);
    let mut events = Events::new(watch).await;
    for n in 0..COMMITS {
        let (_, changes) = events.changed().await;
        assert_eq!(changes.as_array().unwrap().len(), 200);
        assert!(changes[0]["key"].as_str().unwrap().starts_with(&format!("{n}:")), "{n}");
    }
}
