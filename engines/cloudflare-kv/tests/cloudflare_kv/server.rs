//! The test server's namespaces, and engines on them that go by a test's clock.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyward_cloudflare_kv::{CloudflareKv, Options, Token};
use keyward_engine::{
    BoxFuture, Capabilities, Clock, Commit, Engine, Entry, Outcome, Page, Result, Scan, Stats,
};
use keyward_key::Key;
use keyward_testkit::TestClock;

pub const TOKEN: &str = "keyward-test-token";
const ACCOUNT: &str = "test";
/// How late the server's reads are: as the engine says.
pub const LAG: Duration = Duration::from_secs(60);

fn api() -> String {
    std::env::var("KEYWARD_TEST_CLOUDFLARE_KV").expect(
        "KEYWARD_TEST_CLOUDFLARE_KV is not set; start the servers with ./test, or with \
         testing/services/run --only cloudflare_kv cargo nextest run …",
    )
}

/// The server's address.
pub fn address() -> SocketAddr {
    let api = api();
    let host = api.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    host.and_then(|host| host.parse().ok()).expect("the base of the API is http://IP:PORT/…")
}

/// What the server answers to a plain request, as any program sends it.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn result(&self) -> serde_json::Value {
        let answer: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(answer["success"], true, "{answer}");
        answer["result"].clone()
    }
}

fn request(method: &str, path: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address()).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let body = answer.split_off(end);
    let head = String::from_utf8(answer).unwrap();
    Answer { status: head[9..12].parse().unwrap(), body }
}

/// A namespace of its own for one test, gone with it.
#[derive(Debug)]
pub struct Namespace {
    pub id: String,
    /// The last moment that the server knows, in milliseconds. Locked until it knows: nobody may read
    /// by an older clock meanwhile.
    told: Mutex<i64>,
}

impl Namespace {
    /// A namespace whose reads are late.
    pub fn late() -> Self {
        let namespace = Self::prompt();
        namespace.control(serde_json::json!({ "lag": LAG.as_millis() as u64 }));
        namespace
    }

    /// A namespace that shows every write at once.
    pub fn prompt() -> Self {
        let path = format!("/client/v4/accounts/{ACCOUNT}/storage/kv/namespaces");
        let made = request("POST", &path, br#"{"title":"a test's"}"#).result();
        let namespace = Self { id: made["id"].as_str().unwrap().to_owned(), told: Mutex::new(0) };
        namespace.tell(&TestClock::new());
        namespace
    }

    /// Sets how the server behaves for this namespace.
    pub fn control(&self, settings: serde_json::Value) {
        let path = format!("/control/namespaces/{}", self.id);
        assert_eq!(request("PUT", &path, settings.to_string().as_bytes()).status, 200);
    }

    /// Tells the server a test's time.
    pub fn tell(&self, clock: &TestClock) {
        let now = clock.now().as_millisecond();
        let mut told = self.told.lock().unwrap();
        if *told < now {
            self.control(serde_json::json!({ "now": now }));
            *told = now;
        }
    }

    /// A plain request about this namespace, such as a Worker's or a script's.
    pub fn plain(&self, method: &str, path: &str, body: impl AsRef<[u8]>) -> Answer {
        let namespace = format!("/client/v4/accounts/{ACCOUNT}/storage/kv/namespaces/{}", self.id);
        request(method, &format!("{namespace}{path}"), body.as_ref())
    }

    /// Writes a value as another program does.
    pub fn write(&self, name: &str, value: impl AsRef<[u8]>) {
        let answer = self.plain("PUT", &format!("/values/{name}"), value);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// The value that another program reads.
    pub fn value(&self, name: &str) -> Option<String> {
        let answer = self.plain("GET", &format!("/values/{name}"), "");
        (answer.status == 200).then(|| answer.text())
    }

    /// All names, as another program lists them.
    pub fn names(&self) -> Vec<String> {
        let listed = self.plain("GET", "/keys", "").result();
        let names = listed.as_array().unwrap().iter();
        names.map(|key| key["name"].as_str().unwrap().to_owned()).collect()
    }

    /// How an engine reaches this namespace by way of an address.
    pub fn options(&self, through: SocketAddr) -> Options {
        Options {
            api: format!("http://{through}/client/v4"),
            token: Some(Token::new(TOKEN).unwrap()),
            ..Options::new(ACCOUNT, &self.id)
        }
    }

    /// An engine whose server goes by the same clock.
    pub async fn engine(self: &Arc<Self>, options: Options, clock: TestClock) -> OnTime {
        self.tell(&clock);
        let engine = CloudflareKv::open_with(options, clock.clone()).await.unwrap();
        OnTime { engine, clock, namespace: self.clone() }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.plain("DELETE", "", "");
        }
    }
}

/// The engine, with a server that is told the test's time before each request.
#[derive(Debug)]
pub struct OnTime {
    engine: CloudflareKv,
    clock: TestClock,
    namespace: Arc<Namespace>,
}

impl Engine for OnTime {
    fn capabilities(&self) -> &Capabilities {
        self.engine.capabilities()
    }

    fn store_id(&self) -> Option<String> {
        self.engine.store_id()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.namespace.tell(&self.clock);
        self.engine.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.namespace.tell(&self.clock);
        self.engine.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        self.namespace.tell(&self.clock);
        self.engine.commit(commit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.namespace.tell(&self.clock);
        self.engine.stats()
    }
}
