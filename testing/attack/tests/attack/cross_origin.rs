//! A web page on another port of this machine, against a server without keys.

use std::time::Duration;

use serde_json::json;

use crate::http::{self, Answer};
use crate::sandbox::Sandbox;
use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(30);

/// What browsers send along when a page of another origin makes them send a request.
const FOREIGN: [&str; 5] = [
    "origin: http://localhost:9999\r\nsec-fetch-site: same-site\r\nsec-fetch-mode: no-cors\r\n",
    "origin: http://127.0.0.1:9999\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: cors\r\n",
    "sec-fetch-site: same-site\r\nsec-fetch-mode: no-cors\r\n",
    "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n",
    "origin: null\r\n",
];

fn send(server: &Server, request: &str, headers: &str, body: Option<&str>) -> Answer {
    let (method, path) = request.split_once(' ').unwrap();
    let address = server.address;
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n{headers}");
    http::send(address, &head, body, PATIENCE).unwrap()
}

#[test]
fn a_page_of_another_origin_changes_nothing_on_a_server_without_keys() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let put = "PUT /v1/stores/main/entries/shared:mine";
    assert_eq!(send(&server, put, "", Some("1")).status, 200);
    let key = json!({"name": "mine now", "scopes": ["admin:*"]}).to_string();
    let commit = json!({"writes": [{"delete": {"key": "shared:mine"}}]}).to_string();
    for headers in FOREIGN {
        for (request, body) in [
            ("POST /v1/keys", Some(key.as_str())),
            (put, Some("2")),
            ("PATCH /v1/stores/main/entries/shared:mine", Some("2")),
            ("DELETE /v1/stores/main/entries/shared:mine", None),
            ("POST /v1/stores/main/commit", Some(commit.as_str())),
        ] {
            let answer = send(&server, request, headers, body);
            assert!((400..500).contains(&answer.status), "{request} {headers}: {answer:?}");
        }
    }
    // Nobody was locked out, and nothing was written.
    let answer = send(&server, "GET /v1/stores/main/entries/shared:mine", "", None);
    assert_eq!((answer.status, answer.body.as_str()), (200, "1"));
}

#[test]
fn allowed_origins_let_no_other_page_in_and_no_other_site_without_a_key() {
    let sandbox = Sandbox::new();
    let allowed =
        ["--cors-origin", "https://app.example", "--cors-origin", "http://localhost:5173"];
    let server = Server::start(&sandbox, &allowed);
    assert!(server.log().contains("until there is an API key"), "{}", server.log());
    let put = "PUT /v1/stores/main/entries/shared:mine";
    let page = "origin: http://localhost:5173\r\nsec-fetch-site: same-site\r\n";
    assert_eq!(send(&server, put, page, Some("1")).status, 200);
    let site = "origin: https://app.example\r\nsec-fetch-site: cross-site\r\n";
    for headers in FOREIGN.into_iter().chain([site]) {
        for request in [put, "DELETE /v1/stores/main/entries/shared:mine", "POST /v1/keys"] {
            let answer = send(&server, request, headers, Some("2"));
            assert_eq!(answer.status, 403, "{request} {headers}: {answer:?}");
        }
    }
    let answer = send(&server, "GET /v1/stores/main/entries/shared:mine", "", None);
    assert_eq!((answer.status, answer.body.as_str()), (200, "1"));
    let answer = send(&server, "GET /v1/stores/main/entries/shared:mine", site, None);
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[test]
fn a_body_without_its_content_type_is_refused() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    // As a page sends a Blob without a type, in the mode no-cors.
    for (path, status) in [("/v1/keys", 403), ("/v1/stores/main/commit", 415)] {
        let body = json!({"name": "mine now", "scopes": ["admin:*"]}).to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        let answer = http::exchange(server.address, &request, PATIENCE).unwrap();
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    let answer = send(&server, "GET /v1/stores", "", None);
    assert_eq!(answer.status, 200, "{answer:?}");
}
