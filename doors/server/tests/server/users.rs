//! Everything of one user: handed out, and removed.

use reqwest::Method;
use serde_json::{Value, json};

use crate::fixture::{Made, Running, answered, refused, told};

const SCHEMA: &str = r#"
[stores.app]
url = "memory:"
[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
history = 5
[spaces.notes.indexes.notes_by_tag]
field = "tag"
type = "text"
[spaces.drafts]
key = "draft:{user}:{draft}"
ownership = "user"
[spaces.profiles]
key = "profile:{user}"
ownership = "user"
history = 3
[spaces.cards]
key = "user:{name}:card"
ownership = "shared"
history = 3
[locks.desks]
root = "user:{name}:desk"
paths = ["all"]
"#;

/// A server with things of Ada's and of others'.
async fn furnished() -> (Running, Made, Made) {
    let server = Running::with_schema(SCHEMA).await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({"name": "laptop", "user": "ada"})).await;
    for user in ["ada", "adam", "bob"] {
        let put = |path: &str, body: &str| {
            answered(
                201,
                server.put(path, body).bearer_auth(&admin.secret).header("if-none-match", "*"),
            )
        };
        let note = format!("/v1/spaces/notes/records/user:{user}:notes:1");
        put(&note, r#"{"tag":"a"}"#).await;
        let change = server.put(&note, r#"{"tag":"b"}"#).bearer_auth(&admin.secret);
        answered(200, change).await;
        put(&format!("/v1/spaces/drafts/records/draft:{user}:1"), r#"{"text":"x"}"#).await;
        put(&format!("/v1/spaces/profiles/records/profile:{user}"), r#"{"name":"x"}"#).await;
        put(&format!("/v1/spaces/cards/records/user:{user}:card"), r#"{"name":"x"}"#).await;
        put(&format!("/v1/stores/app/entries/user:{user}:theme"), r#""dark""#).await;
    }
    (server, admin, ada)
}

async fn exported(server: &Running, admin: &Made, user: &str) -> Vec<Value> {
    let request = server.get(&format!("/v1/users/{user}/export")).bearer_auth(&admin.secret);
    let answer = answered(200, request).await;
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    let text = answer.text().await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn everything_of_a_user_is_handed_out_and_nothing_of_anybody_else() {
    let (server, admin, ada) = furnished().await;
    let lines = exported(&server, &admin, "ada").await;
    let (end, things) = lines.split_last().unwrap();
    assert_eq!(*end, json!({"end": {"items": things.len()}}));
    let mut kinds: Vec<String> = things
        .iter()
        .map(|thing| match thing {
            _ if thing["api_key"].is_object() => format!("key {}", thing["api_key"]["id"]),
            _ if thing["record"].is_object() => {
                format!("{} {}", thing["space"], thing["record"]["key"])
            }
            _ if thing["past"].is_object() => format!("past {}", thing["key"]),
            _ => format!("entry {}", thing["entry"]["key"]),
        })
        .collect();
    kinds.sort();
    let mut expected = [
        format!("key \"{}\"", ada.id),
        r#""notes" "user:ada:notes:1""#.to_owned(),
        r#""drafts" "draft:ada:1""#.to_owned(),
        r#""profiles" "profile:ada""#.to_owned(),
        r#"past "profile:ada""#.to_owned(),
        r#""cards" "user:ada:card""#.to_owned(),
        r#"past "user:ada:card""#.to_owned(),
        r#"past "user:ada:notes:1""#.to_owned(),
        r#"past "user:ada:notes:1""#.to_owned(),
        r#"entry "user:ada:theme""#.to_owned(),
    ];
    expected.sort();
    assert_eq!(kinds, expected);
    let all = json!(lines).to_string();
    assert!(!all.contains("adam") && !all.contains("bob") && !all.contains(&ada.secret), "{all}");
}

#[tokio::test]
async fn everything_of_a_user_is_removed_and_nothing_of_anybody_else() {
    let (server, admin, ada) = furnished().await;
    let others = (exported(&server, &admin, "adam").await, exported(&server, &admin, "bob").await);
    let remove = || server.request(Method::DELETE, "/v1/users/ada").bearer_auth(&admin.secret);
    let gone = told(200, remove()).await;
    // The removals of a note, a profile and a card are versions, too.
    assert_eq!(gone, json!({"api_keys": 1, "records": 4, "versions": 7, "entries": 1}));
    assert_eq!(exported(&server, &admin, "ada").await, [json!({"end": {"items": 0}})]);
    let own = server.get("/v1/stores/app/entries/user:ada:theme").bearer_auth(&ada.secret);
    refused(401, "unauthenticated", own).await;
    for (owner, count) in [("ada", 0), ("bob", 1)] {
        let question = json!({"index": "notes_by_tag", "owner": owner, "equal": ["b"]});
        let found = server.post("/v1/spaces/notes/query", &question.to_string());
        let found = told(200, found.bearer_auth(&admin.secret)).await;
        assert_eq!(found["records"].as_array().unwrap().len(), count, "{found}");
    }
    let still = (exported(&server, &admin, "adam").await, exported(&server, &admin, "bob").await);
    assert_eq!(still, others);
    let nothing = json!({"api_keys": 0, "records": 0, "versions": 0, "entries": 0});
    assert_eq!(told(200, remove()).await, nothing);
}

#[tokio::test]
async fn only_those_who_run_the_server_may() {
    let (server, admin, ada) = furnished().await;
    let writer = json!({"name": "writer", "scopes": ["write:*", "admin:store/app"]});
    let writer = server.key(&admin, &writer).await;
    for secret in [&ada.secret, &writer.secret] {
        for user in ["ada", "bob", "nobody"] {
            let export = server.get(&format!("/v1/users/{user}/export"));
            refused(403, "forbidden", export.bearer_auth(secret)).await;
            let remove = server.request(Method::DELETE, &format!("/v1/users/{user}"));
            refused(403, "forbidden", remove.bearer_auth(secret)).await;
        }
    }
    let long = format!("/v1/users/{}/export", "a".repeat(257));
    refused(400, "invalid", server.get(&long).bearer_auth(&admin.secret)).await;
    assert_eq!(exported(&server, &admin, "bob").await.len(), 10);
}

#[tokio::test]
async fn locks_that_are_held_below_a_user_keep_their_catalog() {
    let (server, admin, _) = furnished().await;
    let acquire = |root: &str| {
        let body = json!({"root": root, "ttl": 60}).to_string();
        server.post("/v1/stores/app/locks/acquire", &body).bearer_auth(&admin.secret)
    };
    let declared = told(200, acquire("user:ada:desk")).await;
    let other = told(200, acquire("user:ada:shelf")).await;
    answered(200, server.request(Method::DELETE, "/v1/users/ada").bearer_auth(&admin.secret)).await;
    for lock in [declared, other] {
        let body = json!({"ticket": lock["ticket"]}).to_string();
        let renew = server.post("/v1/stores/app/locks/renew", &body);
        answered(200, renew.bearer_auth(&admin.secret)).await;
    }
    // Nor does anybody write over the catalog of a declared root.
    let desk = "/v1/stores/app/entries/user:ada:desk";
    refused(403, "reserved", server.put(desk, "1").bearer_auth(&admin.secret)).await;
    let remove = server.request(Method::DELETE, desk).bearer_auth(&admin.secret);
    refused(403, "reserved", remove).await;
}

#[tokio::test]
async fn tokens_go_on_rising_after_a_user_was_removed() {
    let (server, admin, _) = furnished().await;
    let lock = async || {
        let body = json!({"root": "user:ada:shelf", "ttl": 60}).to_string();
        let acquire = server.post("/v1/stores/app/locks/acquire", &body);
        let lock = told(200, acquire.bearer_auth(&admin.secret)).await;
        let body = json!({"ticket": lock["ticket"]}).to_string();
        let release = server.post("/v1/stores/app/locks/release", &body);
        answered(204, release.bearer_auth(&admin.secret)).await;
        lock["token"].as_u64().unwrap()
    };
    let before = lock().await;
    answered(200, server.request(Method::DELETE, "/v1/users/ada").bearer_auth(&admin.secret)).await;
    let shelf = server.get("/v1/stores/app/entries/user:ada:shelf").bearer_auth(&admin.secret);
    answered(404, shelf).await;
    // Nobody who was given the old token elsewhere takes the new holder for a former one.
    assert!(lock().await > before);
}
