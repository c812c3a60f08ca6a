//! Requests for what agents keep for the victim.

use fastrand::Rng;
use reqwest::Method;
use serde_json::json;

use super::ammunition::{escaped, filter, record, text};
use super::victim::{AGENT_ENTRIES, NAME};

/// A namespace, or a key: one that the victim has, or nonsense.
fn named(rng: &mut Rng, known: &[&str]) -> String {
    let text = match rng.u8(..4) {
        0 => match text(rng) {
            empty if empty.is_empty() => "x".to_owned(),
            text => text,
        },
        _ => known[rng.usize(..known.len())].to_owned(),
    };
    escaped(rng, &text)
}

pub fn request(rng: &mut Rng, cursor: Option<String>) -> (Method, String, String) {
    let namespaces: Vec<&str> = AGENT_ENTRIES.iter().map(|(namespace, _)| *namespace).collect();
    let namespace = format!("/v1/agents/namespaces/{}", named(rng, &namespaces));
    let key = named(rng, &["k0", "k1"]);
    let entry = format!("{namespace}/entries/{key}");
    let number = rng.u8(..4);
    let (method, path, body) = match rng.u8(..18) {
        0 => (Method::GET, entry, String::new()),
        1 => (Method::GET, format!("{entry}/value"), String::new()),
        2 => (Method::PUT, entry, json!({"value": record(rng)}).to_string()),
        3 => (Method::PATCH, entry, json!({"value": record(rng)}).to_string()),
        4 => (Method::DELETE, entry, String::new()),
        5 => (Method::GET, format!("{entry}/history"), String::new()),
        6 => (Method::POST, format!("{entry}/history/{number}/restore"), String::new()),
        7 => (Method::POST, format!("{entry}/history/{number}/redact"), String::new()),
        8 => (Method::GET, format!("{namespace}/keys"), String::new()),
        9 => (Method::GET, format!("{namespace}/entries"), String::new()),
        10 => (
            Method::POST,
            format!("{namespace}/get"),
            json!({"keys": ["k0", text(rng)]}).to_string(),
        ),
        11 => {
            let entries = json!([{"key": "k0", "value": record(rng)}, {"key": "k1", "value": 1}]);
            (Method::POST, format!("{namespace}/set"), json!({"entries": entries}).to_string())
        }
        12 => (
            Method::POST,
            format!("{namespace}/search"),
            json!({"filter": filter(rng)}).to_string(),
        ),
        13 => (Method::POST, "/v1/agents/search".to_owned(), "{}".to_owned()),
        14 => (Method::GET, "/v1/agents/export".to_owned(), String::new()),
        15 => (Method::GET, "/v1/agents/runs/r1/operations".to_owned(), String::new()),
        16 => (Method::DELETE, namespace, String::new()),
        _ => (Method::GET, "/v1/agents/namespaces".to_owned(), String::new()),
    };
    let mut parameters = Vec::new();
    if rng.u8(..4) == 0 {
        let user = if rng.bool() { NAME.to_owned() } else { text(rng) };
        parameters.push(format!("user={}", escaped(rng, &user)));
    }
    if let Some(cursor) = cursor.filter(|_| method == Method::GET) {
        parameters.push(format!("cursor={}", escaped(rng, &cursor)));
    }
    if method == Method::DELETE {
        parameters.push(format!("confirm={number}"));
    }
    (method, format!("{path}?{}", parameters.join("&")), body)
}
