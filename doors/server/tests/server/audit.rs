//! The audit log: every change and every act of those who run the server, and nothing that was said.

use keyward_server::{AuditLog, AuditQuery, Config, without_schema};
use reqwest::Method;
use serde_json::{Value, json};

use crate::fixture::{Running, answered, configured, refused, told};

async fn acts(url: &str) -> Vec<Value> {
    let log = AuditLog::new(keyward::open(url).await.unwrap());
    let mut query = AuditQuery { limit: 3, ..AuditQuery::default() };
    let mut all = Vec::new();
    loop {
        let (page, next) = log.read(&query).await.unwrap();
        all.extend(page.iter().map(|act| serde_json::from_str(act.as_str()).unwrap()));
        if next.is_none() {
            return all;
        }
        query.after = next;
    }
}

#[tokio::test]
async fn every_change_is_in_the_log_once_the_server_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    let server = Running::on(&without_schema(&url).unwrap()).await;
    answered(200, server.put("/v1/stores/main/entries/before", "1")).await;
    let admin = server.admin().await;
    let seven = json!({"name": "seven", "user": "7", "agent": "planner"});
    let seven = server.key(&admin, &seven).await;
    let own = "/v1/stores/main/entries/user:7:a";
    let put = server.put(own, r#""canary""#).bearer_auth(&seven.secret);
    answered(200, put.header("x-request-id", "mine")).await;
    answered(200, server.get(own).bearer_auth(&seven.secret)).await;
    let foreign = server.put("/v1/stores/main/entries/user:70:a", "1").bearer_auth(&seven.secret);
    refused(403, "forbidden", foreign).await;
    let commit =
        r#"{"writes":[{"put":{"key":"user:7:b","value":"canary"}},{"delete":{"key":"user:7:a"}}]}"#;
    let commit = server.post("/v1/stores/main/commit", commit).bearer_auth(&seven.secret);
    answered(200, commit).await;
    let read = server.post("/v1/stores/main/get", r#"{"keys":["user:7:b"]}"#);
    answered(200, read.bearer_auth(&seven.secret)).await;
    let revoke = server.request(Method::DELETE, &format!("/v1/keys/{}", seven.id));
    answered(200, revoke.bearer_auth(&admin.secret)).await;
    told(200, server.get("/v1/audit").bearer_auth(&admin.secret)).await;
    server.stop().await;

    let acts = acts(&url).await;
    let told: Vec<_> = acts
        .iter()
        .map(|act| {
            let text = |name: &str| act[name].as_str().unwrap().to_owned();
            let who = (text("tenant"), text("credential"));
            (who.0, who.1, text("act"), text("method"), act["status"].as_u64().unwrap())
        })
        .collect();
    let line = |tenant: &str, credential: &str, act: &str, method: &str, status: u64| {
        let text = str::to_owned;
        (text(tenant), text(credential), text(act), text(method), status)
    };
    let operator = format!("key/{}", admin.id);
    assert_eq!(
        told,
        [
            line("local", "local", "write", "PUT", 200),
            line("local", "local", "admin", "POST", 201),
            line(&operator, &admin.id, "admin", "POST", 201),
            line("user/7", &seven.id, "write", "PUT", 200),
            line("user/7", &seven.id, "write", "PUT", 403),
            line("user/7", &seven.id, "write", "POST", 200),
            line(&operator, &admin.id, "admin", "DELETE", 200),
            line(&operator, &admin.id, "admin", "GET", 200),
        ]
    );
    let put = &acts[3];
    assert_eq!((&put["request"], &put["agent"]), (&json!("mine"), &json!("planner")));
    assert_eq!((&put["target"], &put["keys"]), (&json!("store/main"), &json!(["user:7:a"])));
    assert_eq!(put["route"], "/v1/stores/{store}/entries/{key}");
    assert_eq!(acts[5]["keys"], json!(["user:7:b", "user:7:a"]));
    let all = json!(acts).to_string();
    assert!(!all.contains("canary") && !all.contains(&seven.secret), "{all}");
}

#[tokio::test]
async fn admins_read_the_log_from_one_moment_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    let data = without_schema(&url).unwrap();
    let server = Running::on(&data).await;
    let admin = server.admin().await;
    for n in 0..5 {
        let put = server.put(&format!("/v1/stores/main/entries/{n}"), "1");
        answered(200, put.bearer_auth(&admin.secret)).await;
    }
    server.stop().await;
    let all = acts(&url).await;
    assert_eq!(all.len(), 6);

    let server = Running::on(&data).await;
    let read =
        |question: &str| server.get(&format!("/v1/audit?{question}")).bearer_auth(&admin.secret);
    let time = |at: usize| all[at]["time"].as_str().unwrap().to_owned();
    let between = format!("since={}&until={}", time(2), time(4));
    assert_eq!(told(200, read(&between)).await["items"], json!(all[2..=4]));
    let first = told(200, read(&format!("{between}&limit=2"))).await;
    let next = format!("{between}&limit=2&cursor={}", first["next"].as_str().unwrap());
    assert_eq!(told(200, read(&next)).await["items"], json!([all[4]]));
    refused(400, "invalid", read("cursor=x")).await;
    refused(400, "invalid", read("limit=0")).await;
}

#[tokio::test]
async fn the_log_can_have_a_store_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let url = |name: &str| format!("embedded:{}", folder.path().join(name).display());
    let config = Config { audit: Some(url("audit")), ..configured() };
    let server = Running::start(&config, &without_schema(&url("data")).unwrap()).await;
    answered(200, server.put("/v1/stores/main/entries/a", "1")).await;
    let admin = server.admin().await;
    let read = server.get("/v1/audit").bearer_auth(&admin.secret);
    assert!(told(200, read).await["items"].is_array());
    server.stop().await;
    assert_eq!(acts(&url("audit")).await.len(), 3);
    assert_eq!(acts(&url("data")).await.len(), 0);
}

#[tokio::test]
async fn a_flood_of_refused_requests_is_two_lines() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    let server = Running::on(&without_schema(&url).unwrap()).await;
    let admin = server.admin().await;
    let reader = json!({"name": "reader", "scopes": ["read:*"]});
    let reader = server.key(&admin, &reader).await;
    for n in 0..200 {
        let put = server.put(&format!("/v1/stores/main/entries/{n}"), "1");
        refused(403, "forbidden", put.bearer_auth(&reader.secret)).await;
    }
    answered(200, server.put("/v1/stores/main/entries/a", "1").bearer_auth(&admin.secret)).await;
    server.stop().await;
    let acts = acts(&url).await;
    let refusals: Vec<_> = acts.iter().filter(|act| act["status"] == 403).collect();
    // More than two only if it took more than a minute.
    assert!((2..=8).contains(&refusals.len()), "{refusals:?}");
    let counts = refusals.iter().map(|act| act["repeated"]["count"].as_u64().unwrap_or(1));
    assert_eq!(counts.sum::<u64>(), 200);
    let summed = refusals.iter().find(|act| act["repeated"].is_object()).unwrap();
    assert!(summed["path"].as_str().unwrap().starts_with("/v1/stores/main/entries/"));
    assert!(summed["repeated"]["first"].is_string() && summed["repeated"]["last"].is_string());
    let done = acts.iter().filter(|act| act["status"].as_u64().is_some_and(|it| it < 300));
    assert_eq!(done.count(), 3);
}

#[tokio::test]
async fn a_delete_that_no_scope_allows_is_in_the_log_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    let server = Running::on(&without_schema(&url).unwrap()).await;
    let admin = server.admin().await;
    let reader = json!({"name": "reader", "scopes": ["read:store/main"]});
    let reader = server.key(&admin, &reader).await;
    let delete = server.request(Method::DELETE, "/v1/stores/main/entries/a:b");
    refused(403, "forbidden", delete.bearer_auth(&reader.secret)).await;
    server.stop().await;
    let acts = acts(&url).await;
    let refused: Vec<_> = acts.iter().filter(|act| act["method"] == "DELETE").collect();
    assert_eq!(refused.len(), 1, "{acts:?}");
    assert_eq!((&refused[0]["status"], &refused[0]["keys"]), (&json!(403), &json!(["a:b"])));
}
