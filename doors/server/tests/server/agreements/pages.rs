//! Pages, and what is attached to them.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{INBOX, PAGE, POLICY, SHELF, Served};
use crate::fixture::{answered, refused, told};

#[tokio::test]
async fn workspaces_say_where_pages_come_from_and_which_model_is_asked() {
    let served = Served::new().await;
    let listed = told(200, served.server.get("/v1/agreements")).await;
    let inbox = json!({
        "name": "inbox", "store": "inbox", "source": "uploads",
        "provider": "scripted", "model": "scripted-demo",
    });
    assert_eq!(listed["items"][0], inbox);
    assert_eq!(listed["items"][1]["source"], "folder");
    let shown = told(200, served.server.get(INBOX)).await;
    assert_eq!((&shown["name"], &shown["tasks"]["dead"]["count"]), (&json!("inbox"), &json!(0)));
    refused(404, "unknown-workspace", served.server.get("/v1/agreements/none")).await;
    let without = Served::without_model().await;
    let shown = told(200, without.server.get(INBOX)).await;
    assert_eq!((&shown["provider"], &shown["model"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn pages_are_put_listed_shown_and_deleted() {
    let served = Served::new().await;
    let server = &served.server;
    for page in ["b", "a", "학칙"] {
        let at = format!("{INBOX}/pages/{page}");
        let put = told(200, server.put(&at, r#"{"title":"T","bodyFormat":"html"}"#)).await;
        assert_eq!((&put["id"], &put["bodyFormat"]), (&json!(page), &json!("html")));
    }
    let first = told(200, server.get(&format!("{INBOX}/pages?limit=2"))).await;
    let ids = |listed: &Value| -> Vec<Value> {
        listed["items"].as_array().unwrap().iter().map(|page| page["id"].clone()).collect()
    };
    assert_eq!((ids(&first), &first["next"]), (vec![json!("a"), json!("b")], &json!("b")));
    let rest = told(200, server.get(&format!("{INBOX}/pages?limit=2&after=b"))).await;
    assert_eq!((ids(&rest), &rest["next"]), (vec![json!("nda"), json!("학칙")], &Value::Null));
    let shown = told(200, server.get(PAGE)).await;
    assert_eq!((&shown["title"], &shown["body"]), (&json!("NDA"), &json!("# NDA")));
    assert_eq!(shown["attachments"][0]["source"], "leave");
    // Its attachments stay when it is put again.
    let again = told(200, server.put(PAGE, r#"{"title":"Other"}"#)).await;
    assert_eq!(again["attachments"], shown["attachments"]);
    for _ in 0..2 {
        answered(204, server.request(Method::DELETE, PAGE)).await;
    }
    for path in ["", "/policies", "/policies/leave", "/issues", "/analysis", "/attachments/leave"] {
        refused(404, "unknown-page", server.get(&format!("{PAGE}{path}"))).await;
    }
    refused(400, "invalid", server.put(&format!("{INBOX}/pages/job"), r#"{"title":"T"}"#)).await;
    refused(400, "invalid", server.put(PAGE, r#"{"title":""}"#)).await;
    refused(400, "invalid", server.put(PAGE, r#"{"title":"T","more":1}"#)).await;
    refused(400, "invalid", server.get(&format!("{INBOX}/pages?limit=0"))).await;
}

#[tokio::test]
async fn attachments_come_out_as_they_went_in_and_run_nowhere() {
    let served = Served::new().await;
    let server = &served.server;
    let at = format!("{PAGE}/attachments/évil:1");
    let script = "<!doctype html><script>alert(1)</script><p>Text that is here.</p>";
    let attach = server.request(Method::PUT, &format!("{at}?name=a%22b%0Ac.html"));
    let typed = attach.try_clone().unwrap().header("content-type", "text/html");
    refused(400, "invalid", typed.body(script)).await;
    refused(415, "unsupported-media-type", attach.body(script)).await;
    let attach = server.request(Method::PUT, &format!("{at}?name=a%22;é.html"));
    let attached = told(200, attach.header("content-type", "text/html").body(script)).await;
    assert_eq!((&attached["name"], &attached["bytes"]), (&json!("a\";é.html"), &json!(65)));
    let got = answered(200, server.get(&at)).await;
    let header = |name: &str| got.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/html");
    assert_eq!(header("content-disposition"), "attachment; filename*=UTF-8''a%22%3B%C3%A9.html");
    assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("content-length"), "65");
    assert_eq!(got.text().await.unwrap(), script);
    for _ in 0..2 {
        answered(204, server.request(Method::DELETE, &at)).await;
    }
    refused(404, "unknown-policy", server.get(&at)).await;
    refused(404, "unknown-policy", server.get(&format!("{PAGE}/policies/none"))).await;
    let elsewhere = format!("{INBOX}/pages/none/attachments/x");
    let attach = server.request(Method::PUT, &elsewhere).header("content-type", "text/plain");
    refused(404, "unknown-page", attach.body("x")).await;
}

/// An attachment of which nothing but its size has come.
async fn announced(served: &Served, at: &str, bytes: usize) -> TcpStream {
    let host = served.server.url.strip_prefix("http://").unwrap();
    let mut wire = TcpStream::connect(host).await.unwrap();
    let head = format!("PUT {at} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {bytes}\r\n\r\n");
    wire.write_all(head.as_bytes()).await.unwrap();
    wire
}

#[tokio::test]
async fn only_so_many_attachments_are_in_memory_at_a_time() {
    let served = Served::new().await;
    let at = format!("{PAGE}/attachments/leave");
    let large = vec![b'x'; 16 << 20];
    let put = served.server.request(Method::PUT, &at).body(large);
    told(200, put.header("content-type", "application/octet-stream")).await;
    // Who only says that something will come holds nothing.
    let mut stalled = Vec::new();
    for _ in 0..16 {
        stalled.push(announced(&served, &at, 1_000).await);
    }
    let mut unread = Vec::new();
    for _ in 0..8 {
        unread.push(answered(200, served.server.get(&at)).await);
    }
    refused(503, "overloaded", served.attach("leave", POLICY)).await;
    refused(503, "overloaded", served.server.get(&at)).await;
    drop((unread, stalled));
    while served.server.get(&at).send().await.unwrap().status() != 200 {}
}

#[tokio::test]
async fn attachments_are_larger_than_other_bodies_and_bounded() {
    let served = Served::new().await;
    let at = format!("{PAGE}/attachments/large");
    let put = |bytes: Vec<u8>| {
        let request = served.server.request(Method::PUT, &at);
        request.header("content-type", "application/octet-stream").body(bytes)
    };
    let large: Vec<u8> = (0..3 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    assert_eq!(told(200, put(large.clone())).await["bytes"], 3 << 20);
    let got = answered(200, served.server.get(&at)).await.bytes().await.unwrap();
    assert!(got == large);
    // What is announced to be too large is not read.
    let mut wire = announced(&served, &at, (64 << 20) + 1).await;
    let mut answer = vec![0; 12];
    wire.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
    let body = json!({ "title": "T", "body": "x".repeat(2 << 20) }).to_string();
    refused(413, "limit-exceeded", served.server.put(PAGE, &body)).await;
}

#[tokio::test]
async fn pages_of_a_folder_are_read_and_not_written() {
    let served = Served::new().await;
    let server = &served.server;
    let page = told(200, server.get(&format!("{SHELF}/pages/lease"))).await;
    assert_eq!(
        (&page["title"], &page["attachments"][0]["source"]),
        (&json!("Lease"), &json!("leave.md"))
    );
    let at = format!("{SHELF}/pages/lease");
    let text = answered(200, server.get(&format!("{at}/attachments/leave.md"))).await;
    assert_eq!(text.text().await.unwrap(), POLICY);
    for request in [
        server.put(&at, r#"{"title":"T"}"#),
        server.request(Method::DELETE, &at),
        server.put(&format!("{at}/attachments/leave.md"), "x"),
        server.request(Method::DELETE, &format!("{at}/attachments/leave.md")),
    ] {
        refused(409, "read-only", request).await;
    }
    refused(404, "unknown-page", server.get(&format!("{SHELF}/pages/none"))).await;
    refused(400, "invalid", server.get(&format!("{SHELF}/pages/..%2F"))).await;
}
