//! One client over standard input and output.

use std::collections::HashMap;
use std::time::Duration;

use keyward::Data;
use keyward::schema::Schema;
use keyward_server::{Config, Limits, LocalUser, serve_mcp, without_schema};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
    split,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::fixture::configured;

const PIPE_BYTES_MAX: usize = 1 << 20;

/// A server at the other end of two pipes.
struct Piped {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// Answers that came before they were asked for, by their ids.
    early: HashMap<u64, Value>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
    asked: u64,
}

impl Piped {
    async fn start(limits: Limits, data: Data) -> Self {
        Self::start_for(LocalUser::default(), limits, data).await
    }

    /// One that is bound to a user.
    async fn start_for(user: LocalUser, limits: Limits, data: Data) -> Self {
        let config = Config { limits, ..configured() };
        let (client, server) = duplex(PIPE_BYTES_MAX);
        let ((reads, writes), (output, input)) = (split(server), split(client));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            serve_mcp(&config, &data, &user, reads, writes, stopped).await.unwrap();
        });
        let (output, stop) = (BufReader::new(output).lines(), Some(stop));
        let mut piped = Self { input, output, early: HashMap::new(), stop, serving, asked: 0 };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "tester", "version": "1" },
        });
        let greeted = piped.ask("initialize", params).await;
        assert_eq!(greeted["result"]["serverInfo"]["name"], "keyward");
        piped.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await;
        piped
    }

    async fn write(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).await.unwrap();
    }

    fn message(&mut self, method: &str, params: Value) -> (u64, String) {
        self.asked += 1;
        let (id, version) = (self.asked, "2.0");
        let message = json!({ "jsonrpc": version, "id": id, "method": method, "params": params });
        (id, message.to_string())
    }

    /// Sends a request, and gives its id.
    async fn send(&mut self, method: &str, params: Value) -> u64 {
        let (id, message) = self.message(method, params);
        self.write(&format!("{message}\n")).await;
        id
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The next message; none at the end.
    async fn next(&mut self) -> Option<Value> {
        let line = self.output.next_line().await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// The answer to a request.
    async fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.early.remove(&id) {
                return answer;
            }
            let message = self.next().await.unwrap();
            if let Some(id) = message["id"].as_u64() {
                self.early.insert(id, message);
            }
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// What a tool answers, as text, and whether it did not work.
    async fn said(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let id = self.call(tool, arguments).await;
        let result = self.answer(id).await["result"].take();
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        (text.to_owned(), result["isError"] == true)
    }

    /// Hangs up, and waits for the end.
    async fn end(mut self) {
        self.input.shutdown().await.unwrap();
        self.rest().await;
    }

    /// What is said until the end, which comes by itself.
    async fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        self.serving.await.unwrap();
        rest
    }
}

fn in_memory() -> Data {
    without_schema("memory:").unwrap()
}

#[tokio::test]
async fn what_is_looked_up_counts_among_what_is_under_way() {
    let limits = Limits { requests_max: 1, ..Limits::default() };
    let mut client = Piped::start(limits, in_memory()).await;
    let held = client.call("lock_acquire", json!({ "root": "page:7" })).await;
    assert_ne!(client.answer(held).await["result"]["isError"], true);
    let looks = [
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "keyward://schema" })),
        (
            "prompts/get",
            json!({ "name": "work_under_lock", "arguments": { "root": "a", "task": "b" } }),
        ),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/resource", "uri": "keyward://agents/namespaces/{namespace}" },
                "argument": { "name": "namespace", "value": "" },
            }),
        ),
    ];
    for (method, params) in &looks {
        let answer = client.ask(method, params.clone()).await;
        assert!(answer["result"].is_object(), "{method}: {answer}");
    }
    // It stands in line for the lock, as soon as it has begun.
    let waits = client.call("lock_acquire", json!({ "root": "page:7", "wait": 20 })).await;
    for (method, params) in looks {
        let mut refused = Value::Null;
        for _ in 0..1_000 {
            refused = client.ask(method, params.clone()).await;
            if refused["error"].is_object() {
                break;
            }
        }
        let said = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(said.contains("at capacity"), "{method}: {refused}");
    }
    client.stop.take().unwrap().send(()).unwrap();
    assert_eq!(client.answer(waits).await["result"]["isError"], true);
    assert!(client.rest().await.is_empty());
}

#[tokio::test]
async fn the_last_line_need_not_end() {
    let mut client = Piped::start(Limits::default(), in_memory()).await;
    let (id, message) = client.message("ping", json!({}));
    client.write(&message).await;
    client.input.shutdown().await.unwrap();
    let rest = client.rest().await;
    assert_eq!(rest, [json!({ "jsonrpc": "2.0", "id": id, "result": {} })]);
}

const CALLS: usize = 200;

/// A client that has many calls under way, the first of which is answered.
async fn busy(limits: Limits, url: &str) -> (Piped, Value) {
    let mut client = Piped::start(limits, without_schema(url).unwrap()).await;
    let mut calls = String::new();
    for n in 0..CALLS {
        let arguments = json!({ "key": format!("k{n:03}"), "value": n });
        let params = json!({ "name": "agent_set", "arguments": arguments });
        calls.push_str(&client.message("tools/call", params).1);
        calls.push('\n');
    }
    client.write(&calls).await;
    let first = client.next().await.unwrap();
    (client, first)
}

/// How many entries there are.
async fn kept(url: &str) -> usize {
    let mut client = Piped::start(Limits::default(), without_schema(url).unwrap()).await;
    let keys = client.call("agent_keys", json!({ "limit": 1_000 })).await;
    let keys = client.answer(keys).await;
    keys["result"]["structuredContent"]["keys"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_stop_waits_for_the_calls_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    let (mut client, first) = busy(Limits::default(), &url).await;
    client.stop.take().unwrap().send(()).unwrap();
    let mut answers = client.rest().await;
    answers.push(first);
    for answer in &answers {
        assert_eq!(answer["result"]["structuredContent"]["created"], true, "{answer}");
    }
    // What was not read any more was not done either.
    assert_eq!(kept(&url).await, answers.len());
}

#[tokio::test]
async fn a_call_that_a_stop_cannot_wait_for_says_that_its_outcome_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    let limits = Limits { drain_time_max: Duration::ZERO, ..Limits::default() };
    let (mut client, first) = busy(limits, &url).await;
    assert_ne!(first["result"]["isError"], true, "{first}");
    client.stop.take().unwrap().send(()).unwrap();
    let rest = client.rest().await;
    for answer in &rest {
        if answer["result"]["isError"] != false {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(text.starts_with("outcome-unknown"), "{answer}");
        }
    }
    // Whatever was done, somebody was told of.
    assert!(kept(&url).await <= rest.len() + 1);
}

/// Declares what is each user's own, what is shared, and what takes a role.
fn declared(folder: &std::path::Path) -> Data {
    let schema = format!(
        r#"
        [stores.app]
        url = "embedded:{}"
        [spaces.notes]
        key = "user:{{user}}:notes:{{note}}"
        ownership = "user"
        [spaces.places]
        key = "shared:places:{{place}}"
        ownership = "shared"
        [spaces.staff]
        key = "shared:staff:{{person}}"
        ownership = "shared"
        read_roles = ["hr"]
        "#,
        folder.join("data").display()
    );
    Data::new(Schema::parse(&schema, "schema.toml").unwrap())
}

fn user(name: &str) -> LocalUser {
    LocalUser { name: name.to_owned(), ..LocalUser::default() }
}

#[tokio::test]
async fn a_client_reaches_the_data_of_its_user_and_what_is_no_users() {
    let folder = tempfile::tempdir().unwrap();
    let data = declared(folder.path());
    let note = json!({ "space": "notes", "key": "user:ada:notes:n1" });
    let mut saved = note.clone();
    saved["value"] = json!("secret");
    let mut ada = Piped::start_for(user("ada"), Limits::default(), data.clone()).await;
    for (tool, arguments) in [
        ("record_save", saved.clone()),
        ("record_save", json!({ "space": "places", "key": "shared:places:p", "value": "shared" })),
        ("agent_set", json!({ "key": "k", "value": "secret" })),
        ("lock_acquire", json!({ "root": "page:7" })),
        ("lock_acquire", json!({ "root": "shared:page" })),
        ("job_list", json!({})),
    ] {
        let (said, failed) = ada.said(tool, arguments).await;
        assert!(!failed, "{tool}: {said}");
    }
    let (said, _) = ada.said("record_get", note.clone()).await;
    assert!(said.contains("secret"), "{said}");
    ada.end().await;

    // Nobody is named: it is the user local, who is nobody else.
    let mut local = Piped::start(Limits::default(), data).await;
    for (tool, arguments) in [
        ("record_get", note.clone()),
        ("record_save", saved),
        ("record_delete", note),
        ("record_delete", json!({ "space": "notes", "prefix": "user:ada:", "confirm": 1 })),
        ("record_list", json!({ "space": "notes", "prefix": "user:ada:" })),
        ("record_query", json!({ "space": "notes", "values": { "user": "ada" } })),
        ("agent_get", json!({ "key": "k", "user": "ada" })),
        ("agent_search", json!({ "user": "ada" })),
    ] {
        let (said, failed) = local.said(tool, arguments.clone()).await;
        assert!(failed && !said.contains("secret"), "{tool} {arguments}: {said}");
    }
    for (tool, arguments) in [
        ("record_list", json!({ "space": "notes" })),
        ("record_query", json!({ "space": "notes", "allow_scan": true })),
        ("agent_get", json!({ "key": "k" })),
        ("agent_search", json!({})),
        ("agent_namespaces", json!({})),
    ] {
        let (said, failed) = local.said(tool, arguments).await;
        let tells = said.contains("secret") || said.contains("ada") || said.contains("default");
        assert!(!failed && !tells, "{tool}: {said}");
    }
    let (said, failed) =
        local.said("record_get", json!({ "space": "places", "key": "shared:places:p" })).await;
    assert!(!failed && said.contains("shared"), "{said}");
    let (said, failed) = local.said("agent_set", json!({ "key": "k", "value": 1 })).await;
    assert!(!failed, "{said}");
    let (said, _) = local.said("agent_get", json!({ "key": "k" })).await;
    assert!(said.contains(r#""userId":"local""#), "{said}");
    let read = local.ask(
        "resources/read",
        json!({ "uri": "keyward://app/spaces/notes/records/user:ada:notes:n1" }),
    );
    assert!(read.await["error"].is_object());
}

#[tokio::test]
async fn a_user_of_this_machine_has_every_role_unless_some_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let data = declared(folder.path());
    let staff = json!({ "space": "staff", "key": "shared:staff:1" });
    for (roles, may) in
        [(None, true), (Some(vec!["hr".to_owned()]), true), (Some(vec!["it".to_owned()]), false)]
    {
        let user = LocalUser { roles: roles.clone(), ..user("ada") };
        let mut client = Piped::start_for(user, Limits::default(), data.clone()).await;
        let (said, failed) = client.said("record_get", staff.clone()).await;
        assert_eq!(!failed, may, "{roles:?}: {said}");
        client.end().await;
    }
}

#[tokio::test]
async fn a_message_that_is_not_taken_is_answered_with_its_id() {
    let mut client = Piped::start(Limits::default(), in_memory()).await;
    let large = "x".repeat(8 << 20);
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let call = |value: &str, id: &str| {
        format!(
            r#"{{"method":"tools/call","params":{{"name":"agent_set","arguments":{{"key":"k","value":{value}}}}},"jsonrpc":"2.0","id":{id}}}"#
        )
    };
    for message in [
        call(&format!("\"{large}\""), "900"),
        format!(r#"{{"jsonrpc":"2.0","id":900,"method":"{large}"}}"#),
        call(&deep, "900"),
        r#"{"jsonrpc":"1.0","id":900,"method":"ping"}"#.to_owned(),
    ] {
        client.write(&format!("{message}\n")).await;
        let beginning = &message[..message.len().min(100)];
        let answer = client.answer(900).await;
        assert_eq!(answer["error"]["code"], -32600, "{beginning}: {answer}");
    }
    // What has no id is refused without one, and the next call is answered.
    let notified = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{large}"}}"#);
    client.write(&format!("{notified}\n")).await;
    let (said, failed) = client.said("agent_get", json!({ "key": "k" })).await;
    assert_eq!((said.as_str(), failed), (r#"{"found":false}"#, false));
}

#[tokio::test]
async fn a_value_of_exactly_the_largest_size_is_kept() {
    let mut client = Piped::start(Limits::default(), in_memory()).await;
    let text = |bytes: usize| "x".repeat(bytes - 2);
    let set = |value: String| json!({ "key": "k", "value": value });
    assert!(!client.said("agent_set", set(text(1 << 20))).await.1);
    let (said, failed) = client.said("agent_set", set(text((1 << 20) + 1))).await;
    assert!(failed && said.starts_with("value-too-large"), "{said}");
}
