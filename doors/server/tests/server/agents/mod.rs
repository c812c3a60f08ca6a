//! What agents keep for users, through `/v1/agents`.

mod apart;
mod conditions;
mod counting;
mod exchange;
mod history;
mod keeping;
mod limits;
mod namespaces;
mod placing;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::fixture::{Made, Running, told};

/// A namespace that needs escapes in a path, in a path.
const NAMESPACE: &str = "/v1/agents/namespaces/files:apache%2Frepo";

/// The path of an entry of that namespace, whose key is percent-encoded.
fn entry(key: &str) -> String {
    format!("{NAMESPACE}/entries/{key}")
}

/// The same request in the name of an agent.
fn by(agent: &str, request: RequestBuilder) -> RequestBuilder {
    request.header("keyward-agent", agent)
}

fn delete(server: &Running, path: &str) -> RequestBuilder {
    server.request(Method::DELETE, path)
}

fn patch(server: &Running, path: &str, body: &Value) -> RequestBuilder {
    let request = server.request(Method::PATCH, path).body(body.to_string());
    request.header("content-type", "application/merge-patch+json")
}

/// Makes an entry on a server for the local user.
async fn made(server: &Running, key: &str, value: &Value) {
    told(201, server.put(&entry(key), &json!({ "value": value }).to_string())).await;
}

/// A server with an admin and two users, each with a key.
async fn two_users() -> (Running, Made, Made, Made) {
    let server = Running::new().await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({"name": "a", "user": "ada"})).await;
    let bob = server.key(&admin, &json!({"name": "b", "user": "bob"})).await;
    (server, admin, ada, bob)
}
