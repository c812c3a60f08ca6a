//! A workspace is reached by who may, and written through it alone.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{PAGE, Served};
use crate::fixture::{answered, refused, told};

/// Every request that a workspace answers: what it needs, and the request.
fn requests(served: &Served, name: &str, issue: &str) -> Vec<(&'static str, RequestBuilder)> {
    let at = |path: &str| format!("/v1/agreements/{name}{path}");
    let get = |path: &str| served.server.get(&at(path));
    let send = |method: Method, path: &str, body: &str| served.server.sent(method, &at(path), body);
    let post = |path: &str, body: &str| send(Method::POST, path, body);
    let task = |body: &str| post("/tasks", body);
    vec![
        ("read", get("")),
        ("read", get("/pages")),
        ("read", get("/pages/nda")),
        ("read", get("/pages/nda/attachments/leave")),
        ("read", get("/pages/nda/policies")),
        ("read", get("/pages/nda/policies/leave")),
        ("read", get("/pages/nda/issues")),
        ("read", get(&format!("/pages/nda/issues/{issue}"))),
        ("read", get("/pages/nda/issues/export?format=csv")),
        ("read", get("/pages/nda/analysis")),
        ("read", get("/jobs/none")),
        ("read", get("/jobs/none/watch")),
        ("write", send(Method::PUT, "/pages/nda", r#"{"title":"T"}"#)),
        ("write", send(Method::DELETE, "/pages/none", "")),
        ("write", send(Method::PUT, "/pages/nda/attachments/more", "x")),
        ("write", send(Method::DELETE, "/pages/nda/attachments/more", "")),
        ("write", post("/pages/nda/issues", r#"{"title":"T","severity":1}"#)),
        ("write", send(Method::PATCH, &format!("/pages/nda/issues/{issue}"), r#"{"note":"n"}"#)),
        ("write", post("/pages/nda/policies/leave?wait_ms=0", "")),
        ("write", post("/pages/nda/analysis", "{}")),
        ("write", task(r#"{"task":"policies","page":"nda"}"#)),
        ("write", task(r#"{"task":"analyze","page":"nda"}"#)),
        ("write", send(Method::DELETE, "/jobs/none", "")),
        ("admin", task(r#"{"task":"clear","page":"none"}"#)),
        ("admin", task(r#"{"task":"purge","page":"none"}"#)),
        ("admin", task(r#"{"task":"purge"}"#)),
    ]
}

#[tokio::test]
async fn nobody_reaches_a_workspace_without_a_scope_for_it() {
    let served = Served::new().await;
    let issue = served.issue("Guarded", 1).await["id"].as_str().unwrap().to_owned();
    let admin = served.server.admin().await;
    let rank = |need: &str| ["read", "write", "admin"].iter().position(|it| *it == need).unwrap();
    for (scope, allowed) in [
        ("read:agreements/shelf", None),
        ("admin:registry/inbox", None),
        ("write:store/main", None),
        ("admin:space/inbox", None),
        ("admin:namespace/inbox", None),
        ("read:agreements/inbox", Some("read")),
        ("read:store/inbox", Some("read")),
        ("write:agreements/inbox", Some("write")),
        ("write:*", Some("write")),
        ("admin:agreements/inbox", Some("admin")),
        ("admin:store/inbox", Some("admin")),
    ] {
        let key = served.server.key(&admin, &json!({ "name": "k", "scopes": [scope] })).await;
        for (need, request) in requests(&served, "inbox", &issue) {
            let answer = request.bearer_auth(&key.secret).send().await.unwrap();
            let (at, status) = (answer.url().path().to_owned(), answer.status().as_u16());
            let is_allowed = allowed.is_some_and(|allowed| rank(need) <= rank(allowed));
            assert_eq!(status != 403, is_allowed, "{scope} {need} {at}: {status}");
        }
        let listed = told(200, served.server.get("/v1/agreements").bearer_auth(&key.secret)).await;
        let listed = listed["items"].to_string();
        assert_eq!(listed.contains(r#""name":"inbox""#), allowed.is_some(), "{scope}: {listed}");
    }
    for (_, request) in requests(&served, "inbox", &issue) {
        refused(401, "unauthenticated", request).await;
    }
}

#[tokio::test]
async fn a_workspace_that_is_out_of_reach_is_told_of_as_one_that_does_not_exist() {
    let served = Served::new().await;
    let issue = served.issue("Hidden", 1).await["id"].as_str().unwrap().to_owned();
    let admin = served.server.admin().await;
    let scopes = json!({ "name": "k", "scopes": ["admin:agreements/shelf"] });
    let user = json!({ "name": "u", "user": "ada", "scopes": ["write:*"] });
    for body in [scopes, user] {
        let key = served.server.key(&admin, &body).await;
        let there = requests(&served, "inbox", &issue).into_iter();
        for ((_, there), (_, absent)) in there.zip(requests(&served, "inbux", &issue)) {
            let there = refused(403, "forbidden", there.bearer_auth(&key.secret)).await.to_string();
            let absent =
                refused(403, "forbidden", absent.bearer_auth(&key.secret)).await.to_string();
            assert_eq!(there, absent.replace("inbux", "inbox"));
        }
    }
    let user = served.server.key(&admin, &json!({ "name": "v", "user": "ada" })).await;
    let listed = told(200, served.server.get("/v1/agreements").bearer_auth(&user.secret)).await;
    assert_eq!(listed, json!({ "items": [] }));
}

#[tokio::test]
async fn nobody_writes_a_workspaces_keys_past_it() {
    let served = Served::new().await;
    let issue = served.issue("Kept", 1).await["id"].as_str().unwrap().to_owned();
    told(200, served.make(&format!("{PAGE}/policies/leave"))).await;
    let admin = served.server.admin().await;
    let as_admin = |request: RequestBuilder| request.bearer_auth(&admin.secret);
    let store = |path: &str| format!("/v1/stores/inbox/{path}");
    let keys = [
        format!("nda:issue:{issue}"),
        "nda:policy:leave".to_owned(),
        "nda:policy:leave:fr".to_owned(),
        "nda:analysis".to_owned(),
        "new:issue:x".to_owned(),
        "upload:nda".to_owned(),
        "upload:nda:content:x:0".to_owned(),
    ];
    for key in &keys {
        let entry = store(&format!("entries/{key}"));
        let commit = |write: Value| json!({ "writes": [write] }).to_string();
        let put = commit(json!({ "put": { "key": key, "value": 1 } }));
        let delete = commit(json!({ "delete": { "key": key } }));
        let attempts = vec![
            served.server.put(&entry, "1"),
            served.server.sent(Method::PATCH, &entry, "{}"),
            served.server.request(Method::DELETE, &entry),
            served.server.post(&store(&format!("cache/{key}/lookup")), "{}"),
            served.server.post(&store("commit"), &put),
            served.server.post(&store("raw/commit"), &put),
            served.server.post(&store("commit"), &delete),
            served.server.post(&store("raw/commit"), &delete),
        ];
        for attempt in attempts {
            let answer = as_admin(attempt).send().await.unwrap();
            let (at, status) = (answer.url().path().to_owned(), answer.status().as_u16());
            let said = answer.text().await.unwrap();
            assert_eq!(status, 403, "{key} {at}: {said}");
        }
    }
    // The key of a page holds its locks, which can be looked at and broken like others.
    refused(403, "reserved", as_admin(served.server.put(&store("entries/nda"), "1"))).await;
    answered(200, as_admin(served.server.get(&store("locks?root=nda")))).await;
    // What lies beside them is everybody's, and its own can be read.
    answered(200, as_admin(served.server.put(&store("entries/nda:other"), "1"))).await;
    answered(200, as_admin(served.server.get(&store(&format!("entries/nda:issue:{issue}"))))).await;
}

#[tokio::test]
async fn pages_whose_names_users_reach_by_are_refused() {
    let served = Served::new().await;
    for page in ["user", "shared", "job", "system", "upload"] {
        let at = format!("/v1/agreements/inbox/pages/{page}");
        refused(400, "invalid", served.server.put(&at, r#"{"title":"T"}"#)).await;
    }
}
