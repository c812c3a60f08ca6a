use hmac::{Hmac, KeyInit, Mac};
use keyward_server::{Config, Rate, Rates};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{AT, Served, ended, registry, repository};
use crate::fixture::{Running, answered, configured, refused, told};

const SECRET: &str = "it is between the two of us";
const PUSH: &str = r#"{"ref":"refs/heads/main","after":"0"}"#;

async fn hooked(config: Config) -> Served {
    let repository = repository();
    let file = repository.beside("hook");
    keyward_testkit::write_secret(&file, SECRET).unwrap();
    let more = json!({ "branch": "main", "webhook": { "secret": { "file": file } } });
    let registries = vec![registry(&repository, more)];
    Served::start(repository, Config { registries, ..config }).await
}

fn signed(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let bytes = mac.finalize().into_bytes();
    format!("sha256={}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn pushed(server: &Running, registry: &str, secret: &str, body: &str) -> RequestBuilder {
    let hook = server.post(&format!("/v1/registries/{registry}/webhook"), body);
    hook.header("x-hub-signature-256", signed(secret, body)).header("x-github-event", "push")
}

#[tokio::test]
async fn a_push_is_followed_by_a_run_without_a_credential() {
    let served = hooked(configured()).await;
    let admin = served.server.admin().await;
    let mut events = {
        let watch = served.server.get(&format!("{AT}/runs/events"));
        crate::watching::Events::new(watch.bearer_auth(&admin.secret)).await
    };
    assert_eq!(events.next().await.unwrap().0, "reached");
    let accepted = told(202, pushed(&served.server, "policies", SECRET, PUSH)).await;
    assert_eq!(accepted["outcome"], "accepted");
    let run = ended(&mut events).await;
    assert_eq!((&run["trigger"], &run["added"]), (&json!("webhook"), &json!(2)));
    served.repository.write("c.md", "# c").commit("more");
    let token = served.server.post(&format!("{AT}/webhook"), PUSH);
    answered(202, token.header("x-gitlab-token", SECRET)).await;
    assert_eq!(ended(&mut events).await["added"], 1);
}

#[tokio::test]
async fn what_is_no_push_to_the_branch_is_ignored() {
    let served = hooked(configured()).await;
    let other = r#"{"ref":"refs/heads/other"}"#;
    let ping = served.server.post(&format!("{AT}/webhook"), "{}");
    let ping = ping.header("x-hub-signature-256", signed(SECRET, "{}"));
    for hook in [
        pushed(&served.server, "policies", SECRET, other),
        pushed(&served.server, "policies", SECRET, r#"{"ref":"refs/tags/main"}"#),
        ping.header("x-github-event", "ping"),
    ] {
        assert_eq!(told(200, hook).await["outcome"], "ignored");
    }
    assert_eq!(told(200, served.server.get(&format!("{AT}/runs"))).await["items"], json!([]));
}

#[tokio::test]
async fn whoever_cannot_sign_is_told_the_same_however_they_try() {
    let served = hooked(configured()).await;
    let unsigned = served.server.post(&format!("{AT}/webhook"), PUSH);
    let told_first = refused(401, "unauthenticated", unsigned).await;
    let at =
        |registry: &str| served.server.post(&format!("/v1/registries/{registry}/webhook"), PUSH);
    for hook in [
        pushed(&served.server, "policies", "another", PUSH),
        pushed(&served.server, "policies", "", PUSH),
        at("policies").header("x-gitlab-token", "it is between the two of u"),
        at("policies").header("x-hub-signature-256", signed(SECRET, "{}")),
        at("policies").header("webhook-signature", "v1,AAAA"),
        at("policies").bearer_auth("kw_a_b"),
    ] {
        assert_eq!(refused(401, "unauthenticated", hook).await, told_first);
    }
    // Where there is no webhook, nothing of what a stranger sends is read: there may be a registry or not.
    refused(404, "unknown-registry", pushed(&served.server, "none", SECRET, PUSH)).await;
    refused(404, "unknown-registry", at("none")).await;
    let without = Served::new().await;
    let hook = pushed(&without.server, "policies", SECRET, PUSH);
    refused(404, "unknown-registry", hook).await;
    assert_eq!(told(200, served.server.get(&format!("{AT}/runs"))).await["items"], json!([]));
    let large = "x".repeat(1024 * 1024 + 1);
    refused(413, "limit-exceeded", pushed(&served.server, "policies", SECRET, &large)).await;
}

#[tokio::test]
async fn pushes_during_a_run_are_followed_by_one_more() {
    let served = hooked(configured()).await;
    let mut events = served.events().await;
    let guard = served.held().await;
    for _ in 0..5 {
        answered(202, pushed(&served.server, "policies", SECRET, PUSH)).await;
    }
    guard.release().await.unwrap();
    assert_eq!(ended(&mut events).await["trigger"], "webhook");
    // What was pushed while it ran is not forgotten.
    served.repository.write("c.md", "# c").commit("more");
    answered(202, pushed(&served.server, "policies", SECRET, PUSH)).await;
    assert_eq!(ended(&mut events).await["added"], 1);
    let runs: Value = told(200, served.server.get(&format!("{AT}/runs"))).await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn strangers_do_not_push_too_often() {
    let stranger = Some(Rate { per_second: 1, burst: 2 });
    let rates = Rates { stranger, ..Rates::default() };
    let served = hooked(Config { rates, ..configured() }).await;
    for _ in 0..2 {
        refused(401, "unauthenticated", pushed(&served.server, "policies", "no", PUSH)).await;
    }
    refused(429, "rate-limited", pushed(&served.server, "policies", "no", PUSH)).await;
}

#[tokio::test]
async fn hooks_whose_bodies_never_come_take_no_slots() {
    let mut config = configured();
    config.limits.requests_max = 4;
    let served = hooked(config).await;
    let address = served.server.url.strip_prefix("http://").unwrap();
    let head =
        format!("POST {AT}/webhook HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n");
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(head.as_bytes()).await.unwrap();
        silent.push(connection);
    }
    for _ in 0..10 {
        answered(200, served.server.get("/healthz")).await;
        answered(200, served.server.get("/v1/stores")).await;
        refused(401, "unauthenticated", pushed(&served.server, "policies", "no", PUSH)).await;
    }
}
