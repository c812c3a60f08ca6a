//! Keys of users: what is another's stays out of reach. And no secret shows anywhere.

use std::io::Write;
use std::sync::{Arc, Mutex};

use keyward::Data;
use keyward_server::without_schema;
use reqwest::Method;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::fixture::{Running, answered, refused, told};

const OTHERS: &str = "/v1/stores/main/entries/user:70:name";

#[tokio::test]
async fn a_user_does_not_reach_what_is_anothers() {
    let server = Running::new().await;
    let admin = server.admin().await;
    for key in ["user:7:name", "user:70:name", "user:7", "shared:note", "users:7", "user"] {
        let put = server.put(&format!("/v1/stores/main/entries/{key}"), "1");
        answered(200, put.bearer_auth(&admin.secret)).await;
    }
    let seven = server.key(&admin, &json!({"name": "seven", "user": "7"})).await.secret;
    let own = "/v1/stores/main/entries/user:7:name";
    answered(200, server.put(own, "2").bearer_auth(&seven)).await;
    answered(200, server.get("/v1/stores/main/entries/shared:note").bearer_auth(&seven)).await;
    let shared = server.put("/v1/stores/main/entries/shared:note", "2").bearer_auth(&seven);
    refused(403, "forbidden", shared).await;

    for key in [
        "user:70:name",
        "user:70",
        "user",
        "users:7",
        "user:7%253A0",
        "user%253A7:name",
        "user%3A70%3Aname",
        "user:%37%30:name",
        "User:7:name",
        "user:07:name",
        "user:7%20:name",
        "user:%EF%BC%97:name",
        "other",
    ] {
        let path = format!("/v1/stores/main/entries/{key}");
        for request in [
            server.get(&path),
            server.put(&path, "9"),
            server.request(Method::DELETE, &path),
            server.sent(Method::PATCH, &path, "9"),
        ] {
            let answer = request.bearer_auth(&seven).send().await.unwrap();
            let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
            assert!(matches!(status, 400 | 403), "{key}: {status} {text}");
        }
    }
    for prefix in ["", "user:", "user", "user:70:", "users:", "user%3A70", "user:7%2530"] {
        for path in ["entries?prefix=", "entries?values=true&prefix=", "watch?prefix="] {
            let path = format!("/v1/stores/main/{path}{prefix}");
            let answer = server.get(&path).bearer_auth(&seven).send().await.unwrap();
            assert!(matches!(answer.status().as_u16(), 400 | 403), "{path}: {}", answer.status());
        }
    }
    let check = |key: &str| format!(r#"{{"checks":[{{"key":"{key}","version":null}}]}}"#);
    for (path, body) in [
        ("commit", check("user:70:name")),
        ("commit", check("user:70:nothing")),
        ("commit", r#"{"writes":[{"put":{"key":"user:7:a","value":1}},{"delete":{"key":"user:70:name"}}]}"#.to_owned()),
        ("commit", r#"{"writes":[{"add":{"key":"user:70:count","amount":1}}]}"#.to_owned()),
        ("get", r#"{"keys":["user:7:name","user:70:name"]}"#.to_owned()),
    ] {
        let request = server.post(&format!("/v1/stores/main/{path}"), &body);
        refused(403, "forbidden", request.bearer_auth(&seven)).await;
    }
    let own_listing = server.get("/v1/stores/main/entries?prefix=user:7:").bearer_auth(&seven);
    let keys = told(200, own_listing).await["items"].to_string();
    assert!(keys.contains("user:7:name") && !keys.contains("user:70"), "{keys}");
    for (key, value) in [("user:70:name", 1), ("shared:note", 1), ("user:7:name", 2)] {
        let get = server.get(&format!("/v1/stores/main/entries/{key}"));
        assert_eq!(told(200, get.bearer_auth(&admin.secret)).await, value, "{key}");
    }
}

#[tokio::test]
async fn what_is_said_about_anothers_key_does_not_tell_whether_it_is_there() {
    let server = Running::new().await;
    let admin = server.admin().await;
    answered(200, server.put(OTHERS, "1").bearer_auth(&admin.secret)).await;
    let seven = server.key(&admin, &json!({"name": "seven", "user": "7"})).await.secret;
    let there = refused(403, "forbidden", server.get(OTHERS).bearer_auth(&seven)).await;
    let nothing = server.get("/v1/stores/main/entries/user:70:none").bearer_auth(&seven);
    assert_eq!(refused(403, "forbidden", nothing).await, there);
}

#[tokio::test]
async fn cursors_and_idempotency_keys_are_a_tenants_own() {
    let server = Running::new().await;
    let admin = server.admin().await;
    for n in 0..4 {
        let put = server.put(&format!("/v1/stores/main/entries/shared:{n}"), "1");
        answered(200, put.bearer_auth(&admin.secret)).await;
    }
    let seven = server.key(&admin, &json!({"name": "seven", "user": "7"})).await.secret;
    let eight = server.key(&admin, &json!({"name": "eight", "user": "8"})).await.secret;
    let page = "/v1/stores/main/entries?prefix=shared:&limit=2";
    let first = told(200, server.get(page).bearer_auth(&seven)).await;
    let next = format!("{page}&cursor={}", first["next"].as_str().unwrap());
    answered(200, server.get(&next).bearer_auth(&seven)).await;
    for other in [&eight, &admin.secret] {
        refused(400, "bad-cursor", server.get(&next).bearer_auth(other)).await;
    }
    for (user, secret) in [("7", &seven), ("8", &eight)] {
        let put = server.put(&format!("/v1/stores/main/entries/user:{user}:a"), user);
        let answer = answered(200, put.bearer_auth(secret).header("idempotency-key", "same")).await;
        assert!(!answer.headers().contains_key("idempotency-replayed"));
    }
}

/// Everything that is logged.
#[derive(Debug, Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Logged {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Logged {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_shows_in_logs_answers_metrics_or_the_store() {
    let logged = Logged::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    let subscriber = subscriber.with_writer(logged.clone()).finish();
    // One for all threads: with one for this thread alone, whether a line is of interest would be
    // remembered as other threads see it.
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    let data: Data = without_schema(&url).unwrap();
    let server = Running::on(&data).await;
    let admin = server.admin().await;
    let secret = admin.secret.rsplit('_').next().unwrap();
    let mut answers = String::new();
    for request in [
        server.get("/v1/stores"),
        server.get("/v1/stores/none"),
        server.put("/v1/stores/main/entries/a", "1"),
        server.put("/v1/stores/main/entries/a", "no json"),
        server.put("/v1/stores/main/entries/system:a", "1"),
        server.request(Method::DELETE, "/v1/stores/main/entries/a"),
        server.request(Method::DELETE, &format!("/v1/keys/{}", admin.secret)),
        server.request(Method::DELETE, &format!("/v1/keys/kw_{}", admin.secret)),
        server.post("/v1/stores/main/commit", r#"{"writes":[]}"#),
        server.get("/v1/keys"),
        server.get("/v1/audit"),
        server.get("/metrics"),
        server.get("/healthz"),
        server.get("/nothing"),
    ] {
        let answer = request.bearer_auth(&admin.secret).send().await.unwrap();
        answers += &format!("{:?}", answer.headers());
        answers += &answer.text().await.unwrap();
    }
    let wrong = server.get("/v1/stores").bearer_auth(format!("{}x", admin.secret));
    answers += &answered(401, wrong).await.text().await.unwrap();
    answers += &answered(200, server.get("/metrics")).await.text().await.unwrap();
    server.stop().await;
    let store = keyward::open(&url).await.unwrap();
    let mut kept = String::new();
    let mut after = None;
    loop {
        let all = keyward::Scan::new(keyward::KeyRange::all()).after(after.take()).limit(1_000);
        let page = store.scan(&all).await.unwrap();
        for row in page.rows {
            kept += &format!("{} {}\n", row.key, row.entry.unwrap().value.as_str());
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert!(answers.contains(&admin.id) && kept.contains(&admin.id), "{answers}{kept}");
    assert!(logged.text().contains("answered"), "{}", logged.text());
    for (place, text) in [("answers", &answers), ("logs", &logged.text()), ("store", &kept)] {
        assert!(!text.contains(secret), "the secret is in the {place}: {text}");
    }
}
