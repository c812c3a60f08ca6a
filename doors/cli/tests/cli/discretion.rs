//! serve: what a log, an error or a number never tells.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::sandbox::Sandbox;

fn send(address: &str, line: &str, headers: &str, body: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(
        connection,
        "{line} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn no_secret_is_in_logs_errors_metrics_or_the_audit_log() {
    let kw = Sandbox::new();
    let made = kw.json(&["key", "create", "admin", "--scope", "admin:*", "--json"]);
    let secret = made["secret"].as_str().unwrap();
    let tail = secret.rsplit('_').next().unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--json", "--log", "json"];
    let server = kw.start(&[&arguments[..], &["--log-level", "debug"]].concat());
    let started: serde_json::Value = serde_json::from_str(&server.next_line()).unwrap();
    let address = started["address"].as_str().unwrap();

    let good = format!("authorization: Bearer {secret}\r\n");
    let entry = "/v1/stores/main/entries/user:7:a";
    let value = r#"{"card":"canary-value"}"#;
    let mut told = Vec::new();
    told.push(send(address, &format!("PUT {entry}"), &good, value));
    assert!(told[0].starts_with("HTTP/1.1 200"), "{}", told[0]);
    for (line, headers, body) in [
        (format!("PUT {entry}"), "authorization: Bearer canary-token\r\n", value),
        (format!("PUT {entry}"), "authorization: Bearer kw_0000_canarysecret\r\n", value),
        (format!("PUT {entry}"), "authorization: Basic canary-basic\r\n", value),
        (format!("PUT {entry}"), "", value),
        (format!("GET {entry}"), "cookie: canary-cookie\r\n", ""),
    ] {
        let answer = send(address, &line, headers, body);
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        told.push(answer);
    }
    for (line, headers, body) in [
        (format!("PUT {entry}"), "", r#"{"card":"canary-value"#),
        (format!("PATCH {entry}"), "if-match: \"0\"\r\n", value),
        ("POST /v1/stores/main/commit".to_owned(), "", r#"{"canary-value":1}"#),
        ("POST /v1/keys".to_owned(), "", r#"{"name":""}"#),
        ("DELETE /v1/keys/none".to_owned(), "", ""),
        (format!("DELETE /v1/keys/{secret}"), "", ""),
        ("GET /none".to_owned(), "", ""),
    ] {
        told.push(send(address, &line, &format!("{good}{headers}"), body));
    }
    told.push(send(address, "GET /metrics", "", ""));
    server.terminate();
    while let Some(line) = server.note() {
        told.push(line);
    }
    assert_eq!(server.ended(), Some(0));
    told.push(kw.ok(&["audit", "export"]));
    assert!(told.iter().any(|text| text.contains("\"message\":\"answered\"")), "{told:?}");
    for text in &told {
        // A name that nobody knows is told to who wrote it; their values and secrets are not.
        let shown = text.replace("unknown field `canary-value`", "");
        assert!(!shown.contains("canary"), "{text}");
        // The path of an answer may be that of the request, and its first part is no secret.
        assert!(!text.contains(tail), "{text}");
    }
}
