//! Where the tests' server is, and stores on it that nobody else uses.

use std::time::Duration;

use keyward_engine::{Commit, Json, Put, Store};
use keyward_key::Key;
use keyward_postgres::{Options, Postgres};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Config, NoTls};

/// The server's address, without a store.
pub fn url() -> String {
    std::env::var("KEYWARD_TEST_POSTGRES")
        .expect("start the servers with ./test, or set KEYWARD_TEST_POSTGRES")
}

/// The server's address, as an engine takes it.
pub fn address() -> String {
    Options::from_url(url().parse().unwrap()).unwrap().0
}

pub fn config() -> Config {
    address().parse().unwrap()
}

/// A connection that goes around the engine.
pub async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
}

/// A name that no other test uses: by chance, since the numbers of processes come round again.
pub fn unused_name() -> String {
    format!("test {:032x}", fastrand::u128(..))
}

/// The name of a store that no other test uses. Dropped, everything in the store is removed.
pub struct Fresh {
    pub name: String,
    server: String,
}

impl Fresh {
    pub fn new() -> Self {
        Self::at(address())
    }

    pub fn at(server: String) -> Self {
        Self { name: unused_name(), server }
    }

    pub fn options(&self) -> Options {
        // Slow machines are no reason to fail, nor are many tests at once.
        let patience = Duration::from_secs(60);
        Options {
            store: self.name.clone(),
            pool_max: 8,
            connect_timeout: patience,
            statement_timeout: patience,
            ..Options::default()
        }
    }

    pub fn address(&self) -> &str {
        &self.server
    }

    pub async fn engine(&self) -> Postgres {
        Postgres::open(&self.server, self.options()).await.unwrap()
    }

    pub async fn store(&self) -> Store {
        Store::new(self.engine().await)
    }

    pub async fn with(&self, change: impl FnOnce(&mut Options)) -> Store {
        let mut options = self.options();
        change(&mut options);
        Store::new(Postgres::open(&self.server, options).await.unwrap())
    }

    /// The store's number.
    pub async fn number(&self, client: &Client) -> i32 {
        let number = "SELECT id FROM keyward.stores WHERE name = $1";
        client.query_one(number, &[&self.name]).await.unwrap().get(0)
    }

    /// Waits until a commit to the store waits for a lock, and gives the server's process for it.
    pub async fn waiting(&self, client: &Client) -> i32 {
        let number = self.number(client).await;
        loop {
            match client.query(WAITING, &[&number]).await.unwrap().first() {
                Some(row) => return row.get(0),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

/// Those who wait for a lock in a transaction of a store.
const WAITING: &str = "SELECT l.pid FROM pg_locks l
    JOIN pg_stat_activity a ON a.pid = l.pid AND a.wait_event_type = 'Lock'
    WHERE l.locktype = 'advisory' AND l.granted AND l.objid::bigint = $1::int";

impl Drop for Fresh {
    fn drop(&mut self) {
        let (name, server) = (self.name.clone(), self.server.clone());
        // On a thread of its own: the test's may be inside a runtime, which must not be blocked.
        let removing = std::thread::spawn(move || {
            runtime().block_on(async {
                let client = connect(&server.parse().unwrap()).await;
                // Not before what is under way has ended: nobody may be waiting for it any more.
                let remove = format!(
                    "BEGIN;
                    SELECT pg_advisory_xact_lock(1801812343, id)
                        FROM keyward.stores WHERE name = '{name}';
                    DELETE FROM keyward.entries WHERE store =
                        (SELECT id FROM keyward.stores WHERE name = '{name}');
                    DELETE FROM keyward.log WHERE store =
                        (SELECT id FROM keyward.stores WHERE name = '{name}');
                    DELETE FROM keyward.stores WHERE name = '{name}';
                    COMMIT"
                );
                client.batch_execute(&remove).await.unwrap();
            });
        });
        if removing.join().is_err() && !std::thread::panicking() {
            panic!("what the test left could not be removed");
        }
    }
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn put(text: &str) -> Put {
    Put::new(Json::parse(text.to_owned()).unwrap())
}

pub fn putting(text: &str, value: &str) -> Commit {
    Commit::new().put(key(text), put(value))
}
