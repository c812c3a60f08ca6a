//! Clients that take what others need: connections, request slots, memory, log lines.

use std::time::Duration;

use keyward_server::{Config, Limits, Rate, Rates, Tls, without_schema};
use keyward_testkit::write_secret;
use rcgen::CertifiedKey;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::fixture::{Made, Running, answered, configured, refused};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn limited(limits: impl FnOnce(&mut Limits)) -> Config {
    let mut config = configured();
    limits(&mut config.limits);
    config
}

async fn start(config: &Config) -> Running {
    Running::start(config, &without_schema("memory:").unwrap()).await
}

/// A connection from one of this machine's own addresses.
async fn from(address: &str, server: &Running) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    let server = server.url.split_once("://").unwrap().1;
    socket.connect(server.parse().unwrap()).await.unwrap()
}

/// What is answered on a connection until it is closed.
async fn told(connection: &mut TcpStream) -> String {
    let mut told = Vec::new();
    // A reset is an end too.
    let _ = timeout(LONG, connection.read_to_end(&mut told)).await.expect("it ends");
    String::from_utf8_lossy(&told).into_owned()
}

async fn asked(connection: &mut TcpStream, request: &str) -> String {
    connection.write_all(request.as_bytes()).await.unwrap();
    told(connection).await
}

/// The head of a request, and as much of its body as is given.
async fn begun(server: &Running, head: &str, key: Option<&Made>, body: &str) -> TcpStream {
    let mut connection = from("127.0.0.1", server).await;
    let key = key.map_or(String::new(), |key| format!("authorization: Bearer {}\r\n", key.secret));
    let text = format!("{head} HTTP/1.1\r\nhost: localhost\r\n{key}");
    let text = format!("{text}content-type: application/json\r\ncontent-length: 400\r\n\r\n{body}");
    connection.write_all(text.as_bytes()).await.unwrap();
    connection
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn one_address_does_not_take_all_connections() {
    let server = start(&limited(|limits| {
        limits.connections_max = 8;
        limits.header_time_max = LONG;
    }))
    .await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(from("127.0.0.1", &server).await);
    }
    for _ in 0..20 {
        let mut beyond = from("127.0.0.1", &server).await;
        assert_eq!(told(&mut beyond).await, "", "it is closed at once");
    }
    let mut other = from("127.0.0.2", &server).await;
    assert!(asked(&mut other, HEALTH).await.starts_with("HTTP/1.1 200"));
    let metrics = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let counted = asked(&mut from("127.0.0.2", &server).await, metrics).await;
    assert!(counted.contains("keyward_http_connections_refused_total 20"), "{counted}");
    idle.pop();
    // Its place is given back as soon as the server notices.
    let again = async {
        loop {
            let mut again = from("127.0.0.1", &server).await;
            let _ = again.write_all(HEALTH.as_bytes()).await;
            if told(&mut again).await.starts_with("HTTP/1.1 200") {
                break;
            }
        }
    };
    timeout(LONG, again).await.unwrap();
}

#[tokio::test]
async fn behind_a_proxy_one_address_may_have_all_connections() {
    let server = start(&limited(|limits| {
        limits.connections_max = 4;
        limits.connections_per_address_max = Some(4);
        limits.header_time_max = LONG;
    }))
    .await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        idle.push(from("127.0.0.1", &server).await);
    }
    let mut last = from("127.0.0.1", &server).await;
    assert!(asked(&mut last, HEALTH).await.starts_with("HTTP/1.1 200"));
}

/// Sends requests for a large answer, reads nothing, and waits until the server closes.
async fn never_reads(mut connection: impl AsyncWrite + Unpin) {
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let closed = async {
        while connection.write_all(request).await.is_ok() && connection.flush().await.is_ok() {}
    };
    timeout(LONG, closed).await.expect("who does not read is not waited for");
}

#[tokio::test]
async fn a_client_that_asks_and_never_reads_is_closed() {
    let server = start(&limited(|limits| {
        limits.write_time_max = Duration::from_secs(1);
        limits.header_time_max = LONG;
    }))
    .await;
    let clients = (0..8).map(|_| async { never_reads(from("127.0.0.1", &server).await).await });
    futures_util::future::join_all(clients).await;
    answered(200, server.get("/healthz")).await;
}

#[tokio::test]
async fn a_client_that_never_reads_is_closed_with_tls_too() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    std::fs::write(&tls.cert, cert.pem()).unwrap();
    write_secret(&tls.key, signing_key.serialize_pem()).unwrap();
    let limits = |limits: &mut Limits| {
        limits.write_time_max = Duration::from_secs(1);
        limits.header_time_max = LONG;
    };
    let server = start(&Config { tls: Some(tls), ..limited(limits) }).await;
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = std::sync::Arc::new(crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = from("127.0.0.1", &server).await;
    let connector = TlsConnector::from(std::sync::Arc::new(client));
    never_reads(connector.connect(name, stream).await.unwrap()).await;
}

#[tokio::test]
async fn bodies_that_never_come_take_no_slots() {
    let server = start(&limited(|limits| {
        limits.requests_max = 8;
        limits.body_time_max = LONG;
    }))
    .await;
    let admin = server.admin().await;
    let seven = server.key(&admin, &json!({"name": "seven", "user": "7"})).await;
    let eight = server.key(&admin, &json!({"name": "eight", "user": "8"})).await;
    let own = "/v1/stores/main/entries/user:7:a";
    let heads = ["PUT /v1/stores/main/entries/user:7:a", "POST /mcp", "POST /v1/agents/import"];
    let mut silent = Vec::new();
    for head in heads {
        for _ in 0..20 {
            silent.push(begun(&server, head, Some(&seven), "").await);
        }
    }
    for _ in 0..20 {
        answered(200, server.get("/healthz")).await;
        answered(200, server.get("/readyz")).await;
        let put = server.put("/v1/stores/main/entries/user:8:a", "1");
        answered(200, put.bearer_auth(&eight.secret)).await;
        // Not even their sender is refused.
        answered(200, server.put(own, "1").bearer_auth(&seven.secret)).await;
    }
    drop(silent);
}

#[tokio::test]
async fn one_credential_does_not_take_all_slots() {
    let server = start(&limited(|limits| limits.requests_max = 2)).await;
    let admin = server.admin().await;
    let seven = server.key(&admin, &json!({"name": "seven", "user": "7"})).await;
    let acquire = |wait: u32| {
        let body = json!({"root": "user:7", "paths": ["a"], "wait": wait}).to_string();
        server.post("/v1/stores/main/locks/acquire", &body).bearer_auth(&seven.secret)
    };
    answered(200, acquire(0)).await;
    let waiting = tokio::spawn(acquire(20).send());
    let somebody_waits = async {
        loop {
            let locks = server.get("/v1/stores/main/locks?root=user:7").bearer_auth(&admin.secret);
            let locks: serde_json::Value = answered(200, locks).await.json().await.unwrap();
            if locks["waiters"] != json!([]) {
                break;
            }
        }
    };
    timeout(LONG, somebody_waits).await.unwrap();
    let full = answered(503, server.get("/v1/stores").bearer_auth(&seven.secret)).await;
    assert_eq!(full.headers()["retry-after"], "1");
    let problem: serde_json::Value = full.json().await.unwrap();
    assert_eq!((&problem["code"], &problem["retryable"]), (&"overloaded".into(), &true.into()));
    for _ in 0..10 {
        answered(200, server.get("/v1/stores").bearer_auth(&admin.secret)).await;
        answered(200, server.get("/healthz")).await;
    }
    waiting.abort();
    let free = async {
        let get = || server.get("/v1/stores").bearer_auth(&seven.secret);
        while get().send().await.unwrap().status() != 200 {}
    };
    timeout(LONG, free).await.unwrap();
}

#[tokio::test]
async fn bodies_on_their_way_are_bounded_for_one_credential_and_in_all() {
    let server = start(&limited(|limits| {
        limits.bodies_bytes_max = 1_000;
        limits.body_time_max = LONG;
    }))
    .await;
    let admin = server.admin().await;
    let seven = server.key(&admin, &json!({"name": "seven", "user": "7"})).await;
    let eight = server.key(&admin, &json!({"name": "eight", "user": "8"})).await;
    let body = format!("\"{}\"", "x".repeat(298));
    let put = |key: &Made, user: &str| {
        server
            .put(&format!("/v1/stores/main/entries/user:{user}:a"), &body)
            .bearer_auth(&key.secret)
    };
    answered(200, put(&seven, "7")).await;
    let head = "PUT /v1/stores/main/entries/user:7:a";
    let half = begun(&server, head, Some(&seven), &body).await;
    let full = async { while put(&seven, "7").send().await.unwrap().status() != 503 {} };
    timeout(LONG, full).await.unwrap();
    refused(503, "overloaded", put(&seven, "7")).await;
    answered(200, put(&eight, "8")).await;
    drop(half);
    let free = async { while put(&seven, "7").send().await.unwrap().status() != 200 {} };
    timeout(LONG, free).await.unwrap();
}

#[tokio::test]
async fn a_body_that_does_not_come_is_a_timeout_however_short_answers_are() {
    let server = start(&limited(|limits| {
        limits.body_time_max = Duration::from_secs(6);
        limits.answer_time_max = Duration::from_secs(2);
    }))
    .await;
    let heads = [
        "PUT /v1/stores/main/entries/a",
        "POST /mcp",
        "POST /v1/stores/main/commit",
        "POST /v1/agents/import?user=7",
    ];
    let silent = heads.map(async |head| {
        let told = told(&mut begun(&server, head, None, "[").await).await;
        assert!(told.starts_with("HTTP/1.1 408"), "{head}: {told}");
        assert!(told.contains(r#""code":"timeout""#), "{head}: {told}");
        assert!(told.contains("connection: close"), "{head}: {told}");
    });
    futures_util::future::join_all(silent).await;
    // A body that takes longer than an answer may is answered.
    let mut slow = begun(&server, "PUT /v1/stores/main/entries/a", None, "").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    slow.write_all(format!("\"{}\"", "x".repeat(398)).as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn what_the_head_shows_to_be_refused_is_refused_before_the_body() {
    let server = start(&limited(|limits| limits.body_time_max = LONG)).await;
    let admin = server.admin().await;
    let reader = json!({"name": "reader", "scopes": ["read:store/main"]});
    let reader = server.key(&admin, &reader).await;
    for (head, key, expected) in [
        ("PUT /v1/stores/main/entries/a", None, "401"),
        ("PUT /v1/stores/none/entries/a", Some(&admin), "404"),
        ("POST /v1/spaces/none/query", Some(&admin), "404"),
        ("POST /v1/registries/none/runs", Some(&admin), "404"),
        ("PUT /v1/agreements/none/pages/p", Some(&admin), "404"),
        ("PUT /v1/stores/main/entries/a", Some(&reader), "403"),
        ("POST /v1/keys", Some(&reader), "403"),
        ("POST /v1/registries/none/webhook", None, "404"),
        ("POST /nothing", None, "404"),
        ("POST /healthz", None, "405"),
    ] {
        let told = told(&mut begun(&server, head, key, "{").await).await;
        assert!(told.starts_with(&format!("HTTP/1.1 {expected}")), "{head}: {told}");
        assert!(told.contains("\r\nconnection: close\r\n"), "{head}: {told}");
    }
    let request = server.put("/v1/stores/main/entries/a", "1").bearer_auth(&admin.secret);
    let read = answered(200, request).await;
    assert!(!read.headers().contains_key("connection"), "what was read is no reason to close");
    let request = server.request(Method::GET, "/v1/stores").body("read, although nobody asked");
    let read = answered(200, request.bearer_auth(&admin.secret)).await;
    assert!(!read.headers().contains_key("connection"));
}

#[tokio::test]
async fn what_is_announced_too_large_is_refused_before_it_comes() {
    let server = start(&limited(|limits| limits.body_bytes_max = 100)).await;
    let told = told(&mut begun(&server, "PUT /v1/stores/main/entries/a", None, "").await).await;
    assert!(told.starts_with("HTTP/1.1 413") && told.contains("connection: close"), "{told}");
}

#[tokio::test]
async fn a_request_names_its_host_exactly_once() {
    let server = start(&configured()).await;
    for (version, hosts, expected) in [
        ("1.1", "", "400"),
        ("1.1", "host: localhost\r\nhost: localhost\r\n", "400"),
        ("1.1", "host: localhost\r\nhost: evil.example\r\n", "400"),
        ("1.1", "host: \r\n", "400"),
        ("1.1", "host: user@localhost\r\n", "400"),
        ("1.1", "host: localhost\r\n", "200"),
        ("1.1", "host: [::1]:7480\r\n", "200"),
        ("1.0", "", "200"),
        ("1.0", "host: localhost\r\nhost: localhost\r\n", "400"),
    ] {
        let request = format!("GET /healthz HTTP/{version}\r\n{hosts}connection: close\r\n\r\n");
        let told = asked(&mut from("127.0.0.1", &server).await, &request).await;
        let status = told.split(' ').nth(1).unwrap_or_default();
        assert_eq!(status, expected, "{version} {hosts:?}: {told}");
    }
}

#[tokio::test]
async fn strangers_hold_nothing_by_hooks_that_never_come() {
    let rates = Rates { stranger: Some(Rate { per_second: 1_000, burst: 1_000 }), tenant: None };
    let limits = |limits: &mut Limits| {
        limits.requests_max = 4;
        limits.body_time_max = LONG;
    };
    let server = start(&Config { rates, ..limited(limits) }).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(begun(&server, "POST /v1/registries/none/webhook", None, "").await);
    }
    for _ in 0..10 {
        answered(200, server.get("/healthz")).await;
        answered(200, server.put("/v1/stores/main/entries/a", "1")).await;
    }
    for mut one in silent {
        assert!(told(&mut one).await.starts_with("HTTP/1.1 404"));
    }
}

#[tokio::test]
async fn responses_that_nobody_reads_are_bounded_for_one_address_and_not_for_others() {
    let config = limited(|limits| {
        limits.responses_bytes_max = 2 << 20;
        limits.connections_per_address_max = Some(1_000);
    });
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let large = format!("\"{}\"", "x".repeat(512 * 1_024));
    answered(200, server.put("/v1/stores/main/entries/large", &large)).await;
    let host = server.url.strip_prefix("http://").unwrap().to_owned();
    let get = format!("GET /v1/stores/main/entries/large HTTP/1.1\r\nhost: {host}\r\n\r\n");
    let mut unread = Vec::new();
    for _ in 0..32 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 * 1_024).unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut wire = socket.connect(host.parse().unwrap()).await.unwrap();
        wire.write_all(get.as_bytes()).await.unwrap();
        unread.push(wire);
    }
    let mut refused = 0;
    for wire in &mut unread {
        let mut head = [0; 12];
        timeout(LONG, wire.read_exact(&mut head)).await.unwrap().unwrap();
        refused += usize::from(&head == b"HTTP/1.1 503");
    }
    assert!((1..32).contains(&refused), "{refused} of 32 were refused");
    // Another address reads the same, in full.
    let whole = answered(200, server.get("/v1/stores/main/entries/large")).await;
    assert_eq!(whole.text().await.unwrap(), large);
    // Who reads, or leaves, gets more.
    drop(unread);
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut wire = socket.connect(host.parse().unwrap()).await.unwrap();
    let mut text = [0; 12];
    let again = async {
        loop {
            wire.write_all(get.replace("large", "none").as_bytes()).await.unwrap();
            wire.read_exact(&mut text).await.unwrap();
            if &text == b"HTTP/1.1 404" {
                return;
            }
            let mut rest = vec![0; 64 * 1_024];
            let _ = wire.read(&mut rest).await.unwrap();
        }
    };
    timeout(LONG, again).await.unwrap();
}

#[tokio::test]
async fn a_page_ends_when_it_is_large_and_the_next_one_goes_on() {
    const SCHEMA: &str = r#"
        [stores.main]
        url = "memory:"
        [spaces.notes]
        key = "shared:notes:{note}"
        ownership = "shared"
        [spaces.notes.indexes.by_kind]
        field = "kind"
        type = "text"
    "#;
    let server = Running::with_schema(SCHEMA).await;
    let large = json!({"kind": "a", "text": "x".repeat(900 * 1_024)}).to_string();
    for n in 0..40 {
        let put = server.put(&format!("/v1/spaces/notes/records/shared:notes:{n:02}"), &large);
        answered(201, put).await;
    }
    let mut keys = Vec::new();
    let mut pages = 0;
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/stores/main/entries?prefix=shared:&values=true&limit=1000{cursor}");
        let page: serde_json::Value = answered(200, server.get(&path)).await.json().await.unwrap();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 32, "{} large entries on one page", items.len());
        keys.extend(items.iter().map(|item| item["key"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(pages > 1 && keys.len() == 40 && keys.is_sorted(), "{pages} pages, {keys:?}");
    let (mut found, mut cursor) = (0, serde_json::Value::Null);
    loop {
        let query = json!({"index": "by_kind", "equal": ["a"], "limit": 1000, "cursor": cursor});
        let request = server.post("/v1/spaces/notes/query", &query.to_string());
        let page: serde_json::Value = answered(200, request).await.json().await.unwrap();
        let records = page["records"].as_array().unwrap().len();
        assert!(records <= 32, "{records} large records on one page");
        found += records;
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, 40);
}
