//! An installation of an app on the test server, which nobody else uses.

use std::net::SocketAddr;

use keyward_engine::{
    BoxFuture, Capabilities, Clock, Commit, Engine, Entry, Outcome, Page, Put, Result, Scan, Stats,
    Store,
};
use keyward_forge_kvs::{ForgeKvs, Options, Token};
use keyward_http::{Client, Effect, Method, Request, Url};
use keyward_key::Key;
use keyward_testkit::TestClock;
use serde_json::json;
use tokio::sync::Mutex;

/// An installation of an app.
#[derive(Clone)]
pub struct Installation {
    name: String,
    base: Url,
    client: Client,
}

impl Installation {
    pub fn new() -> Self {
        let base = std::env::var("KEYWARD_TEST_FORGE_KVS").expect(
            "start the servers with ./test, or testing/services/run --only forge_kvs COMMAND",
        );
        let http = keyward_http::Options::default();
        Self {
            name: format!("test-{:016x}", fastrand::u64(..)),
            base: base.parse().unwrap(),
            client: Client::new("the test server", http, false).unwrap(),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.base.socket_addrs(|| None).unwrap()[0]
    }

    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    /// A token of the installation, as Forge Remote sends a new one with each invocation.
    pub fn token(&self, number: usize) -> String {
        format!("{}.{number}", self.name)
    }

    pub fn options(&self) -> Options {
        self.options_through(self.address())
    }

    /// Options of a store in the custom entity that the app declares.
    pub fn entity_options(&self) -> Options {
        let mut options = self.options();
        options.entity = Some("keyward".to_owned());
        options
    }

    /// Options that go by way of a proxy.
    pub fn options_through(&self, address: SocketAddr) -> Options {
        let url = format!("forge-kvs://test?api=http://{address}{}", self.base.path());
        let options = Options::from_url(url.parse().unwrap()).unwrap();
        options.with_tokens(Token::new(&self.token(1)).unwrap())
    }

    pub async fn open(&self) -> ForgeKvs {
        ForgeKvs::open(self.options()).await.unwrap()
    }

    pub async fn store(&self) -> Store {
        Store::new(self.open().await)
    }

    /// Sets what the server does for this installation.
    pub async fn control(&self, what: serde_json::Value) {
        let url = self.base.join(&format!("/control/{}", self.name)).unwrap();
        let request = Request::new(Method::POST, url, Effect::WritesOnce).json(what.to_string());
        assert!(self.client.send(request).await.unwrap().status.is_success());
    }

    /// The rows of some names, as Forge itself has them.
    pub async fn stored(&self, names: &[&str]) -> Vec<Option<serde_json::Value>> {
        let mut values = Vec::new();
        for name in names {
            let (status, body) = self.call("get", json!({"key": name})).await;
            values.push((status == 200).then(|| body["value"].clone()));
        }
        values
    }

    /// Writes a row as an app does.
    pub async fn write(&self, name: &str, value: serde_json::Value) {
        let (status, body) = self.call("set", json!({"key": name, "value": value})).await;
        assert_eq!(status, 204, "{body}");
    }

    /// All names that the installation has.
    pub async fn names(&self) -> Vec<String> {
        let (_, body) = self.call("query", json!({"limit": 100})).await;
        assert_eq!(body.get("cursor"), None, "a test has few rows");
        let rows = body["data"].as_array().unwrap().iter();
        rows.map(|row| row["key"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn call(&self, path: &str, body: serde_json::Value) -> (u16, serde_json::Value) {
        let url = format!("{}/v1/{path}", self.base.as_str().trim_end_matches('/'));
        let authorization = format!("Bearer {}", self.token(1)).parse().unwrap();
        let request = Request::new(Method::POST, url.parse().unwrap(), Effect::WritesOnce)
            .json(body.to_string())
            .header(keyward_http::header::AUTHORIZATION, authorization);
        let response = self.client.send(request).await.unwrap();
        let body = serde_json::from_slice(&response.body).unwrap_or_default();
        (response.status.as_u16(), body)
    }
}

/// An engine whose server goes by the test's clock.
pub struct OnTestClock {
    engine: ForgeKvs,
    installation: Installation,
    clock: TestClock,
    told: Mutex<Option<jiff::Timestamp>>,
}

impl OnTestClock {
    pub async fn open(installation: &Installation, options: Options, clock: TestClock) -> Self {
        let engine = ForgeKvs::open_with(options, clock.clone()).await.unwrap();
        Self { engine, installation: installation.clone(), clock, told: Mutex::default() }
    }

    async fn tell(&self) {
        // Held until the server has the time: nobody may go on by another one.
        let mut told = self.told.lock().await;
        let now = self.clock.now();
        if *told != Some(now) {
            self.installation.control(json!({"now": now.as_millisecond()})).await;
            *told = Some(now);
        }
    }
}

impl Engine for OnTestClock {
    fn capabilities(&self) -> &Capabilities {
        self.engine.capabilities()
    }

    fn store_id(&self) -> Option<String> {
        self.engine.store_id()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async move {
            self.tell().await;
            self.engine.get_many(keys).await
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            self.tell().await;
            self.engine.scan(scan).await
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            self.tell().await;
            self.engine.commit(commit).await
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async move {
            self.tell().await;
            self.engine.stats().await
        })
    }
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn put(text: &str) -> Put {
    Put::new(keyward_engine::Json::parse(text.to_owned()).unwrap())
}
