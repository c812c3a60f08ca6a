//! A client of the newest revision, one of older ones, and how their messages look.

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::fixture::{Running, answered};

pub const NEWEST: &str = "2026-07-28";

/// A client without a session: every request says all there is to say.
pub struct Agent<'s> {
    server: &'s Running,
    key: Option<String>,
    pub name: String,
    pub capabilities: Value,
}

impl<'s> Agent<'s> {
    pub fn new(server: &'s Running) -> Self {
        Self { server, key: None, name: "planner".to_owned(), capabilities: json!({}) }
    }

    /// One with a credential.
    pub fn with(server: &'s Running, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..Self::new(server) }
    }

    /// One whose user can be asked.
    pub fn that_asks(server: &'s Running) -> Self {
        Self { capabilities: json!({ "elicitation": {} }), ..Self::new(server) }
    }

    /// A request, as it goes over the wire.
    pub fn request(&self, method: &str, mut params: Value) -> RequestBuilder {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientInfo": { "name": self.name, "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        match params["_meta"].as_object_mut() {
            Some(given) => given.extend(meta.as_object().unwrap().clone()),
            None => params["_meta"] = meta,
        }
        let named = params["name"].as_str().or_else(|| params["uri"].as_str());
        let named = named.unwrap_or_default().to_owned();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = posted(self.server, &body)
            .header("mcp-protocol-version", NEWEST)
            .header("mcp-method", method);
        if !named.is_empty() {
            request = request.header("mcp-name", named);
        }
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// The last message of an answer.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params).send().await.unwrap();
        messages(answer).await.pop().unwrap()
    }

    /// The result of a request that must have one.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The error of a request that must have one.
    pub async fn error(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer["result"].is_null(), "{method}: {answer}");
        answer["error"].clone()
    }

    pub async fn tools(&self) -> Vec<Value> {
        let listed = self.result("tools/list", json!({})).await;
        listed["tools"].as_array().unwrap().clone()
    }

    pub async fn tool_names(&self) -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        self.tools().await.iter().map(name).collect()
    }

    /// The whole result of a tool.
    pub async fn called(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// What a tool that must work answers.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.called(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let said: Value = serde_json::from_str(text).unwrap();
        assert_eq!(said, result["structuredContent"], "{tool}");
        said
    }

    /// What a tool that must not work says.
    pub async fn refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.called(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(result["structuredContent"].is_null(), "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

fn posted(server: &Running, body: &Value) -> RequestBuilder {
    server.post("/mcp", &body.to_string()).header("accept", "application/json, text/event-stream")
}

/// A client with a session, as there were before.
pub struct Session<'s> {
    server: &'s Running,
    key: Option<String>,
    pub id: String,
    version: String,
    /// What the server said of itself.
    pub welcome: Value,
}

impl<'s> Session<'s> {
    pub async fn begin(server: &'s Running, version: &str, key: Option<&str>) -> Self {
        Self::begin_as(server, version, key, json!({})).await
    }

    pub async fn begin_as(
        server: &'s Running,
        version: &str,
        key: Option<&str>,
        capabilities: Value,
    ) -> Self {
        let answer = answered(200, initialize(server, version, key, &capabilities)).await;
        let id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let welcome = messages(answer).await.pop().unwrap()["result"].clone();
        let version = welcome["protocolVersion"].as_str().unwrap().to_owned();
        let key = key.map(str::to_owned);
        let session = Self { server, key, id, version, welcome };
        let began = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        answered(202, session.request(&began)).await;
        session
    }

    /// A message of the session.
    pub fn request(&self, body: &Value) -> RequestBuilder {
        self.within(posted(self.server, body))
    }

    /// A request that belongs to the session.
    pub fn within(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", &self.version);
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// What the server tells of its own accord.
    pub async fn listen(&self) -> Events {
        let stream = self.within(self.server.get("/mcp").header("accept", "text/event-stream"));
        Events::new(answered(200, stream).await)
    }

    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let answer = answered(200, self.request(&body)).await;
        messages(answer).await.pop().unwrap()
    }
}

pub fn initialize(
    server: &Running,
    version: &str,
    key: Option<&str>,
    capabilities: &Value,
) -> RequestBuilder {
    let params = json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": { "name": "old", "version": "1" },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let request = posted(server, &body);
    match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    }
}

/// All messages of an answer that ends, as JSON or as events.
pub async fn messages(answer: Response) -> Vec<Value> {
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    let text = answer.text().await.unwrap();
    if kind.starts_with("text/event-stream") {
        return text.lines().filter_map(message).collect();
    }
    vec![serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text:?}: {error}"))]
}

fn message(line: &str) -> Option<Value> {
    let data = line.strip_prefix("data:")?.trim();
    (!data.is_empty()).then(|| serde_json::from_str(data).unwrap())
}

/// Messages that come while an answer is still under way.
pub struct Events {
    answer: Response,
    rest: String,
}

impl Events {
    pub fn new(answer: Response) -> Self {
        Self { answer, rest: String::new() }
    }

    /// The next message; none at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((line, rest)) = self.rest.split_once('\n') {
                let (message, rest) = (message(line), rest.to_owned());
                self.rest = rest;
                if message.is_some() {
                    return message;
                }
            }
            let chunk = self.answer.chunk().await.ok()??;
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}
