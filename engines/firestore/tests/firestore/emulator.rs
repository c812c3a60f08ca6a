//! Where the emulator is, and projects in it that nobody else uses.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use keyward_engine::{Clock, Json, Put, Store};
use keyward_firestore::{Firestore, FirestoreDocuments, Options};
use keyward_http::header::{AUTHORIZATION, HeaderValue};
use keyward_http::{Client, Effect, Method, Request, StatusCode};
use keyward_key::Key;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// The emulator's address. Every test asks for it; where there is none, the test ends here.
pub fn address() -> SocketAddr {
    let address = std::env::var("KEYWARD_TEST_FIRESTORE").expect(
        "start the servers with ./test, or with testing/services/run --only firestore COMMAND",
    );
    if address == "absent" {
        let _ = writeln!(std::io::stderr(), "NOT TESTED: there is no Firestore emulator here");
        std::process::exit(0);
    }
    address.parse().expect("KEYWARD_TEST_FIRESTORE is HOST:PORT")
}

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
}

/// Runs a test that needs a store of its own.
pub fn with_fresh<F: Future<Output = ()>>(test: impl FnOnce(Fresh) -> F) {
    let fresh = Fresh::new();
    runtime().block_on(test(fresh));
}

/// A project that no other test uses. Dropped, everything in it is removed.
pub struct Fresh {
    pub project: String,
    pub address: SocketAddr,
}

impl Fresh {
    pub fn new() -> Self {
        Self { project: format!("test-{:016x}", fastrand::u64(..)), address: address() }
    }

    pub fn options(&self) -> Options {
        self.options_through(self.address)
    }

    pub fn options_through(&self, address: SocketAddr) -> Options {
        // Slow machines are no reason to fail, nor are many tests at once.
        let patience = Duration::from_secs(60);
        Options {
            project: self.project.clone(),
            database: "(default)".to_owned(),
            collection: vec!["entries".to_owned()],
            emulator: Some(address.to_string()),
            http: keyward_http::Options {
                connect_timeout: patience,
                answer_timeout: patience,
                retry_budget: patience,
                ..keyward_http::Options::default()
            },
        }
    }

    pub async fn engine(&self, clock: impl Clock) -> Firestore {
        Firestore::open_with(self.options(), clock).await.unwrap()
    }

    pub async fn store(&self, clock: impl Clock) -> Store {
        Store::new(self.engine(clock).await)
    }

    pub async fn store_through(&self, address: SocketAddr, clock: impl Clock) -> Store {
        Store::new(Firestore::open_with(self.options_through(address), clock).await.unwrap())
    }

    pub async fn documents(&self) -> FirestoreDocuments {
        FirestoreDocuments::open(self.options()).await.unwrap()
    }

    /// The full name of a document in the collection.
    pub fn name(&self, id: &str) -> String {
        format!("projects/{}/databases/(default)/documents/entries/{id}", self.project)
    }

    /// Sends a request as any other client of the database would.
    pub async fn call(&self, method: &str, body: Value) -> Result<Value, Value> {
        let path = format!("v1/projects/{}/databases/(default)/documents:{method}", self.project);
        self.send(Method::POST, &path, body).await
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, Value> {
        let client = Client::new("the emulator", self.options().http, false).unwrap();
        let url = format!("http://{}/{path}", self.address).parse().unwrap();
        let request = Request::new(method, url, Effect::WritesOnce)
            .header(AUTHORIZATION, HeaderValue::from_static("Bearer owner"))
            .json(body.to_string());
        let response = client.send(request).await.unwrap();
        let body = serde_json::from_slice(&response.body).unwrap();
        if response.status == StatusCode::OK { Ok(body) } else { Err(body) }
    }

    /// Writes a document with these fields, in Firestore's own JSON.
    pub async fn set(&self, id: &str, fields: Value) {
        let write = json!({ "update": { "name": self.name(id), "fields": fields } });
        self.call("commit", json!({ "writes": [write] })).await.unwrap();
    }

    /// The fields of a document, in Firestore's own JSON.
    pub async fn fields(&self, id: &str) -> Option<Value> {
        let answer = self.call("batchGet", json!({ "documents": [self.name(id)] })).await.unwrap();
        let found = answer[0].get("found")?;
        Some(found.get("fields").cloned().unwrap_or_else(|| json!({})))
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let path = format!("emulator/v1/projects/{}/databases/(default)/documents", self.project);
        let fresh = Self { project: self.project.clone(), address: self.address };
        // On a thread of its own: the test's may be inside a runtime, which must not be blocked.
        let removing = std::thread::spawn(move || {
            let fresh = std::mem::ManuallyDrop::new(fresh);
            // What a cut connection left behind may still hold a lock; the emulator's memory goes with it.
            let _ = runtime().block_on(fresh.send(Method::DELETE, &path, json!({})));
        });
        if removing.join().is_err() && !std::thread::panicking() {
            panic!("what the test left could not be removed");
        }
    }
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn json_of(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

pub fn put(text: &str) -> Put {
    Put::new(json_of(text))
}
