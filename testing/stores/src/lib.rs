//! Empty stores on every engine, for the suites of services and systems.
//!
//! A suite is written once, as functions that take a [`Place`], and [`on_every_engine!`] makes a
//! named test of each function on each engine:
//!
//! ```
//! use keyward_stores::{Place, on_every_engine};
//!
//! on_every_engine!(an_empty_store_has_nothing);
//!
//! async fn an_empty_store_has_nothing(place: Place) {
//!     let store = place.store().await;
//!     let page = store.scan(&keyward_engine::Scan::new(keyward_key::KeyRange::all())).await;
//!     assert!(page.is_ok_and(|page| page.rows.is_empty()));
//! }
//! # fn main() {}
//! ```
//!
//! [`on_databases!`] does the same for tests that show what matters most on the databases that people already have.
//!
//! Tests on a server are in a module of its name, such as `postgres`: by this name `./test --fast` leaves them out.
//! They read the server's address from the environment, such as `KEYWARD_TEST_POSTGRES`, and fail where there is none.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod databases;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use keyward_embedded::Embedded;
use keyward_engine::{Store, Tier};
use keyward_memory::Memory;
use keyward_postgres::Postgres;
use keyward_testkit::TestClock;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

pub use databases::Documents;

use databases::Database;

/// An engine that suites run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The memory engine, as it is.
    Memory,
    /// The memory engine with compare-and-swap of single keys only.
    Recoverable,
    /// The memory engine where the last writer wins.
    Advisory,
    /// The embedded engine, in a directory of its own.
    Embedded,
    /// PostgreSQL, in a store of its own.
    Postgres,
    /// Workers KV with late reads, and a coordinator in memory.
    CloudflareKv,
    /// CouchDB, in a database of its own.
    CouchDb,
    /// DynamoDB, in a table of its own.
    DynamoDb,
    /// Firestore, in a project of its own.
    Firestore,
    /// Forge's key-value store, and a coordinator in memory.
    ForgeKvs,
    /// A custom entity of Forge: single keys are compared and read as they are, and listings are late.
    ForgeEntity,
}

/// A place where one store is: empty at first, removed in the end. Opened again, it has what was
/// written.
#[derive(Debug)]
pub struct Place {
    kind: Kind,
    clock: TestClock,
    at: At,
}

enum At {
    Memory(Memory),
    Directory(TempDir),
    Server { address: String, store: String },
    Database(Database),
}

impl std::fmt::Debug for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory(_) => f.write_str("memory"),
            Self::Directory(directory) => write!(f, "{}", directory.path().display()),
            Self::Server { store, .. } => f.write_str(store),
            Self::Database(_) => f.write_str("a database"),
        }
    }
}

impl Place {
    /// A new place.
    pub fn new(kind: Kind) -> Self {
        let clock = TestClock::new();
        let memory =
            |tier| At::Memory(Memory::with(keyward_memory::Options::tier(tier), clock.clone()));
        let at = match kind {
            Kind::Memory => memory(Tier::Atomic),
            Kind::Recoverable => memory(Tier::Recoverable),
            Kind::Advisory => memory(Tier::Advisory),
            Kind::Embedded => At::Directory(tempfile::tempdir().expect("a temporary directory")),
            Kind::Postgres => server(),
            Kind::CloudflareKv
            | Kind::CouchDb
            | Kind::DynamoDb
            | Kind::Firestore
            | Kind::ForgeKvs
            | Kind::ForgeEntity => {
                At::Database(Database::new(kind, &clock).expect("a kind of database"))
            }
        };
        Self { kind, clock, at }
    }

    /// Its engine.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The clock of its stores, except on PostgreSQL, which goes by its own.
    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    /// Writes a value as the app does that a Forge store belongs to.
    ///
    /// # Panics
    ///
    /// If the engine is another one.
    pub async fn write_as_app(&self, name: &str, value: serde_json::Value) {
        match &self.at {
            At::Database(database) => database.write_as_app(name, value, &self.clock).await,
            _ => panic!("only Forge has an app that writes"),
        }
    }

    /// Opens the store: each time as another process would, except in memory.
    pub async fn store(&self) -> Store {
        match &self.at {
            At::Memory(memory) => Store::new(memory.clone()),
            At::Directory(directory) => {
                let options = keyward_embedded::Options::default();
                let opened = Embedded::open_with(directory.path(), options, self.clock.clone());
                Store::new(opened.expect("the store opens"))
            }
            At::Server { address, store } => {
                // Slow machines are no reason to fail, nor are many tests at once.
                let patience = Duration::from_secs(60);
                let options = keyward_postgres::Options {
                    store: store.clone(),
                    pool_max: 8,
                    connect_timeout: patience,
                    statement_timeout: patience,
                    ..keyward_postgres::Options::default()
                };
                Store::new(Postgres::open(address, options).await.expect("the store opens"))
            }
            At::Database(database) => Store::from_arc(database.open(self.clock.clone()).await),
        }
    }
}

/// Opens the embedded store in a directory, by the machine's clock: for tests of several processes.
pub fn embedded(directory: &Path) -> Store {
    let opened = Embedded::open(directory, keyward_embedded::Options::default());
    Store::new(opened.expect("the store opens"))
}

fn server() -> At {
    let url = std::env::var("KEYWARD_TEST_POSTGRES")
        .expect("start the servers with ./test, or set KEYWARD_TEST_POSTGRES");
    let url = url.parse().expect("KEYWARD_TEST_POSTGRES is the URL of a database");
    let (address, _) = keyward_postgres::Options::from_url(url).expect("the URL is understood");
    // By chance, since the numbers of processes come round again within one run of the tests.
    At::Server { address, store: format!("suite {:032x}", fastrand::u128(..)) }
}

/// Runs one test of a suite in a place of its own.
pub fn run<F: Future<Output = ()>>(kind: Kind, test: impl FnOnce(Place) -> F) {
    runtime().block_on(test(Place::new(kind)));
}

fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime")
}

/// Makes a named test of each function, on each engine with every capability: in memory, embedded,
/// and on PostgreSQL. A function takes a [`Place`].
#[macro_export]
macro_rules! on_every_engine {
    ($($test:ident),+ $(,)?) => {
        $crate::on_engines!(memory: Memory, embedded: Embedded, postgres: Postgres; $($test),+);
    };
}

/// Makes a named test of each function, on the databases that people already have and that can commit several keys.
#[macro_export]
macro_rules! on_databases {
    ($($test:ident),+ $(,)?) => {
        $crate::on_engines!(
            cloudflare_kv: CloudflareKv, dynamodb: DynamoDb, firestore: Firestore, forge_kvs: ForgeKvs;
            $($test),+
        );
    };
}

/// Makes a named test of each function, on the engines that are named.
#[macro_export]
macro_rules! on_engines {
    ($module:ident: $kind:ident; $($test:ident),+ $(,)?) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    $crate::run($crate::Kind::$kind, super::$test);
                }
            )+
        }
    };
    ($module:ident: $kind:ident, $($modules:ident: $kinds:ident),+; $($test:ident),+ $(,)?) => {
        $crate::on_engines!($module: $kind; $($test),+);
        $crate::on_engines!($($modules: $kinds),+; $($test),+);
    };
}
