//! What tests on a database of another maker need: its address, and a plain client that is not ours.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// The document of the agent data store's page, without its id.
pub const DOCUMENT: &str = r#"{"userId":"user_123","namespace":"default","key":"my-key","value":{"result":"analysis complete","score":95,"items":["a","b","c"]},"metadata":{"version":"1.0","source":"analyzer-agent"},"createdByAgent":"data-processor","lastAccessedByAgent":"report-generator","accessCount":5,"createdAt":"2026-02-01T10:30:00Z","updatedAt":"2026-02-05T14:22:00Z","lastAccessedAt":"2026-02-05T14:22:00Z"}"#;
/// Its id.
pub const ID: &str = "user_123:default:bXkta2V5";
const USER: [&str; 4] = ["--user", "user_123", "-n", "default"];

/// The address of a server that the tests are started with.
pub fn address(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("start the servers with ./test or testing/services/run, or set {variable}")
    })
}

/// A name that no other test uses.
pub fn name() -> String {
    format!("cli-{:016x}", fastrand::u64(..))
}

/// One request by hand. The address is `HOST:PORT`.
#[track_caller]
pub fn ask(address: &str, head: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut some = [0; 65_536];
    // Not until the end: Google's emulator leaves connections open.
    while !is_whole(&answer) {
        match stream.read(&mut some).unwrap() {
            0 => break,
            count => answer.extend_from_slice(&some[..count]),
        }
    }
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, if is_chunked(head) { unchunked(body) } else { body.to_owned() })
}

/// Whether an answer is there to its end, if it says where that is.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    if is_chunked(head) {
        return body.ends_with("0\r\n\r\n");
    }
    let mut lines = head.lines().map(str::to_lowercase);
    let length = lines.find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| answer.len() >= head.len() + 4 + length)
}

fn is_chunked(head: &str) -> bool {
    head.to_lowercase().contains("transfer-encoding: chunked")
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, chunk)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        body.push_str(&chunk[..size]);
        rest = chunk[size..].trim_start_matches("\r\n");
    }
    body
}

/// The first steps in a store: put, get, list, delete.
pub fn first_steps(kw: &Sandbox, url: &str) {
    let line = |more: &[&'static str]| [&["-s", url], more].concat();
    kw.ok(&line(&["put", "user:7:name", "\"Ada\""]));
    kw.ok(&line(&["put", "user:7:n", "1.50000000000000000000000001"]));
    assert_eq!(kw.ok(&line(&["get", "user:7:name"])), "\"Ada\"\n");
    assert_eq!(kw.ok(&line(&["get", "user:7:n"])), "1.50000000000000000000000001\n");
    let mut listed: Vec<_> =
        kw.ok(&line(&["ls", "user", "--text"])).lines().map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, ["user:7:n", "user:7:name"]);
    kw.ok(&line(&["del", "user:7:n"]));
    kw.fails(1, &line(&["get", "user:7:n"]));
}

/// What `stats` and `doctor --probe` say of a store: its tier, and that the server keeps its promises.
pub fn is_sound(kw: &Sandbox, url: &str, tier: &str) {
    let stats = kw.json(&["-s", url, "stats", "--json"]);
    assert_eq!(stats["tier"], tier, "{stats}");
    assert!(stats["guarantee"].is_string() && stats["limits"]["value_bytes_max"].is_u64());
    let probed = kw.json(&["-s", url, "doctor", "--probe", "--json"]);
    assert_eq!((&probed["probe"], &probed["left"]), (&"sound".into(), &0.into()), "{probed}");
    let verdict = probed["verdict"].as_str().unwrap();
    assert!(verdict.contains(" keeps what the "), "{verdict}");
    // Nothing of it stays.
    let left = kw.ok(&["-s", url, "ls", "system:probe", "--text"]);
    assert_eq!(left, "");
}

/// Agent data in place. The document was written by a client of the database; `read` reads it back as that
/// client does.
pub fn in_place(kw: &Sandbox, url: &str, read: impl Fn() -> Value) {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let agent = |more: &[&str]| {
        let line = [&["-s", url, "agent"], more, &USER[..]].concat();
        kw.run(&line)
    };
    let again = kw.json(&["-s", url, "agent", "prepare", "--apply", "--json"]);
    assert_eq!((&again["outcome"], &again["steps"]), (&"unchanged".into(), &json!([])), "{again}");
    let told = kw.ok(&["-s", url, "agent", "prepare", "--plan", "--text"]);
    assert!(told.ends_with(": nothing to do\n"), "{told}");

    let value: Value = serde_json::from_str(&agent(&["get", "my-key"]).ok()).unwrap();
    assert_eq!(value, document["value"]);
    let whole: Value = serde_json::from_str(&agent(&["get", "my-key", "--meta"]).ok()).unwrap();
    for field in
        ["userId", "namespace", "key", "metadata", "createdByAgent", "createdAt", "accessCount"]
    {
        assert_eq!(whole[field], document[field], "{field}");
    }
    assert_eq!(whole["_id"], ID);

    agent(&["set", "my-key", r#"{"score":96}"#, "--metadata", r#"{"reviewer":"bob"}"#]).ok();
    let written = read();
    assert_eq!(written["value"], json!({"score": 96}));
    let merged = json!({"version": "1.0", "source": "analyzer-agent", "reviewer": "bob"});
    assert_eq!(written["metadata"], merged);
    for field in ["userId", "namespace", "key", "createdByAgent", "createdAt"] {
        assert_eq!(written[field], document[field], "{field}");
    }

    agent(&["set", "src/main.py", "[1]"]).ok();
    // An index may be a moment late.
    for _ in 0..100 {
        if agent(&["keys", "--text"]).ok().lines().count() == 2 {
            break;
        }
    }
    assert_eq!(agent(&["keys", "--text"]).ok(), "my-key\nsrc/main.py\n");
    let namespaces = kw.ok(&["-s", url, "agent", "namespaces", "--user", "user_123", "--text"]);
    assert!(namespaces.contains("default"), "{namespaces}");
    let stats: Value = serde_json::from_str(&agent(&["stats", "--json"]).ok()).unwrap();
    assert_eq!(stats["recordCount"], 2);
    let exported = kw.ok(&["-s", url, "agent", "export", "--user", "user_123"]);
    assert!(
        exported.contains(ID) && exported.contains("user_123:default:c3JjL21haW4ucHk="),
        "{exported}"
    );
    agent(&["delete", "src/main.py"]).ok();
    agent(&["get", "src/main.py"]).fails(1);
    kw.run_with(&["-s", url, "agent", "import", "--user", "user_123"], exported).ok();
    assert_eq!(agent(&["get", "src/main.py"]).ok(), "[1]\n");

    kw.run(&["-s", url, "queue", "push", "q", "1"]).fails(4);
    for refused in [&["put", "user:7", "1"][..], &["ls"], &["export"], &["doctor"]] {
        let told = kw.run(&[&["-s", url], refused].concat()).fails(4);
        assert!(told.contains("layout=document"), "{refused:?}: {told}");
    }
    let probed = kw.json(&["-s", url, "doctor", "--probe", "--json"]);
    assert_eq!((&probed["probe"], &probed["examined"]), (&"sound".into(), &false.into()));
    assert!(probed["not_probed"].to_string().contains("lists"), "{probed}");
    let kept = kw.ok(&["-s", url, "agent", "namespaces", "--user", "keyward-probe", "--text"]);
    assert_eq!(kept, "", "the probe leaves nothing");
    let told = kw.json(&["-s", url, "stats", "--json"]);
    assert_eq!((&told["tier"], &told["entries"]), (&"recoverable".into(), &Value::Null));

    served(kw, url);
}

/// The same data through a server: over HTTP, by a command there, and over MCP.
fn served(kw: &Sandbox, url: &str) {
    kw.write("keyward.schema.toml", &format!("[stores.desk]\nurl = '{url}'\n"));
    let mut command = kw.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let server = crate::sandbox::Running::of(command.env_remove("KEYWARD_STORE"));
    let started: Value = serde_json::from_str(&server.next_line()).unwrap();
    let address = started["url"].as_str().unwrap();
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let path = "/v1/agents/namespaces/default/entries/my-key/value?user=user_123";
    let token = started["start_token"].as_str().unwrap_or_default();
    let authorized = format!("Authorization: Bearer {token}\r\n");
    let (status, body) = ask(host, &format!("GET {path}"), &authorized, "");
    assert_eq!((status, body.as_str()), (200, r#"{"score":96}"#));
    let there = ["--server", address, "agent", "get", "my-key"];
    assert_eq!(kw.ok(&[&there[..], &USER].concat()), "{\"score\":96}\n");

    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "agent_get", "arguments": {"namespace": "default", "key": "my-key"}}});
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let told = kw
        .run_with(&["-s", url, "mcp", "--user", "user_123"], format!("{open}\n{ready}\n{call}\n"));
    let told = told.ok();
    assert!(told.contains(r#"{\"score\":96}"#) || told.contains(r#""score":96"#), "{told}");
}
