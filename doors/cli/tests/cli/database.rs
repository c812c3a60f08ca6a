//! What tests on a database of another maker need: its address, and a plain client that is not ours.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::sandbox::{Running, Sandbox};

/// The document of the agent data store's page, without its id.
pub const DOCUMENT: &str = r#"{"userId":"user_123","namespace":"default","key":"my-key","value":{"result":"analysis complete","score":95,"items":["a","b","c"]},"metadata":{"version":"1.0","source":"analyzer-agent"},"createdByAgent":"data-processor","lastAccessedByAgent":"report-generator","accessCount":5,"createdAt":"2026-02-01T10:30:00Z","updatedAt":"2026-02-05T14:22:00Z","lastAccessedAt":"2026-02-05T14:22:00Z"}"#;
/// Its id.
pub const ID: &str = "user_123:default:bXkta2V5";

/// The example documents of the agent data store's page, as it shows them.
const EXAMPLES: [&str; 3] = [
    r#"{
        "_id": "user_123:default:Z3JlZXRpbmc=",
        "userId": "user_123",
        "namespace": "default",
        "key": "greeting",
        "value": "Hello, World!",
        "createdByAgent": "hello-agent",
        "accessCount": 1,
        "createdAt": "2026-02-05T10:00:00Z",
        "updatedAt": "2026-02-05T10:00:00Z"
    }"#,
    r#"{
        "_id": "user_123:files:my-repo:c3JjL21haW4ucHk=",
        "userId": "user_123",
        "namespace": "files:my-repo",
        "key": "src/main.py",
        "value": {
            "content": "def main():\n    print('Hello')\n",
            "lines": 2,
            "language": "python",
            "functions": ["main"]
        },
        "metadata": {
            "indexed_at": "2026-02-05T09:00:00Z",
            "file_size": 42,
            "sha256": "abc123..."
        },
        "createdByAgent": "repo-indexer",
        "lastAccessedByAgent": "code-searcher",
        "accessCount": 15,
        "createdAt": "2026-02-05T09:00:00Z",
        "updatedAt": "2026-02-05T09:00:00Z",
        "lastAccessedAt": "2026-02-05T14:30:00Z"
    }"#,
    r#"{
        "_id": "user_123:cache:github:cmVwb3M=",
        "userId": "user_123",
        "namespace": "cache:github",
        "key": "repos",
        "value": [
            {"name": "repo-a", "stars": 100},
            {"name": "repo-b", "stars": 50}
        ],
        "metadata": {
            "cached_at": "2026-02-05T12:00:00Z",
            "ttl_seconds": 3600,
            "api_endpoint": "/user/repos"
        },
        "createdByAgent": "github-fetcher",
        "accessCount": 3,
        "createdAt": "2026-02-05T12:00:00Z",
        "updatedAt": "2026-02-05T12:00:00Z"
    }"#,
];
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

/// A live watch of a store: directly, and through a server, which can resume.
pub fn live_watch(kw: &Sandbox, url: &str) {
    kw.ok(&["-s", url, "put", "user:1", "1"]);
    let stats = kw.ok(&["-s", url, "stats", "--text"]);
    assert!(stats.contains("one process can resume its own"), "{stats}");
    let foreign = kw.fails(9, &["-s", url, "watch", "--since", "7"]);
    assert!(foreign.contains("numbers changes anew in each process"), "{foreign}");

    let server = Served::new(kw, url);
    let there = ["--server", &server.address, "watch", "user", "--text"];
    for line in [&["-s", url, "watch", "user", "--text"], &there[..]] {
        let mut command = kw.command(line);
        let watch = Running::of(command.env("KEYWARD_KEY", &server.token));
        assert!(watch.next_note().starts_with("watching for changes below user:"));
        kw.ok(&["-s", url, "put", "user:7", "1"]);
        assert!(watch.next_line().ends_with("put      user:7"));
        watch.interrupt();
        if line[0] == "--server" {
            assert!(watch.next_note().starts_with("go on with --since "));
        }
        assert_eq!(watch.ended(), Some(0));
    }
    server.end();
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
}

/// Agent data through the doors: what a plain client of the database has loaded is read over HTTP and MCP, and what is
/// written there, the plain client reads. `load` stores a document as that client does, `read` gives one with its `_id`
/// and without what the database itself adds.
pub fn through_the_doors(
    kw: &Sandbox,
    url: &str,
    load: impl Fn(&Value),
    read: impl Fn(&str) -> Value,
) {
    let mut documents: Vec<Value> =
        EXAMPLES.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let mut whole: Value = serde_json::from_str(DOCUMENT).unwrap();
    whole["_id"] = ID.into();
    documents.push(whole);
    for document in &documents {
        load(document);
        assert_eq!(read(text(&document["_id"])), *document);
    }
    kw.ok(&["-s", url, "agent", "prepare", "--apply"]);

    let server = Served::new(kw, url);
    for document in &documents {
        let mut told = server.get(&entry_path(document));
        assert!(told.as_object_mut().unwrap().remove("_rev").is_some_and(|rev| rev.is_string()));
        assert_eq!(told, *document);
    }
    // The index may be a moment late.
    let listed = |path: &str, count: usize| {
        let items = || server.get(path)["items"].clone();
        let found =
            (0..100).map(|_| items()).find(|items| items.as_array().unwrap().len() == count);
        found.unwrap_or_else(items)
    };
    let namespaces = listed("/v1/agents/namespaces?user=user_123", 3);
    assert_eq!(namespaces, json!(["cache:github", "default", "files:my-repo"]));
    for (namespace, keys) in [
        ("default", json!(["greeting", "my-key"])),
        ("files%3Amy-repo", json!(["src/main.py"])),
        ("cache%3Agithub", json!(["repos"])),
    ] {
        let path = format!("/v1/agents/namespaces/{namespace}/keys?user=user_123");
        assert_eq!(listed(&path, keys.as_array().unwrap().len()), keys, "{namespace}");
    }
    let there = ["--server", &server.address, "agent", "get", "greeting"];
    assert_eq!(kw.ok(&[&there[..], &USER].concat()), "\"Hello, World!\"\n");

    let put = |key: &str, headers: &str, body: &Value| {
        let path = format!("/v1/agents/namespaces/files%3Amy-repo/entries/{key}?user=user_123");
        let (status, told) = server.ask("PUT", &path, headers, &body.to_string());
        assert_eq!(status, 201, "{told}");
    };
    let value = json!({"text": "é\n\"", "list": [1, -2.5, true, null, {}], "nested": {"a": []}});
    put("src%2Flib.rs", "", &json!({"value": value}));
    let metadata = json!({"tags": ["a"], "size": 42, "none": null});
    let named = "Keyward-Agent: http-agent\r\n";
    put("%7E%7E%7E", named, &json!({"value": null, "metadata": metadata}));

    over_mcp(kw, url, &documents, &metadata);
    server.end();

    // By nobody, and by agents: exactly the fields of the page, and those that say nothing are absent.
    let times = |written: &Value| {
        let (made, updated) = (text(&written["createdAt"]), text(&written["updatedAt"]));
        assert_eq!(made, updated);
        assert!(is_whole_seconds(made), "{made}");
        made.to_owned()
    };
    let written = read("user_123:files:my-repo:c3JjL2xpYi5ycw==");
    let at = times(&written);
    let expected = json!({
        "_id": "user_123:files:my-repo:c3JjL2xpYi5ycw==", "userId": "user_123",
        "namespace": "files:my-repo", "key": "src/lib.rs", "value": value, "accessCount": 0,
        "createdAt": at, "updatedAt": at,
    });
    assert_eq!(written, expected);
    for (id, namespace, key, agent) in [
        ("user_123:files:my-repo:fn5-", "files:my-repo", "~~~", "http-agent"),
        ("user_123:default:w7w_", "default", "ü?", "mcp-agent"),
    ] {
        let written = read(id);
        let (at, accessed) = (times(&written), text(&written["lastAccessedAt"]));
        assert!(is_whole_seconds(accessed), "{accessed}");
        let expected = json!({
            "_id": id, "userId": "user_123", "namespace": namespace, "key": key, "value": null,
            "metadata": metadata, "createdByAgent": agent, "lastAccessedByAgent": agent,
            "accessCount": 0, "createdAt": at, "updatedAt": at, "lastAccessedAt": accessed,
        });
        assert_eq!(written, expected);
    }
    // Of what an agent has read, nothing is changed but who read.
    for document in &documents {
        let now = read(text(&document["_id"]));
        assert!(is_whole_seconds(text(&now["lastAccessedAt"])), "{now}");
        assert_eq!(now, read_by(document, "mcp-agent", &now["lastAccessedAt"]));
    }
}

/// Reads the documents over MCP, and writes one.
fn over_mcp(kw: &Sandbox, url: &str, documents: &[Value], metadata: &Value) {
    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "mcp-agent", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = |id: usize, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let mut lines = vec![open, ready];
    for (n, document) in documents.iter().enumerate() {
        let asked = json!({"namespace": document["namespace"], "key": document["key"]});
        lines.push(call(n + 1, "agent_get", asked));
    }
    lines.push(call(11, "agent_keys", json!({"namespace": "cache:github"})));
    lines.push(call(12, "agent_namespaces", json!({})));
    let set = json!({"namespace": "default", "key": "ü?", "value": null, "metadata": metadata});
    lines.push(call(13, "agent_set", set));
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let told = kw.run_with(&["-s", url, "mcp", "--user", "user_123"], input).ok();
    let answers: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |id: usize| {
        let found = answers.iter().find(|answer| answer["id"] == id).unwrap();
        assert_ne!(found["result"]["isError"], true, "{found}");
        found["result"]["structuredContent"].clone()
    };
    for (n, document) in documents.iter().enumerate() {
        let mut entry = answer(n + 1)["entry"].clone();
        assert!(entry.as_object_mut().unwrap().remove("_rev").is_some_and(|rev| rev.is_string()));
        assert_eq!(entry, read_by(document, "mcp-agent", &entry["lastAccessedAt"]));
    }
    assert_eq!(answer(11)["keys"], json!(["repos"]));
    assert_eq!(answer(12)["namespaces"], json!(["cache:github", "default", "files:my-repo"]));
    assert_eq!(answer(13)["created"], true);
}

/// A document after an agent has read it once.
fn read_by(document: &Value, agent: &str, at: &Value) -> Value {
    let mut document = document.clone();
    document["accessCount"] = (document["accessCount"].as_u64().unwrap() + 1).into();
    document["lastAccessedByAgent"] = agent.into();
    document["lastAccessedAt"] = at.clone();
    document
}

fn entry_path(document: &Value) -> String {
    let escaped = |name: &str| text(&document[name]).replace(':', "%3A").replace('/', "%2F");
    let (namespace, key) = (escaped("namespace"), escaped("key"));
    format!("/v1/agents/namespaces/{namespace}/entries/{key}?user=user_123")
}

fn text(json: &Value) -> &str {
    json.as_str().unwrap_or_else(|| panic!("{json} should be a text"))
}

/// Whether a time is written as in `2026-02-05T10:00:00Z`.
fn is_whole_seconds(time: &str) -> bool {
    let pattern = "0000-00-00T00:00:00Z";
    let fits = |(c, like): (char, char)| if like == '0' { c.is_ascii_digit() } else { c == like };
    time.len() == pattern.len() && time.chars().zip(pattern.chars()).all(fits)
}

/// A server of one store.
struct Served {
    running: Running,
    address: String,
    token: String,
}

impl Served {
    fn new(kw: &Sandbox, url: &str) -> Self {
        kw.write("keyward.schema.toml", &format!("[stores.desk]\nurl = '{url}'\n"));
        let mut command = kw.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let running = Running::of(command.env_remove("KEYWARD_STORE"));
        let started: Value = serde_json::from_str(&running.next_line()).unwrap();
        let address = text(&started["url"]).to_owned();
        let token = started["start_token"].as_str().unwrap_or_default().to_owned();
        Self { running, address, token }
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let host = self.address.trim_start_matches("http://").trim_end_matches('/');
        let headers = format!("Authorization: Bearer {}\r\n{headers}", self.token);
        let (status, body) = ask(host, &format!("{method} {path}"), &headers, body);
        (status, serde_json::from_str(&body).unwrap())
    }

    fn get(&self, path: &str) -> Value {
        let (status, told) = self.ask("GET", path, "", "");
        assert_eq!(status, 200, "{path}: {told}");
        told
    }

    /// Ends it: then what it has gathered about accesses is written.
    fn end(self) {
        self.running.terminate();
        assert_eq!(self.running.ended(), Some(0));
    }
}
