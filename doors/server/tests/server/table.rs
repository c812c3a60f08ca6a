//! Every operation of the table: described, refused without its scope, closed to other users.

use keyward_operations::TABLE;
use keyward_operations::facts::{Body, Effect};
use keyward_operations::operation::Declared;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::fixture::{Made, Running, answered, refused, told};

/// A request of an operation that is about a key.
fn sample(server: &Running, row: &Declared, key: &str, query: &str) -> RequestBuilder {
    let facts = &row.facts;
    let encoded = key.replace('%', "%25");
    let path = facts.path.replace("{store}", "main").replace("{key}", &encoded);
    assert!(!path.contains('{'), "say here what stands in {path}");
    let prefix = match facts.id {
        "list_entries" | "clear_entries" => format!("prefix={encoded}:&"),
        _ => String::new(),
    };
    let method = Method::from_bytes(facts.method.name().as_bytes()).unwrap();
    let request = server.request(method, &format!("{path}?{prefix}{query}"));
    let body = match facts.body {
        Body::None => return request,
        Body::Whole(_) => json!(7),
        Body::MergePatch(_) => json!({ "n": 7 }),
        Body::Fields => match facts.id {
            "get_entries" => json!({ "keys": [key] }),
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
    let server = Running::new().await;
    let admin = server.admin().await;
    let scoped = async |scope: &str| -> Made {
        server.key(&admin, &json!({ "name": scope, "scopes": [scope] })).await
    };
    let (other, reader) = (scoped("write:store/other").await, scoped("read:store/main").await);
    for row in TABLE {
        refused(401, "unauthenticated", sample(&server, row, "a:b", "")).await;
        let asked = sample(&server, row, "a:b", "").bearer_auth(&other.secret);
        refused(403, "forbidden", asked).await;
        let asked = sample(&server, row, "a:b", "").bearer_auth(&reader.secret);
        match row.facts.effect {
            Effect::Reads => assert_ne!(asked.send().await.unwrap().status(), 403),
            _ => drop(refused(403, "forbidden", asked).await),
        }
    }
}

#[tokio::test]
async fn no_operation_reaches_another_users_keys() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let eve = json!({ "name": "eve", "user": "eve", "scopes": ["write:*"] });
    let eve = server.key(&admin, &eve).await;
    let secret = "/v1/stores/main/entries/user:ada:n";
    answered(200, server.put(secret, "\"ada's\"").bearer_auth(&admin.secret)).await;
    for row in TABLE {
        for key in ["user:ada:n", "user:ada", "user:eve%3Aada:n", "other:eve"] {
            let asked = sample(&server, row, key, "").bearer_auth(&eve.secret);
            let problem = refused(403, "forbidden", asked).await;
            assert!(!problem.to_string().contains("ada's"), "{problem}");
        }
    }
    let kept = told(200, server.get(secret).bearer_auth(&admin.secret)).await;
    assert_eq!(kept, json!("ada's"));
}

#[tokio::test]
async fn no_operation_takes_a_parameter_that_it_does_not_have() {
    let server = Running::new().await;
    for row in TABLE {
        let problem = refused(400, "invalid", sample(&server, row, "a:b", "lmit=1")).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("there is no parameter called \"lmit\""), "{detail}");
    }
}
