//! A registry is reached by who may, and written by its runs alone.

use keyward_server::Config;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{Served, registry, repository};
use crate::fixture::{Made, answered, configured, refused, told};

/// Every request that a registry answers: what it needs, and the request.
fn requests(served: &Served, name: &str) -> Vec<(&'static str, RequestBuilder)> {
    let at = |path: &str| format!("/v1/registries/{name}{path}");
    let get = |path: &str| served.server.get(&at(path));
    let post = |path: &str, body: &str| served.server.post(&at(path), body);
    vec![
        ("read", get("")),
        ("read", get("/policies")),
        ("read", get("/policies?search=a")),
        ("read", get("/policies/학칙")),
        ("read", get("/policies/학칙/content")),
        ("read", get("/runs")),
        ("read", get("/runs/000000000000001-0")),
        ("read", get("/runs/events")),
        ("read", get("/queue")),
        ("read", get("/dead-letters")),
        ("write", post("/plan", "{}")),
        ("write", post("/runs?wait=true", "{}")),
        ("write", post("/dead-letters/학칙/requeue", "")),
        ("write", post("/dead-letters/requeue", "{}")),
        ("admin", post("/migrate", "{}")),
        ("admin", post("/runs?wait=true", r#"{"allow_mass_delete":true}"#)),
        ("admin", served.server.request(Method::DELETE, &at("/dead-letters/학칙"))),
    ]
}

async fn served() -> (Served, Made) {
    let repository = repository();
    let mut other = registry(&repository, json!({ "prefix": "kr" }));
    other.name = "other".to_owned();
    let registries = vec![registry(&repository, json!({})), other];
    let served = Served::start(repository, Config { registries, ..configured() }).await;
    served.run().await;
    let admin = served.server.admin().await;
    (served, admin)
}

#[tokio::test]
async fn nobody_reaches_a_registry_without_a_scope_for_it() {
    let (served, admin) = served().await;
    let rank = |need: &str| ["read", "write", "admin"].iter().position(|it| *it == need).unwrap();
    for (scope, allowed) in [
        ("read:registry/other", None),
        ("write:store/elsewhere", None),
        ("admin:space/policies", None),
        ("admin:namespace/policies", None),
        ("read:registry/policies", Some("read")),
        ("read:store/main", Some("read")),
        ("write:registry/policies", Some("write")),
        ("write:*", Some("write")),
        ("admin:registry/policies", Some("admin")),
        ("admin:store/main", Some("admin")),
    ] {
        let key = served.server.key(&admin, &json!({ "name": "k", "scopes": [scope] })).await;
        for (need, request) in requests(&served, "policies") {
            let answer = request.bearer_auth(&key.secret).send().await.unwrap();
            let (at, status) = (answer.url().path().to_owned(), answer.status().as_u16());
            let is_allowed = allowed.is_some_and(|allowed| rank(need) <= rank(allowed));
            assert_eq!(status != 403, is_allowed, "{scope} {need} {at}: {status}");
        }
        let listed = told(200, served.server.get("/v1/registries").bearer_auth(&key.secret)).await;
        let listed = listed["items"].to_string();
        assert_eq!(listed.contains(r#""name":"policies""#), allowed.is_some(), "{scope}: {listed}");
    }
    for (_, request) in requests(&served, "policies") {
        refused(401, "unauthenticated", request).await;
    }
}

#[tokio::test]
async fn a_registry_that_is_out_of_reach_is_told_of_as_one_that_does_not_exist() {
    let (served, admin) = served().await;
    let scopes = json!({ "name": "k", "scopes": ["admin:registry/other"] });
    let user = json!({ "name": "u", "user": "ada", "scopes": ["write:*"] });
    for body in [scopes, user] {
        let key = served.server.key(&admin, &body).await;
        let there = requests(&served, "policies").into_iter();
        for ((_, there), (_, absent)) in there.zip(requests(&served, "policiez")) {
            let there = refused(403, "forbidden", there.bearer_auth(&key.secret)).await.to_string();
            let absent =
                refused(403, "forbidden", absent.bearer_auth(&key.secret)).await.to_string();
            assert_eq!(there, absent.replace("policiez", "policies"));
        }
    }
    let user = served.server.key(&admin, &json!({ "name": "v", "user": "ada" })).await;
    let listed = told(200, served.server.get("/v1/registries").bearer_auth(&user.secret)).await;
    assert_eq!(listed, json!({ "items": [] }));
}

#[tokio::test]
async fn nobody_writes_a_registrys_keys_past_it() {
    let (served, admin) = served().await;
    let as_admin = |request: RequestBuilder| request.bearer_auth(&admin.secret);
    let keys = [
        "policy:학칙",
        "policy:new",
        "metadata:sync:lastRun",
        "metadata:sync:lastCommit",
        "queue:학칙",
        "dead-letter:학칙",
        "kr:policy:학칙",
        "kr:metadata:sync:lastCommit",
        "kr:queue:학칙",
        "kr:dead-letter:x",
        "system:registry:policies:state",
        "system:registry-of:kr",
    ];
    let store = |path: &str| format!("/v1/stores/main/{path}");
    let before = stored(&served).await;
    for key in keys {
        let entry = store(&format!("entries/{key}"));
        let put = json!({ "put": { "key": key, "value": 1 } });
        let delete = json!({ "delete": { "key": key } });
        let add = json!({ "add": { "key": key, "amount": 1 } });
        let commit = |write: &Value| json!({ "writes": [write] }).to_string();
        let mut attempts = vec![
            served.server.put(&entry, "1"),
            served.server.sent(Method::PATCH, &entry, "{}"),
            served.server.request(Method::DELETE, &entry),
            served.server.post(&store(&format!("cache/{key}/lookup")), "{}"),
            served.server.post(&store("locks/acquire"), &json!({ "root": key }).to_string()),
        ];
        for write in [&put, &delete, &add] {
            attempts.push(served.server.post(&store("commit"), &commit(write)));
            attempts.push(served.server.post(&store("raw/commit"), &commit(write)));
        }
        for attempt in attempts {
            let answer = as_admin(attempt).send().await.unwrap();
            let (at, status) = (answer.url().path().to_owned(), answer.status().as_u16());
            let said = answer.text().await.unwrap();
            assert_eq!(status, 403, "{key} {at}: {said}");
        }
    }
    assert_eq!(stored(&served).await, before);
    // What lies beside a registry's keys is everybody's, and its own can be read.
    for key in ["policy:학칙:note", "policies:x", "kr:other", "x:policy:a"] {
        answered(200, as_admin(served.server.put(&store(&format!("entries/{key}")), "1"))).await;
    }
    answered(200, as_admin(served.server.get(&store("entries/policy:학칙")))).await;
}

/// Everything that the registries keep.
async fn stored(served: &Served) -> Vec<String> {
    let all = keyward::Scan::new(keyward::KeyRange::all()).limit(1_000);
    let rows = served.store.scan(&all).await.unwrap().rows;
    let own = ["policy", "metadata", "queue", "dead-letter", "kr"];
    let rows = rows.into_iter().filter(|row| own.contains(&&*row.key.first()));
    rows.map(|row| format!("{} {}", row.key, row.entry.unwrap().value.as_str())).collect()
}

#[tokio::test]
async fn queues_of_the_store_do_not_reach_that_of_a_registry() {
    let (served, admin) = served().await;
    let before = stored(&served).await;
    let queue = "/v1/stores/main/queues/학칙";
    let as_admin = |request: RequestBuilder| request.bearer_auth(&admin.secret);
    let claimed = told(200, as_admin(served.server.post(&format!("{queue}/claim"), "{}"))).await;
    assert_eq!(claimed["messages"], json!([]), "{claimed}");
    answered(404, as_admin(served.server.get(&format!("{queue}/messages/학칙")))).await;
    answered(
        204,
        as_admin(served.server.request(Method::DELETE, &format!("{queue}/messages/학칙"))),
    )
    .await;
    answered(404, as_admin(served.server.post(&format!("{queue}/dead-letters/학칙/requeue"), "")))
        .await;
    let names = told(200, as_admin(served.server.get("/v1/stores/main/queues"))).await;
    assert_eq!(names["queues"], json!([]));
    assert_eq!(stored(&served).await, before);
}
