//! Who reaches which records: scopes of credentials, and the owners of records.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::fixture::{Made, Running, answered, refused, told};
use crate::spaces::served;

const ADAS: &str = "/v1/spaces/notes/records/user:ada:notes:n1";

struct People {
    server: Running,
    admin: Made,
    ada: String,
    bob: String,
}

impl People {
    async fn new() -> Self {
        let server = served().await;
        let admin = server.admin().await;
        let ada = server.key(&admin, &json!({"name": "a", "user": "ada"})).await.secret;
        let bob = server.key(&admin, &json!({"name": "b", "user": "bob"})).await.secret;
        Self { server, admin, ada, bob }
    }

    fn ada(&self, request: RequestBuilder) -> RequestBuilder {
        request.bearer_auth(&self.ada)
    }

    fn bob(&self, request: RequestBuilder) -> RequestBuilder {
        request.bearer_auth(&self.bob)
    }
}

#[tokio::test]
async fn a_space_that_the_scopes_do_not_reach_is_as_one_that_is_not_there() {
    let people = People::new().await;
    let server = &people.server;
    let scopes = json!({"name": "reader", "scopes": ["read:space/notes", "write:space/log"]});
    let reader = server.key(&people.admin, &scopes).await.secret;
    let spaces = told(200, server.get("/v1/spaces").bearer_auth(&reader)).await;
    let names: Vec<_> = spaces["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["log", "notes"]);

    for (path, body) in [
        ("", None),
        ("/records", None),
        ("/records/shared:places:a", None),
        ("/history/shared:places:a", None),
        ("/records", Some(r#"{"values":{"place":"a"},"value":1}"#)),
        ("/batch", Some(r#"{"operations":[{"delete":{"key":"shared:places:a"}}]}"#)),
        ("/get", Some(r#"{"keys":["shared:places:a"]}"#)),
        ("/query", Some("{}")),
        ("/explain", Some("{}")),
        ("/near", Some(r#"{"lat":0,"lon":0,"radius_m":1}"#)),
        ("/within", Some(r#"{"south":0,"west":0,"north":1,"east":1}"#)),
        ("/restore/shared:places:a", Some(r#"{"to":1}"#)),
    ] {
        let ask = |space: &str| {
            let path = format!("/v1/spaces/{space}{path}");
            let request = match body {
                Some(body) => server.post(&path, body),
                None => server.get(&path),
            };
            request.bearer_auth(&reader)
        };
        let there = refused(404, "unknown-space", ask("places")).await.to_string();
        let nothing = refused(404, "unknown-space", ask("plaices")).await.to_string();
        assert_eq!(there.replace("places", "plaices"), nothing, "{path}");
    }

    // What is read only is not changed, and the scope that it needs is told.
    let put = server.put(ADAS, r#"{"title":"x"}"#).bearer_auth(&reader);
    assert_eq!(refused(403, "forbidden", put).await["needs"], "write:space/notes");
    let batch = r#"{"operations":[{"delete":{"key":"user:ada:notes:n1"}}]}"#;
    let batch = server.post("/v1/spaces/notes/batch", batch).bearer_auth(&reader);
    refused(403, "forbidden", batch).await;
    let line = server.put("/v1/spaces/log/records/log:a:00000000000000000001", "1");
    answered(201, line.bearer_auth(&reader)).await;
    for path in ["/v1/stores/app/migrations", "/v1/stores/app/doctor"] {
        refused(403, "forbidden", server.get(path).bearer_auth(&reader)).await;
        refused(403, "forbidden", server.post(path, "{}").bearer_auth(&reader)).await;
        refused(403, "forbidden", people.ada(server.post(path, "{}"))).await;
    }
}

#[tokio::test]
async fn a_users_records_are_their_own() {
    let people = People::new().await;
    let server = &people.server;
    // The owner is the caller, if none is said.
    let new = r#"{"values":{"note":"n1"},"value":{"title":"mine","slug":"one"}}"#;
    let made = answered(201, people.ada(server.post("/v1/spaces/notes/records", new))).await;
    assert_eq!(made.headers()["location"], ADAS);
    for n in 2..5 {
        let at = format!("/v1/spaces/notes/records/user:ada:notes:n{n}");
        answered(201, people.ada(server.put(&at, r#"{"title":"more"}"#))).await;
    }
    let listed = told(200, people.ada(server.get("/v1/spaces/notes/records"))).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 4);
    let question = json!({"index": "notes_by_title", "limit": 1});
    let ask = |question: &Value| server.post("/v1/spaces/notes/query", &question.to_string());
    let first = told(200, people.ada(ask(&question))).await;
    assert_eq!(first["records"][0]["key"], "user:ada:notes:n1");

    // What another user is told does not depend on what is there.
    let there = refused(403, "forbidden", people.bob(server.get(ADAS))).await;
    let nothing = server.get("/v1/spaces/notes/records/user:ada:notes:none");
    assert_eq!(refused(403, "forbidden", people.bob(nothing)).await, there);
    refused(403, "forbidden", people.bob(server.put(ADAS, r#"{"title":"x"}"#))).await;
    refused(403, "forbidden", people.bob(server.get("/v1/spaces/notes/records?prefix=user:ada:")))
        .await;
    let theirs = r#"{"values":{"user":"ada","note":"n9"},"value":{"title":"x"}}"#;
    refused(403, "forbidden", people.bob(server.post("/v1/spaces/notes/records", theirs))).await;
    refused(403, "forbidden", people.bob(ask(&json!({"index": "notes_by_title", "owner": "ada"}))))
        .await;
    let none = told(200, people.bob(server.get("/v1/spaces/notes/records"))).await;
    assert_eq!(none["items"], json!([]));
    // A cursor is good in the hands of whom it was given to.
    let mut stolen = question.clone();
    stolen["cursor"] = first["next"].clone();
    answered(200, people.ada(ask(&stolen))).await;
    refused(400, "bad-cursor", people.bob(ask(&stolen))).await;
}

#[tokio::test]
async fn the_holder_of_a_unique_value_is_named_to_those_who_may_see_it() {
    let people = People::new().await;
    let server = &people.server;
    let value = r#"{"title":"x","slug":"one"}"#;
    answered(201, people.ada(server.put(ADAS, value))).await;
    let other = people.ada(server.put("/v1/spaces/notes/records/user:ada:notes:n2", value));
    assert_eq!(refused(409, "unique-clash", other).await["holder"], "user:ada:notes:n1");
    let bobs = people.bob(server.put("/v1/spaces/notes/records/user:bob:notes:n1", value));
    let problem = refused(409, "unique-clash", bobs).await;
    assert!(problem.get("holder").is_none() && !problem.to_string().contains("ada"), "{problem}");
}

#[tokio::test]
async fn changes_of_records_are_in_the_audit_log_with_their_keys() {
    let people = People::new().await;
    let server = &people.server;
    answered(201, people.ada(server.put(ADAS, r#"{"title":"canary"}"#))).await;
    let batch = r#"{"operations":[{"delete":{"key":"user:ada:notes:n1"}}]}"#;
    answered(200, people.ada(server.post("/v1/spaces/notes/batch", batch))).await;
    answered(200, people.ada(server.post("/v1/spaces/notes/query", "{}"))).await;
    let acts = loop {
        let log = told(200, server.get("/v1/audit").bearer_auth(&people.admin.secret)).await;
        let ours = |act: &&Value| act["target"] == "space/notes";
        let acts: Vec<_> = log["items"].as_array().unwrap().iter().filter(ours).cloned().collect();
        if acts.len() >= 2 {
            break acts;
        }
    };
    assert_eq!(acts.len(), 2, "{acts:?}");
    for act in &acts {
        assert_eq!((&act["act"], &act["keys"]), (&json!("write"), &json!(["user:ada:notes:n1"])));
        assert!(!act.to_string().contains("canary"));
    }
}

const POSTS: &str = r#"
[stores.app]
url = "memory:"
[spaces.posts]
key = "shared:posts:{user}:{post}"
ownership = "hybrid"
history = 5
share = ["text", "at"]
[spaces.posts.indexes.recent]
kind = "time"
field = "at"
scope = "shared"
"#;

#[tokio::test]
async fn others_read_what_is_shared_of_a_record_and_nothing_of_a_draft() {
    let server = Running::with_schema(POSTS).await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({"name": "a", "user": "ada"})).await.secret;
    let bob = server.key(&admin, &json!({"name": "b", "user": "bob"})).await.secret;
    let at = |id: &str| format!("/v1/spaces/posts/records/shared:posts:ada:{id}");
    let shared = json!({"text": "hi", "at": "2026-01-01T00:00:00Z"});
    let mut post = shared.clone();
    post["draft"] = "secret".into();
    for (id, value) in [("p1", &post), ("p2", &json!({"text": "secret"}))] {
        let body = json!({"value": value, "metadata": {"ip": "x"}}).to_string();
        let put = server.put(&format!("{}?view=entry", at(id)), &body);
        assert!(put.bearer_auth(&ada).send().await.unwrap().status().is_success());
    }
    assert_eq!(told(200, server.get(&at("p1")).bearer_auth(&ada)).await, post);
    assert_eq!(told(200, server.get(&at("p1")).bearer_auth(&bob)).await, shared);
    let entry = server.get(&format!("{}?view=entry", at("p1"))).bearer_auth(&bob);
    let entry = told(200, entry).await;
    assert_eq!((&entry["value"], entry["metadata"].is_null()), (&shared, true), "{entry}");
    let keys = json!({"keys": ["shared:posts:ada:p1", "shared:posts:ada:p2"]}).to_string();
    let several = told(200, server.post("/v1/spaces/posts/get", &keys).bearer_auth(&bob)).await;
    assert_eq!(several["records"][0]["value"], shared);
    assert!(several["records"][1].is_null(), "{several}");
    for id in ["p2", "none"] {
        refused(404, "not-found", server.get(&at(id)).bearer_auth(&bob)).await;
    }
    // What shows the whole value, and the past, stays the owner's.
    for path in [
        "/v1/stores/app/entries/shared:posts:ada:p1",
        "/v1/spaces/posts/history/shared:posts:ada:p1",
    ] {
        refused(403, "forbidden", server.get(path).bearer_auth(&bob)).await;
    }
    let raw = json!({"keys": ["shared:posts:ada:p1"]}).to_string();
    let raw = server.post("/v1/stores/app/raw/get", &raw).bearer_auth(&bob);
    refused(403, "forbidden", raw).await;
    refused(403, "forbidden", server.put(&at("p1"), "{}").bearer_auth(&bob)).await;
}
