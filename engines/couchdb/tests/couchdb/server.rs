//! Where the tests' server is, and databases on it that nobody else uses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use keyward_couchdb::{CouchDb, CouchDbDocuments, Options};
use keyward_engine::{Json, Put, Store};
use keyward_key::Key;
use keyward_testkit::TestClock;
use serde_json::Value;

/// User, password and address of the server: `USER:PASSWORD@HOST:PORT`.
fn authority() -> String {
    let url = std::env::var("KEYWARD_TEST_COUCHDB")
        .expect("start the servers with ./test, or set KEYWARD_TEST_COUCHDB");
    url.strip_prefix("http://").expect("KEYWARD_TEST_COUCHDB begins with http://").to_owned()
}

/// The server's address.
pub fn address() -> SocketAddr {
    let authority = authority();
    let (_, address) = authority.rsplit_once('@').expect("KEYWARD_TEST_COUCHDB names a user");
    address.parse().expect("KEYWARD_TEST_COUCHDB has an IP address and a port")
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn put(text: &str) -> Put {
    Put::new(Json::parse(text.to_owned()).unwrap())
}

/// A database that no other test uses. It is created by whoever opens it, and deleted when it is dropped.
pub struct Fresh {
    pub name: String,
}

impl Fresh {
    pub fn new() -> Self {
        Self::named("")
    }

    /// One that is there already.
    pub fn created() -> Self {
        let fresh = Self::new();
        fresh.request("PUT", "", "");
        fresh
    }

    /// One whose name has an ending that the server goes by.
    pub fn named(ending: &str) -> Self {
        let mut bytes = [0; 12];
        getrandom::fill(&mut bytes).unwrap();
        let name = data_encoding::HEXLOWER.encode(&bytes);
        Self { name: format!("test-{name}{ending}") }
    }

    /// How the database is opened by way of an address: a proxy's, or the server's own.
    pub fn options_through(&self, address: SocketAddr) -> Options {
        let authority = authority();
        let (login, _) = authority.rsplit_once('@').unwrap();
        let url = format!("couchdb://{login}@{address}/{}", self.name);
        Options::from_url(url.parse().unwrap()).unwrap()
    }

    pub fn options(&self) -> Options {
        let mut options = self.options_through(address());
        // Slow machines are no reason to fail, nor are many tests at once.
        options.http.answer_timeout = Duration::from_secs(240);
        options.http.retry_budget = Duration::from_secs(60);
        options
    }

    /// For tests that lose answers.
    pub fn impatient(&self, address: SocketAddr) -> Options {
        let mut options = self.options_through(address);
        options.http.answer_timeout = Duration::from_secs(1);
        options.http.retry_budget = Duration::from_secs(2);
        options
    }

    pub async fn store(&self) -> Store {
        self.store_by(TestClock::new()).await
    }

    pub async fn store_by(&self, clock: TestClock) -> Store {
        Store::new(CouchDb::open_with(self.options(), clock).await.unwrap())
    }

    /// The database by way of its documents. It is created.
    pub async fn documents(&self) -> CouchDbDocuments {
        self.request("PUT", "", "");
        CouchDbDocuments::open(self.options()).await.unwrap()
    }

    /// What another program does: a request to a path below the database.
    pub fn request(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let authority = authority();
        let (login, _) = authority.rsplit_once('@').unwrap();
        let login = login.replace("%40", "@").replace("%2F", "/");
        let login = data_encoding::BASE64.encode(login.as_bytes());
        let mut stream = TcpStream::connect(address()).unwrap();
        // Of the old kind, whose answers end with the connection.
        write!(
            stream,
            "{method} /{}{path} HTTP/1.0\r\nAuthorization: Basic {login}\r\nAccept: application/json\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.name,
            body.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body.trim()).unwrap())
    }

    /// What another program stores; gives the revision.
    pub fn write(&self, path: &str, body: &Value) -> String {
        let (status, answer) = self.request("PUT", path, &body.to_string());
        assert_eq!(status, 201, "{answer}");
        answer["rev"].as_str().unwrap().to_owned()
    }

    /// What another program reads.
    pub fn read(&self, path: &str) -> Value {
        let (status, answer) = self.request("GET", path, "");
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Several documents with revisions of their own, as replication brings them.
    pub fn replicate(&self, documents: &Value) {
        let body = serde_json::json!({"new_edits": false, "docs": documents});
        let (status, answer) = self.request("POST", "/_bulk_docs", &body.to_string());
        assert_eq!(status, 201, "{answer}");
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // A test that fails must not fail once more here.
        if !std::thread::panicking() {
            self.request("DELETE", "", "");
        }
    }
}
