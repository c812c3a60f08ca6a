//! Every operation of the table: described, refused without its scope, closed to other users.

use keyward_operations::TABLE;
use keyward_operations::facts::{Body, Effect, Tag};
use keyward_operations::operation::Declared;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::fixture::{Made, Running, refused, told};

const SCHEMA: &str = r#"
[stores.main]
url = "memory:"

[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
history = 2

[spaces.notes.indexes.by_text]
field = "text"
type = "text"

[spaces.notes.indexes.by_place]
kind = "geohash"
lat = "lat"
lon = "lon"
"#;

/// A key of a user that an operation can be about: of an entry, or of a record of the space notes.
fn key_of(row: &Declared, user: &str) -> String {
    match row.facts.tag {
        Tag::Records => format!("user:{user}:notes:n"),
        Tag::Entries => format!("user:{user}:n"),
    }
}

/// A request of an operation that is about a key.
fn sample(server: &Running, row: &Declared, key: &str, query: &str) -> RequestBuilder {
    let facts = &row.facts;
    let encoded = key.replace('%', "%25");
    let path = facts.path.replace("{store}", "main").replace("{space}", "notes");
    let path = path.replace("{key}", &encoded);
    assert!(!path.contains('{'), "say here what stands in {path}");
    // What lies below the key, or beside a record's.
    let below = encoded.strip_suffix(":n").unwrap_or(&encoded);
    let prefix = match facts.id {
        "list_entries" | "clear_entries" | "list_records" | "clear_records" => {
            format!("prefix={below}:&")
        }
        _ => String::new(),
    };
    let method = Method::from_bytes(facts.method.name().as_bytes()).unwrap();
    let request = server.request(method, &format!("{path}?{prefix}{query}"));
    let user = key.split(':').nth(1).unwrap_or_default();
    let body = match facts.body {
        Body::None => return request,
        Body::Whole(_) => json!(7),
        Body::MergePatch(_) => json!({ "n": 7 }),
        Body::Fields => match facts.id {
            "get_entries" | "get_records" => json!({ "keys": [key] }),
            "batch_records" => json!({ "operations": [{ "put": { "key": key, "value": 7 } }] }),
            "query_records" | "explain_query" => {
                json!({ "index": "by_text", "owner": user, "equal": ["x"] })
            }
            "near_records" => {
                json!({ "owner": user, "lat": 1, "lon": 1, "radius_m": 10 })
            }
            "within_records" => {
                let (south, west, north, east) = (0, 0, 1, 1);
                json!({ "owner": user, "south": south, "west": west, "north": north, "east": east })
            }
            "restore_record" => json!({ "to": 1 }),
            "create_record" => json!({ "values": { "user": user, "note": "n" }, "value": 7 }),
            id => panic!("say here what the body of {id} is"),
        },
    };
    request.header("content-type", "application/json").body(body.to_string())
}

#[test]
fn every_operation_is_described_under_its_name() {
    let api = keyward_server::openapi();
    for row in TABLE {
        let method = row.facts.method.name().to_ascii_lowercase();
        let operation = &api["paths"][row.facts.path][&method];
        assert_eq!(operation["operationId"], row.facts.id);
        let given = operation["parameters"].as_array().unwrap();
        for field in row.facts.path_fields() {
            let is_there = |it: &&Value| it["name"] == field && it["in"] == "path";
            assert!(given.iter().find(is_there).is_some(), "{}: {field}", row.facts.id);
        }
        assert_eq!(operation.get("requestBody").is_some(), row.facts.body != Body::None);
    }
}

#[tokio::test]
async fn every_operation_needs_a_credential_and_its_scope() {
    let server = Running::with_schema(SCHEMA).await;
    let admin = server.admin().await;
    let scoped = async |scope: &str| -> Made {
        server.key(&admin, &json!({ "name": scope, "scopes": [scope] })).await
    };
    let (other, reader) = (scoped("write:store/other").await, scoped("read:store/main").await);
    for row in TABLE {
        let ask = || sample(&server, row, &key_of(row, "ada"), "");
        refused(401, "unauthenticated", ask()).await;
        match row.facts.tag {
            Tag::Entries => refused(403, "forbidden", ask().bearer_auth(&other.secret)).await,
            // A space that no scope reaches is not shown to be there.
            Tag::Records => refused(404, "unknown-space", ask().bearer_auth(&other.secret)).await,
        };
        match row.facts.effect {
            Effect::Reads => {
                let answer = ask().bearer_auth(&reader.secret).send().await.unwrap();
                assert!([200, 404].contains(&answer.status().as_u16()), "{}", row.facts.id);
            }
            _ => drop(refused(403, "forbidden", ask().bearer_auth(&reader.secret)).await),
        }
    }
}

#[tokio::test]
async fn no_operation_reaches_another_users_keys() {
    let server = Running::with_schema(SCHEMA).await;
    let admin = server.admin().await;
    let eve = json!({ "name": "eve", "user": "eve", "scopes": ["write:*"] });
    let eve = server.key(&admin, &eve).await;
    let secrets =
        ["/v1/stores/main/entries/user:ada:n", "/v1/spaces/notes/records/user:ada:notes:n"];
    for secret in secrets {
        answered_well(server.put(secret, "\"ada's\"").bearer_auth(&admin.secret)).await;
    }
    for row in TABLE {
        for user in ["ada", "eve%3Aada", "eve.ada", "EVE"] {
            let asked = sample(&server, row, &key_of(row, user), "").bearer_auth(&eve.secret);
            let problem = refused(403, "forbidden", asked).await;
            assert!(!problem.to_string().contains("ada's"), "{problem}");
        }
    }
    for secret in secrets {
        let kept = told(200, server.get(secret).bearer_auth(&admin.secret)).await;
        assert_eq!(kept, json!("ada's"));
    }
}

async fn answered_well(request: RequestBuilder) {
    let answer = request.send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
}

#[tokio::test]
async fn no_operation_takes_a_parameter_that_it_does_not_have() {
    let server = Running::with_schema(SCHEMA).await;
    for row in TABLE {
        let asked = sample(&server, row, &key_of(row, "ada"), "lmit=1");
        let problem = refused(400, "invalid", asked).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("there is no parameter called \"lmit\""), "{detail}");
    }
}
