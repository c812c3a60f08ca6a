//! A server for one test.

use keyward::Data;
use keyward::schema::Schema;
use keyward_server::{Config, Server, without_schema};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that runs as long as this is kept.
pub struct Running {
    pub url: String,
    /// What the first key is made with.
    pub start_token: Option<String>,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    /// One on an empty store in memory, called `main`.
    pub async fn new() -> Self {
        Self::on(&without_schema("memory:").unwrap()).await
    }

    /// One with what a schema declares; its store is in memory.
    pub async fn with_schema(schema: &str) -> Self {
        let schema = Schema::parse(schema, "schema.toml").unwrap();
        Self::on(&Data::new(schema)).await
    }

    pub async fn on(data: &Data) -> Self {
        Self::start(&configured(), data).await
    }

    pub async fn start(config: &Config, data: &Data) -> Self {
        let server = Server::bind(config, data).await.unwrap();
        let url = format!("http://{}", server.address());
        let start_token = server.start_token().map(str::to_owned);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { url, start_token, client: client(), stop: Some(stop), task }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    pub fn put(&self, path: &str, body: &str) -> RequestBuilder {
        self.sent(Method::PUT, path, body)
    }

    pub fn post(&self, path: &str, body: &str) -> RequestBuilder {
        self.sent(Method::POST, path, body)
    }

    pub fn sent(&self, method: Method, path: &str, body: &str) -> RequestBuilder {
        let request = self.request(method, path).header("content-type", "application/json");
        request.body(body.to_owned())
    }

    /// Stops it as a signal would, and waits for its end.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }
}

/// A client of servers. It can speak TLS, and wants to be told by whose arithmetic.
pub fn client() -> Client {
    // Whoever comes second finds it said already.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    Client::new()
}

/// A key that was made for a test.
pub struct Made {
    pub id: String,
    pub secret: String,
}

impl Running {
    /// Makes the first key, which may do everything; from then on the server asks for one.
    pub async fn admin(&self) -> Made {
        let body = r#"{"name":"admin","scopes":["admin:*"]}"#;
        made(told(201, self.first_key(body)).await)
    }

    /// Asks for the first key, with the start token.
    pub fn first_key(&self, body: &str) -> RequestBuilder {
        let token = self.start_token.as_deref().expect("there was no key at the start");
        self.post("/v1/keys", body).bearer_auth(token)
    }

    /// Makes a key.
    pub async fn key(&self, admin: &Made, body: &Value) -> Made {
        let create = self.post("/v1/keys", &body.to_string()).bearer_auth(&admin.secret);
        made(told(201, create).await)
    }
}

fn made(answer: Value) -> Made {
    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
    Made { id: text("id"), secret: text("secret") }
}

/// A free port of this machine.
pub fn configured() -> Config {
    Config { listen: "127.0.0.1:0".parse().unwrap(), ..Config::default() }
}

/// The body of an answer that must have this status.
pub async fn told(status: u16, request: RequestBuilder) -> Value {
    let answer = answered(status, request).await;
    let text = answer.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// An answer that must have this status.
pub async fn answered(status: u16, request: RequestBuilder) -> Response {
    let answer = request.send().await.unwrap();
    if answer.status() != StatusCode::from_u16(status).unwrap() {
        panic!("{}: {}", answer.status(), answer.text().await.unwrap());
    }
    answer
}

/// That a request is refused with a status and a code, as a problem that says what to do.
pub async fn refused(status: u16, code: &str, request: RequestBuilder) -> Value {
    let answer = answered(status, request).await;
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], code, "{problem}");
    assert_eq!(problem["status"], status);
    assert_eq!(problem["type"], format!("/problems/{code}"));
    assert!(!problem["detail"].as_str().unwrap().is_empty(), "{problem}");
    assert!(!problem["hint"].as_str().unwrap().is_empty(), "{problem}");
    problem
}

/// The version that an answer gives.
pub fn etag(answer: &Response) -> String {
    answer.headers()["etag"].to_str().unwrap().to_owned()
}
