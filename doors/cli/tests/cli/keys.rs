//! Keys of a server: made, listed and revoked beside it, and seen by it at once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::sandbox::{Ran, Running, Sandbox};

/// A server on the sandbox's store, and where it listens.
fn served(kw: &Sandbox) -> (Running, String) {
    let server = kw.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let started: Value = serde_json::from_str(&server.next_line()).unwrap();
    let address = started["address"].as_str().unwrap().to_owned();
    (server, address)
}

/// The status of an answer to a request with a credential.
fn status(address: &str, request: &str, credential: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {credential}\r\n\
         content-type: application/json\r\ncontent-length: 1\r\nconnection: close\r\n\r\n1"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_key_is_shown_once_and_listed_without_its_secret() {
    let kw = Sandbox::new();
    let secret = kw.ok(&["key", "create", "laptop", "--scope", "admin:*"]);
    let id = secret.trim().split('_').nth(1).unwrap().to_owned();
    let created = kw.json(&[
        "key",
        "create",
        "phone",
        "--user",
        "ada",
        "--role",
        "editor",
        "--agent",
        "planner",
        "--expires",
        "90d",
        "--json",
    ]);
    assert!(created["secret"].as_str().unwrap().starts_with("kw_"));
    assert_eq!(created["scopes"][0], "write:*");
    let listed = kw.ok(&["key", "list", "--text"]);
    assert!(listed.contains(&format!("{id}  laptop  admin:*\n")), "{listed}");
    assert!(listed.contains("phone  write:*  user ada through planner as editor  ends "));
    assert!(!listed.contains(secret.trim()) && !kw.ok(&["key", "list"]).contains(secret.trim()));
    let other = kw.run(&["key", "list", "--control", "embedded:./other"]).fails(1);
    assert!(other.contains("there is no store at embedded:./other"), "{other}");
    assert!(
        kw.fails(2, &["key", "create", "x", "--user", "a", "--scope", "admin:*"]).contains("admin")
    );
    assert!(kw.fails(2, &["key", "create", "x", "--expires", "soon"]).contains("RFC 3339"));
    assert!(
        kw.fails(2, &["key", "create", "x", "--expires", "2020-01-01T00:00:00Z"])
            .contains("passed")
    );
    assert!(kw.fails(1, &["key", "revoke", "none"]).contains("no API key has this id"));
}

#[test]
fn a_running_server_follows_what_is_done_to_keys() {
    let kw = Sandbox::new();
    let (server, address) = served(&kw);
    let get = |credential: &str| status(&address, "GET /v1/stores", credential);
    assert_eq!(get(""), 200);
    let secret = kw.ok(&["key", "create", "laptop"]);
    let secret = secret.trim();
    assert_eq!((get(""), get(secret)), (401, 200));
    assert_eq!(status(&address, "PUT /v1/stores/main/entries/a", secret), 200);
    let id = secret.split('_').nth(1).unwrap();
    assert_eq!(kw.ok(&["key", "revoke", id]), format!("revoked {id} (laptop)\n"));
    assert_eq!((get(""), get(secret)), (401, 401));
    server.terminate();
    assert_eq!(server.ended(), Some(0));

    let listed: Value = kw.json(&["key", "list", "--json"]);
    assert!(listed["last_used"].is_string() && listed["revoked"].is_string(), "{listed}");
    let act: Value = kw.json(&["audit", "export"]);
    assert_eq!((act["credential"].as_str(), act["keys"][0].as_str()), (Some(id), Some("a")));
    let (_server, address) = served(&kw);
    assert_eq!(status(&address, "GET /v1/stores", ""), 401);
}

#[test]
fn a_server_is_not_started_where_others_could_use_it() {
    let kw = Sandbox::new();
    let serve = |more: &[&str]| {
        let mut line = vec!["serve", "--listen", "0.0.0.0:0"];
        line.extend(more);
        kw.fails(7, &line)
    };
    assert!(serve(&[]).contains("--tls-cert"));
    assert!(serve(&["--plaintext"]).contains("keyward key create"));
}

/// A server that was started with these arguments, and what it says to people.
fn banner(kw: &Sandbox, arguments: &[&str]) -> (Running, String) {
    let line = [&["serve", "--listen", "127.0.0.1:0", "--text"], arguments].concat();
    let server = kw.start(&line);
    let mut text = String::new();
    while !text.contains("Ctrl-C stops it.") {
        text += &server.next_line();
        text.push('\n');
    }
    (server, text)
}

#[test]
fn a_server_without_keys_says_who_may_do_everything() {
    let kw = Sandbox::new();
    let (server, told) = banner(&kw, &[]);
    assert!(told.contains("every account on this machine may do everything here"), "{told}");
    assert!(told.contains("keyward key create") && told.contains("kw_start_"), "{told}");
    drop(server);
    let (server, told) = banner(&kw, &["--start-token"]);
    assert!(told.contains("whoever has the start token may do everything"), "{told}");
    assert!(told.contains("kw_start_") && told.contains("Bearer $KEYWARD_KEY"), "{told}");
    drop(server);
    kw.ok(&["key", "create", "laptop"]);
    let (_server, told) = banner(&kw, &["--start-token"]);
    assert!(told.contains("needs an API key") && !told.contains("kw_start_"), "{told}");
}

#[test]
fn the_start_token_goes_to_a_file_and_is_used_as_a_key_is() {
    let kw = Sandbox::new();
    // What is left of an earlier start, for everybody to read.
    let file = kw.write_secret("token", "old", 0o644);
    let (server, told) = banner(&kw, &["--start-token-file", "token"]);
    assert!(told.contains("in token") && !told.contains("kw_start_"), "{told}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = kw.read("token");
    let url = told.lines().find_map(|line| line.trim().strip_prefix("page      ")).unwrap();
    let url = url.trim_end_matches('/');
    let far = |line: &[&'static str]| [&["--server", url], line].concat();
    kw.fails(11, &far(&["put", "k", "1"]));
    kw.ok(&far(&["--key-file", "token", "put", "k", "1"]));
    let mut get = kw.command(&far(&["get", "k"]));
    assert_eq!(Ran::of(get.env("KEYWARD_KEY", token.trim())).ok(), "1\n");
    let admin =
        kw.ok(&far(&["--key-file", "token", "key", "create", "laptop", "--scope", "admin:*"]));
    kw.fails(11, &far(&["--key-file", "token", "get", "k"]));
    let mut get = kw.command(&far(&["get", "k"]));
    assert_eq!(Ran::of(get.env("KEYWARD_KEY", admin.trim())).ok(), "1\n");
    server.terminate();
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn the_first_key_comes_from_a_file_or_a_variable() {
    let kw = Sandbox::new();
    let made = Sandbox::new().ok(&["key", "create", "elsewhere"]);
    let secret = made.trim();
    let file = kw.write_secret("first", &made, 0o644);
    let file = file.to_str().unwrap();
    for line in
        [&["serve", "--first-key-file", file][..], &["serve", "--check", "--first-key-file", file]]
    {
        let told = kw.fails(7, line);
        assert!(told.contains("mode 0644") && told.contains("chmod 600"), "{told}");
    }
    kw.write_secret("first", "kw_canary_wrong", 0o600);
    let told = kw.fails(7, &["serve", "--first-key-file", file]);
    assert!(told.contains("no API key") && !told.contains("canary"), "{told}");
    let mut command = kw.command(&["serve", "--check"]);
    let told = Ran::of(command.env("KEYWARD_FIRST_KEY", "kw_canary_wrong")).fails(7);
    assert!(told.contains("KEYWARD_FIRST_KEY") && !told.contains("canary"), "{told}");

    kw.write_secret("first", &made, 0o640);
    let shown = kw.ok(&["serve", "--check", "--first-key-file", file]);
    assert!(shown.contains("first_key_file = ") && !shown.contains(secret), "{shown}");
    let server =
        kw.start(&["serve", "--listen", "127.0.0.1:0", "--json", "--first-key-file", file]);
    let started: Value = serde_json::from_str(&server.next_line()).unwrap();
    assert_eq!((&started["local"], &started["start_token"]), (&false.into(), &Value::Null));
    let address = started["address"].as_str().unwrap();
    assert_eq!(status(address, "GET /v1/keys", secret), 200);
    assert_eq!(status(address, "GET /v1/keys", ""), 401);
    assert!(kw.ok(&["key", "list", "--text"]).contains("first key  admin:*"));
}
