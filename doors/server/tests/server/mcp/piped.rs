//! One client over standard input and output.

use std::collections::HashMap;
use std::time::Duration;

use keyward::Data;
use keyward_server::{Config, Limits, serve_mcp, without_schema};
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
        let config = Config { limits, ..configured() };
        let (client, server) = duplex(PIPE_BYTES_MAX);
        let ((reads, writes), (output, input)) = (split(server), split(client));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            serve_mcp(&config, &data, reads, writes, stopped).await.unwrap();
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
