//! Declared spaces, and the schema that the tests of records share.

use serde_json::json;

use crate::fixture::{Running, answered, refused, told};

/// Spaces with owners and without, with every kind of index.
pub const SCHEMA: &str = r#"
[stores.app]
url = "memory:"

[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
history = 5
[spaces.notes.value]
type = "object"
required = ["title"]
properties.title = { type = "string" }
properties.votes = { type = "integer" }
properties.slug = { type = "string" }
[spaces.notes.indexes.notes_by_title]
field = "title"
type = "text"
[spaces.notes.indexes.notes_by_votes]
field = "votes"
type = "integer"
[spaces.notes.indexes.notes_slug]
field = "slug"
type = "folded"
unique = true
scope = "shared"

[spaces.places]
key = "shared:places:{place}"
ownership = "shared"
[spaces.places.indexes.places_near]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 7

[spaces.sessions]
key = "sessions:{app}:{session}"
ownership = "shared"
ttl = "1h"

[spaces.log]
key = "log:{app}:{n:u64}"
ownership = "shared"
"#;

/// A server with these spaces.
pub async fn served() -> Running {
    Running::with_schema(SCHEMA).await
}

#[tokio::test]
async fn what_is_declared_is_told() {
    let server = served().await;
    let spaces = told(200, server.get("/v1/spaces")).await;
    let names: Vec<_> = spaces["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["log", "notes", "places", "sessions"]);

    let notes = told(200, server.get("/v1/spaces/notes")).await;
    assert_eq!(notes["key"], "user:{user}:notes:{note}");
    assert_eq!((&notes["ownership"], &notes["owner"]), (&json!("user"), &json!("user")));
    assert_eq!((&notes["history"], &notes["store"]), (&json!(5), &json!("app")));
    assert_eq!(notes["value"]["required"], json!(["title"]));
    assert_eq!(notes["guarantee"], "atomic");
    let slug = notes["indexes"].as_array().unwrap().iter().find(|it| it["name"] == "notes_slug");
    assert_eq!(
        slug.unwrap(),
        &json!({
            "name": "notes_slug", "kind": "values", "unique": true, "scope": "shared",
            "fields": [{"field": "slug", "type": "folded", "multi": false}], "state": "absent",
        })
    );
    let note = server.put("/v1/spaces/notes/records/user:ada:notes:n1", r#"{"title":"hi"}"#);
    answered(201, note).await;
    let notes = told(200, server.get("/v1/spaces/notes")).await;
    assert!(notes["indexes"].as_array().unwrap().iter().all(|it| it["state"] == "readable"));

    let sessions = told(200, server.get("/v1/spaces/sessions")).await;
    assert_eq!((&sessions["ttl"], &sessions["sliding"]), (&json!(3600.0), &json!(false)));
    let places = told(200, server.get("/v1/spaces/places")).await;
    assert_eq!(places["indexes"][0]["precision"], 7);
    let log = told(200, server.get("/v1/spaces/log")).await;
    assert_eq!(log["variables"][1], json!({"name": "n", "type": "u64"}));
}

#[tokio::test]
async fn an_unknown_space_is_not_found_whatever_is_asked_of_it() {
    let server = served().await;
    for path in ["", "/records", "/records/a:b", "/history/a:b"] {
        refused(404, "unknown-space", server.get(&format!("/v1/spaces/none{path}"))).await;
    }
    for path in ["/records", "/batch", "/get", "/query", "/explain", "/near", "/within"] {
        let asked = server.post(&format!("/v1/spaces/none{path}"), "{}");
        let problem = refused(404, "unknown-space", asked).await;
        assert!(!problem.to_string().contains("notes"), "{problem}");
    }
}

#[tokio::test]
async fn weaker_stores_say_so_and_refuse_what_they_cannot_do() {
    let schema = "[stores.app]\nurl = 'memory:?tier=advisory'\n[spaces.log]\n\
                  key = 'log:{app}:{n:u64}'\nownership = 'shared'\n";
    let server = Running::with_schema(schema).await;
    assert_eq!(told(200, server.get("/v1/spaces/log")).await["guarantee"], "advisory");
    let line = "/v1/spaces/log/records/log:a:00000000000000000001";
    answered(201, server.put(line, "1")).await;
    let once = server.put(line, "2").header("idempotency-key", "k");
    refused(501, "unsupported", once).await;
    let batch = r#"{"operations":[{"put":{"values":{"app":"a","n":1},"value":3}}]}"#;
    refused(501, "unsupported", server.post("/v1/spaces/log/batch", batch)).await;
    let each = batch.replacen('{', r#"{"together":false,"#, 1);
    let done = told(200, server.post("/v1/spaces/log/batch", &each)).await;
    assert_eq!(done["guarantee"], "advisory");
    let found = told(200, server.post("/v1/spaces/log/query", "{}")).await;
    assert_eq!(found["guarantee"], "advisory");
}
