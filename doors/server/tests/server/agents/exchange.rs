//! Entries as documents: handed out, and taken in.

use std::time::Duration;

use keyward_server::{Config, Limits, without_schema};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::two_users;
use crate::fixture::{Running, answered, configured, refused, told};

/// A text, an analysis of a file, and an answer that was cached.
fn documents() -> Vec<Value> {
    vec![
        json!({
            "_id": "user_123:cache:github:cmVwb3M=",
            "userId": "user_123", "namespace": "cache:github", "key": "repos",
            "value": [{"name": "repo-a", "stars": 100}, {"name": "repo-b", "stars": 50}],
            "metadata": {
                "cached_at": "2026-02-05T12:00:00Z", "ttl_seconds": 3600,
                "api_endpoint": "/user/repos",
            },
            "createdByAgent": "github-fetcher", "accessCount": 3,
            "createdAt": "2026-02-05T12:00:00Z", "updatedAt": "2026-02-05T12:00:00Z",
        }),
        json!({
            "_id": "user_123:default:Z3JlZXRpbmc=",
            "userId": "user_123", "namespace": "default", "key": "greeting",
            "value": "Hello, World!",
            "createdByAgent": "hello-agent", "accessCount": 1,
            "createdAt": "2026-02-05T10:00:00Z", "updatedAt": "2026-02-05T10:00:00Z",
        }),
        json!({
            "_id": "user_123:files:my-repo:c3JjL21haW4ucHk=",
            "userId": "user_123", "namespace": "files:my-repo", "key": "src/main.py",
            "value": {
                "content": "def main():\n    print('Hello')\n", "lines": 2,
                "language": "python", "functions": ["main"],
            },
            "metadata": {
                "indexed_at": "2026-02-05T09:00:00Z", "file_size": 42, "sha256": "abc123...",
            },
            "createdByAgent": "repo-indexer", "lastAccessedByAgent": "code-searcher",
            "accessCount": 15,
            "createdAt": "2026-02-05T09:00:00Z", "updatedAt": "2026-02-05T09:00:00Z",
            "lastAccessedAt": "2026-02-05T14:30:00Z",
        }),
    ]
}

fn lines(documents: &[Value]) -> String {
    documents.iter().map(|document| format!("{document}\n")).collect()
}

fn import(server: &Running, parameters: &str, body: String) -> RequestBuilder {
    let path = format!("/v1/agents/import?{parameters}");
    let request = server.request(reqwest::Method::POST, &path).body(body);
    request.header("content-type", "application/x-ndjson")
}

async fn exported(request: RequestBuilder) -> (String, Vec<Value>) {
    let answer = answered(200, request).await;
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    let text = answer.text().await.unwrap();
    let documents = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (text, documents)
}

#[tokio::test]
async fn documents_come_out_as_they_went_in() {
    let server = Running::new().await;
    let taken = told(200, import(&server, "user=user_123", lines(&documents()))).await;
    assert_eq!(taken, json!({"created": 3, "replaced": 0, "skipped": 0}));
    let export = || server.get("/v1/agents/export?user=user_123");
    let (text, all) = exported(export()).await;
    assert_eq!(all, documents());
    // What was handed out is taken in again, here and elsewhere.
    let again = told(200, import(&server, "user=user_123", text.clone())).await;
    assert_eq!(again, json!({"created": 0, "replaced": 3, "skipped": 0}));
    let other = Running::new().await;
    answered(200, import(&other, "user=user_123", text.clone())).await;
    assert_eq!(exported(other.get("/v1/agents/export?user=user_123")).await.0, text);
    let one = server.get("/v1/agents/export?user=user_123&namespace=default");
    assert_eq!(exported(one).await.1, [documents()[1].clone()]);
    assert_eq!(exported(server.get("/v1/agents/export")).await.0, "");
    // The same as one JSON text.
    let third = Running::new().await;
    let whole = third.post("/v1/agents/import?user=user_123", &json!(documents()).to_string());
    assert_eq!(told(200, whole).await, json!({"created": 3, "replaced": 0, "skipped": 0}));
    assert_eq!(exported(third.get("/v1/agents/export?user=user_123")).await.0, text);
}

#[tokio::test]
async fn many_documents_go_through_in_parts() {
    let server = Running::new().await;
    let document = |n: usize| {
        json!({"userId": "u", "namespace": "n", "key": format!("{n:04}"), "value": "x".repeat(5_000),
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"})
    };
    let all: Vec<Value> = (0..1_000).map(document).collect();
    // Larger than a body may be elsewhere.
    let body = lines(&all);
    assert!(body.len() > 5_000_000);
    let taken = told(200, import(&server, "user=u", body)).await;
    assert_eq!(taken["created"], 1_000);
    let (_, out) = exported(server.get("/v1/agents/export?user=u")).await;
    assert_eq!(out.len(), 1_000);
    assert!(out.iter().zip(&all).all(|(out, all)| out["key"] == all["key"]));

    let mut wrong = all[..150].to_vec();
    wrong[120]["createdAt"] = json!("yesterday");
    let problem = refused(400, "bad-document", import(&server, "user=u", lines(&wrong))).await;
    assert_eq!((&problem["document"], &problem["line"]), (&json!(121), &json!(121)));
    assert_eq!(problem["done"], 120);
    let mut foreign = all[..150].to_vec();
    foreign[140]["userId"] = json!("v");
    let problem = refused(400, "bad-document", import(&server, "user=u", lines(&foreign))).await;
    assert_eq!((&problem["document"], &problem["done"]), (&json!(141), &json!(140)));
    let endless = format!("{{\"value\":\"{}", "x".repeat(3 << 20));
    refused(413, "limit-exceeded", import(&server, "user=u", endless)).await;
    refused(400, "bad-document", import(&server, "user=u", "nothing\n".to_owned())).await;
    let typed = server.post("/v1/agents/import?user=u", "{}");
    refused(400, "bad-document", typed).await;
    assert_eq!(told(200, import(&server, "user=u", "\n\n".to_owned())).await["created"], 0);
}

#[tokio::test]
async fn a_user_takes_in_nobody_elses_documents() {
    let (server, admin, ada, _) = two_users().await;
    let body = lines(&documents());
    let theirs = import(&server, "", body.clone()).bearer_auth(&ada.secret);
    refused(400, "bad-document", theirs).await;
    let named = import(&server, "user=user_123", body).bearer_auth(&ada.secret);
    refused(403, "forbidden", named).await;
    let export = server.get("/v1/agents/export?user=user_123").bearer_auth(&admin.secret);
    assert_eq!(exported(export).await.0, "");
}

/// A document as DynamoDB writes it.
fn typed(user: &str, key: &str) -> String {
    let at = r#"{"S":"2026-02-05T10:00:00Z"}"#;
    format!(
        r#"{{"userId":{{"S":"{user}"}},"namespace":{{"S":"n"}},"key":{{"S":"{key}"}},"value":{{"M":{{"z":{{"N":"1.50"}},"a":{{"NULL":true}}}}}},"createdAt":{at},"updatedAt":{at}}}"#
    )
}

#[tokio::test]
async fn what_other_databases_write_is_taken_in_as_it_is() {
    let rows: Vec<Value> = documents()
        .iter()
        .map(|it| json!({"id": it["_id"], "key": it["_id"], "value": {"rev": "1-a"}, "doc": it}))
        .chain([json!({"id": "_design/x", "doc": {"_id": "_design/x", "views": {}}})])
        .collect();
    let couch = json!({"total_rows": 4, "offset": 0, "rows": rows});
    let pretty: String =
        documents().iter().map(|it| serde_json::to_string_pretty(it).unwrap() + "\n").collect();
    for (body, skipped) in [
        (couch.to_string(), 1),
        (serde_json::to_string_pretty(&couch).unwrap(), 1),
        (pretty, 0),
        (serde_json::to_string_pretty(&documents()).unwrap(), 0),
    ] {
        for content_type in ["application/json", "application/x-ndjson"] {
            let server = Running::new().await;
            let request = server.request(reqwest::Method::POST, "/v1/agents/import?user=user_123");
            let request = request.header("content-type", content_type).body(body.clone());
            let expected = json!({"created": 3, "replaced": 0, "skipped": skipped});
            assert_eq!(told(200, request).await, expected);
            let (_, all) = exported(server.get("/v1/agents/export?user=user_123")).await;
            assert_eq!(all, documents());
        }
    }
    let server = Running::new().await;
    let scan = format!(r#"{{"Items":[{},{}],"Count":2}}"#, typed("u", "a"), typed("u", "b"));
    for body in [scan, format!("{}\n{}\n", typed("u", "c"), typed("u", "d"))] {
        assert_eq!(told(200, import(&server, "user=u", body)).await["created"], 2);
    }
    let (text, all) = exported(server.get("/v1/agents/export?user=u")).await;
    assert_eq!(all.len(), 4);
    assert!(text.contains(r#""value":{"z":1.50,"a":null}"#), "{text}");
}

#[tokio::test]
async fn a_large_answer_of_a_database_is_taken_in_as_it_arrives() {
    let server = Running::new().await;
    let row = |n: usize| {
        json!({"id": n.to_string(), "doc": {
            "userId": "u", "namespace": "n", "key": format!("{n:04}"), "value": "x".repeat(5_000),
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}})
    };
    let body = json!({"rows": (0..1_000).map(row).collect::<Vec<_>>()}).to_string();
    // Larger than a body may be elsewhere.
    assert!(body.len() > 5_000_000);
    let taken = told(200, server.post("/v1/agents/import?user=u", &body)).await;
    assert_eq!(taken["created"], 1_000);
    // Cut off: what came whole is there, and it is said how much.
    let other = Running::new().await;
    let cut = other.post("/v1/agents/import?user=u", &body[..body.len() - 20]);
    let problem = refused(400, "bad-document", cut).await;
    assert_eq!((&problem["document"], &problem["done"]), (&json!(1_000), &json!(999)));
    let (_, all) = exported(other.get("/v1/agents/export?user=u")).await;
    assert_eq!(all.len(), 999);
}

#[tokio::test]
async fn only_an_operator_takes_in_documents_of_all_users() {
    let (server, admin, ada, bob) = two_users().await;
    let document = |user: &str| {
        json!({"userId": user, "namespace": "n", "key": "k", "value": user,
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"})
    };
    let body = lines(&["ada", "bob", "ada"].map(document));
    for user in [&ada, &bob] {
        let theirs = import(&server, "all_users=true", body.clone()).bearer_auth(&user.secret);
        refused(403, "forbidden", theirs).await;
    }
    let narrow = json!({"name": "n", "scopes": ["write:namespace/n"]});
    let narrow = server.key(&admin, &narrow).await;
    let narrow = import(&server, "all_users=true", body.clone()).bearer_auth(&narrow.secret);
    refused(403, "forbidden", narrow).await;
    let both = import(&server, "all_users=true&user=ada", body.clone()).bearer_auth(&admin.secret);
    refused(400, "invalid", both).await;
    let without = import(&server, "user=ada", body.clone()).bearer_auth(&admin.secret);
    let problem = refused(400, "bad-document", without).await;
    assert_eq!((&problem["document"], &problem["done"]), (&json!(2), &json!(1)));

    for expected in [(1, 2), (0, 3)] {
        let all = import(&server, "all_users=true", body.clone()).bearer_auth(&admin.secret);
        let done = told(200, all).await;
        assert_eq!((&done["created"], &done["replaced"]), (&json!(expected.0), &json!(expected.1)));
    }
    for (user, name) in [(&ada, "ada"), (&bob, "bob")] {
        let (_, own) = exported(server.get("/v1/agents/export").bearer_auth(&user.secret)).await;
        assert_eq!(own.len(), 1);
        assert_eq!((&own[0]["userId"], &own[0]["value"]), (&json!(name), &json!(name)));
    }
    // A name that no user can have.
    let long = lines(&[document("ada"), document(&"x".repeat(300))]);
    let long = import(&server, "all_users=true", long).bearer_auth(&admin.secret);
    let problem = refused(400, "bad-document", long).await;
    assert_eq!((&problem["document"], &problem["done"]), (&json!(2), &json!(1)));
}

/// A connection from another address of this machine, which takes little at a time.
async fn narrow(server: &Running) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 * 1_024).unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    socket.connect(server.url.strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap()
}

/// The status of an answer, of which nothing else is read.
async fn status(wire: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    wire.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    wire.read_exact(&mut head).await.unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

#[tokio::test]
async fn exports_that_nobody_reads_count_as_other_responses_do() {
    const LONG: Duration = Duration::from_secs(60);
    const EXPORT: &str = "/v1/agents/export?user=u";
    let limits = Limits { responses_bytes_max: 8 << 20, ..Limits::default() };
    let config = Config { limits, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let document = |n: usize| {
        json!({"userId": "u", "namespace": "n", "key": format!("{n:02}"), "value": "x".repeat(900_000),
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"})
    };
    let all: Vec<Value> = (0..20).map(document).collect();
    answered(200, import(&server, "user=u", lines(&all))).await;
    let mut unread = Vec::new();
    let refused = async {
        // A page of each export waits for its client, which is more than one address may leave unread.
        loop {
            let mut wire = narrow(&server).await;
            let answer = status(&mut wire, EXPORT).await;
            if answer != "200" {
                return answer;
            }
            unread.push(wire);
            assert!(unread.len() < 100, "a hundred exports are unread");
        }
    };
    assert_eq!(timeout(LONG, refused).await.unwrap(), "503");
    // Another address is served, and has all of it.
    let (_, out) = exported(server.get(EXPORT)).await;
    assert_eq!(out.len(), 20);
    // Who leaves gives back what was counted.
    drop(unread);
    let again = async { while status(&mut narrow(&server).await, EXPORT).await != "200" {} };
    timeout(LONG, again).await.unwrap();
}
