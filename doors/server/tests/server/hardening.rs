//! Clients that are slow, large, rude or many.

use std::time::Duration;

use keyward_server::{Config, Limits, without_schema};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{Running, answered, configured, refused};

/// A server with little patience.
async fn impatient(limits: impl FnOnce(&mut Limits)) -> Running {
    let mut config: Config = configured();
    config.limits.header_time_max = Duration::from_millis(1_500);
    config.limits.body_time_max = Duration::from_millis(1_500);
    limits(&mut config.limits);
    Running::start(&config, &without_schema("memory:").unwrap()).await
}

async fn connect(server: &Running) -> TcpStream {
    TcpStream::connect(server.url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// What a raw connection is told until it is closed.
async fn told_raw(connection: &mut TcpStream) -> String {
    let mut told = Vec::new();
    // A reset is an end too.
    let _ = connection.read_to_end(&mut told).await;
    String::from_utf8_lossy(&told).into_owned()
}

#[tokio::test]
async fn a_connection_that_says_nothing_or_half_a_head_is_closed() {
    let server = impatient(|_| ()).await;
    for said in ["", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: "] {
        let mut connection = connect(&server).await;
        connection.write_all(said.as_bytes()).await.unwrap();
        let told = told_raw(&mut connection).await;
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 408"), "{told}");
    }
    answered(200, server.get("/healthz")).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = impatient(|_| ()).await;
    let mut connection = connect(&server).await;
    let head = "PUT /v1/stores/main/entries/a HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 10\r\n\r\n1";
    connection.write_all(head.as_bytes()).await.unwrap();
    let told = told_raw(&mut connection).await;
    assert!(told.starts_with("HTTP/1.1 408") && told.contains("\"code\":\"timeout\""), "{told}");
    refused(404, "not-found", server.get("/v1/stores/main/entries/a")).await;
}

#[tokio::test]
async fn a_thousand_slow_connections_do_not_hold_up_the_others() {
    let server = impatient(|limits| limits.header_time_max = Duration::from_secs(60)).await;
    let mut slow = Vec::new();
    for _ in 0..1_000 {
        let mut connection = connect(&server).await;
        connection.write_all(b"GET /healthz HTTP/1.1\r\nx: ").await.unwrap();
        slow.push(connection);
    }
    for n in 0..10 {
        answered(200, server.put(&format!("/v1/stores/main/entries/k:{n}"), "1")).await;
    }
    drop(slow);
}

#[tokio::test]
async fn more_connections_than_are_held_wait_until_slow_ones_are_closed() {
    let server = impatient(|limits| {
        limits.connections_max = 4;
        limits.connections_per_address_max = Some(4);
    })
    .await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(connect(&server).await);
    }
    answered(200, server.get("/healthz")).await;
}

#[tokio::test]
async fn heads_and_bodies_that_are_too_large_are_refused() {
    let server = impatient(|limits| limits.body_bytes_max = 100).await;
    let long = "x".repeat(100_000);
    let answer = server.get("/healthz").header("x", &long).send().await;
    let status = answer.map(|answer| answer.status().as_u16());
    assert!(matches!(status, Err(_) | Ok(431)), "{status:?}");
    let many = (0..200).fold(server.get("/healthz"), |it, n| it.header(format!("x{n}"), "1"));
    assert_eq!(many.send().await.unwrap().status(), 431);
    let path = "/v1/stores/main/entries/a";
    refused(413, "limit-exceeded", server.put(path, &format!("\"{}\"", "x".repeat(99)))).await;
    // Without a length that was announced.
    let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("1".repeat(60)));
    let endless = server.request(reqwest::Method::PUT, path);
    let endless = endless.header("content-type", "application/json");
    let answer = endless.body(reqwest::Body::wrap_stream(chunks)).send().await;
    // It is answered before everything was sent, which the client may take for a broken connection.
    assert!(answer.is_err() || answer.unwrap().status() == 413);
    answered(200, server.put(path, "1")).await;
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let server = impatient(|_| ()).await;
    for said in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9\r\n\r\n", "\u{16}\u{3}\u{1}"] {
        let mut connection = connect(&server).await;
        connection.write_all(said.as_bytes()).await.unwrap();
        let told = told_raw(&mut connection).await;
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 4"), "{said:?}: {told}");
    }
    answered(200, server.get("/healthz")).await;
}

#[tokio::test]
async fn other_sites_cannot_use_a_server_without_credentials() {
    let server = impatient(|_| ()).await;
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "127.0.0.1.evil.example"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost.evil.example"),
    ] {
        refused(403, "forbidden", server.get("/v1/stores").header(name, value)).await;
    }
    for (name, value) in
        [("host", "localhost:1"), ("host", "[::1]:7"), ("origin", "http://127.0.0.1:9")]
    {
        answered(200, server.get("/v1/stores").header(name, value)).await;
    }
}

/// A page on another local port can make a browser send a body without a type, and without asking first.
#[tokio::test]
async fn a_page_of_another_origin_changes_nothing_with_or_without_keys() {
    let server = Running::new().await;
    let (path, own) = ("/v1/stores/main/entries/a", server.url.clone());
    let key = r#"{"name":"theirs","scopes":["admin:*"]}"#;
    let from_page =
        |request: reqwest::RequestBuilder| request.header("origin", "http://localhost:9");
    let token = server.start_token.clone().unwrap();
    let blob = server.request(reqwest::Method::POST, "/v1/keys").body(key);
    refused(403, "cross-origin", from_page(blob)).await;
    let mut credential = None;
    for _ in 0..2 {
        let with = |request: reqwest::RequestBuilder| match &credential {
            Some(secret) => request.bearer_auth(secret),
            None => request,
        };
        let write = || with(server.put(path, "1"));
        refused(403, "cross-origin", from_page(write())).await;
        refused(403, "cross-origin", write().header("origin", "null")).await;
        for site in ["cross-site", "same-site"] {
            refused(403, "cross-origin", write().header("sec-fetch-site", site)).await;
            // To look is not to change; what comes of it, the page does not see.
            answered(200, with(server.get("/v1/stores")).header("sec-fetch-site", site)).await;
        }
        for (method, path) in [
            (reqwest::Method::DELETE, path),
            (reqwest::Method::PATCH, path),
            (reqwest::Method::POST, "/v1/stores/main/commit"),
        ] {
            let change = with(server.sent(method, path, "{}"));
            refused(403, "cross-origin", from_page(change)).await;
        }
        answered(200, write().header("origin", &own)).await;
        answered(200, write().header("origin", &own).header("sec-fetch-site", "same-origin")).await;
        answered(200, write().header("sec-fetch-site", "none")).await;
        if credential.is_none() {
            refused(403, "cross-origin", from_page(server.first_key(key))).await;
            credential = Some(server.admin().await.secret);
            assert_ne!(credential, Some(token.clone()));
        }
    }
}

#[tokio::test]
async fn an_error_does_not_send_back_all_that_was_sent() {
    let server = Running::new().await;
    let long = "x".repeat(500_000);
    for (path, body) in [
        ("/v1/stores/main/queues/mails/pause", format!(r#"{{"reason":{{"{long}":1}}}}"#)),
        ("/v1/stores/main/queues/mails/pause", format!(r#"{{"{long}":1}}"#)),
        ("/v1/stores/main/locks/acquire", format!(r#"{{"root":"a","wait":"{long}"}}"#)),
        ("/v1/stores/main/commit", format!(r#"{{"writes":"{long}"}}"#)),
    ] {
        let answer = answered(400, server.post(path, &body)).await;
        let problem = answer.text().await.unwrap();
        assert!(problem.len() < 10_000, "{path}: {} bytes", problem.len());
    }
}

/// Members by their order are not what is described, and would be read as something.
#[tokio::test]
async fn a_list_is_no_body_where_an_object_is_meant() {
    let server = Running::new().await;
    let path = "/v1/stores/main/queues/mails/pause";
    let problem = refused(400, "invalid", server.post(path, r#" ["away"]"#)).await;
    assert_eq!(problem["detail"], "the body is a list");
    answered(200, server.post(path, r#"{"reason":"away"}"#)).await;
}
