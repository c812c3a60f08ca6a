//! The databases that people already have: a store of each that nobody else uses. How one is made and removed is
//! written with the tests of its engine.

use std::sync::Arc;

use keyward_coordinated::Coordinated;
use keyward_engine::{BoxFuture, Clock, Engine};
use keyward_forge_kvs::Sidecars;
use keyward_memory::Memory;
use keyward_testkit::{DocumentsPlace, TestClock};
use tokio::sync::OnceCell;

#[path = "../../../engines/cloudflare-kv/tests/cloudflare_kv/server.rs"]
#[allow(dead_code, reason = "the engine's own tests use more of it")]
mod cloudflare_kv;
#[path = "../../../engines/couchdb/tests/couchdb/server.rs"]
#[allow(dead_code, reason = "the engine's own tests use more of it")]
mod couchdb;
#[path = "../../../engines/dynamodb/tests/dynamodb/server.rs"]
#[allow(dead_code, reason = "the engine's own tests use more of it")]
mod dynamodb;
#[path = "../../../engines/firestore/tests/firestore/emulator.rs"]
#[allow(dead_code, reason = "the engine's own tests use more of it")]
mod firestore;
#[path = "../../../engines/forge-kvs/tests/forge_kvs/installation.rs"]
#[allow(dead_code, reason = "the engine's own tests use more of it")]
mod forge_kvs;

use crate::Kind;

/// How late listings in a custom entity are, as the engine declares.
const LAG_MS: u64 = 60_000;

/// A store of a database, removed when it is dropped.
pub(crate) enum Database {
    CloudflareKv {
        namespace: Arc<cloudflare_kv::Namespace>,
        coordinator: Memory,
    },
    CouchDb(couchdb::Fresh),
    DynamoDb(OnceCell<dynamodb::Fresh>),
    Firestore(firestore::Fresh),
    ForgeKvs {
        installation: forge_kvs::Installation,
        coordinator: Memory,
    },
    /// Whether its listings and batches are as late as the engine declares.
    ForgeEntity {
        installation: forge_kvs::Installation,
        is_late: OnceCell<()>,
    },
}

impl Database {
    /// A store of a kind of database; `None` if the kind is something else.
    pub fn new(kind: Kind, clock: &TestClock) -> Option<Self> {
        let coordinator = || Memory::with(keyward_memory::Options::default(), clock.clone());
        Some(match kind {
            Kind::CloudflareKv => Self::CloudflareKv {
                namespace: Arc::new(cloudflare_kv::Namespace::late()),
                coordinator: coordinator(),
            },
            Kind::CouchDb => Self::CouchDb(couchdb::Fresh::new()),
            Kind::DynamoDb => Self::DynamoDb(OnceCell::new()),
            Kind::Firestore => Self::Firestore(firestore::Fresh::new()),
            Kind::ForgeKvs => Self::ForgeKvs {
                installation: forge_kvs::Installation::new(),
                coordinator: coordinator(),
            },
            Kind::ForgeEntity => Self::ForgeEntity {
                installation: forge_kvs::Installation::new(),
                is_late: OnceCell::new(),
            },
            Kind::Memory | Kind::Recoverable | Kind::Advisory => return None,
            Kind::Embedded | Kind::Postgres => return None,
        })
    }

    /// Opens the store, as another process would.
    pub async fn open(&self, clock: TestClock) -> Arc<dyn Engine> {
        match self {
            Self::CouchDb(fresh) => {
                let opened = keyward_couchdb::CouchDb::open_with(fresh.options(), clock);
                Arc::new(opened.await.expect("the store opens"))
            }
            Self::DynamoDb(fresh) => {
                let table = fresh.get_or_init(dynamodb::Fresh::store_table).await;
                let opened = keyward_dynamodb::DynamoDb::open_with(table.options(), clock);
                Arc::new(opened.await.expect("the store opens"))
            }
            Self::Firestore(fresh) => Arc::new(fresh.engine(clock).await),
            Self::CloudflareKv { namespace, coordinator } => {
                let options = namespace.options(cloudflare_kv::address());
                let values = namespace.engine(options, clock.clone()).await;
                coordinated(values, coordinator, clock).await
            }
            Self::ForgeKvs { installation, coordinator } => {
                let mut options = installation.options();
                options.sidecars = Sidecars::Needed;
                let values = forge_kvs::OnTestClock::open(installation, options, clock.clone());
                coordinated(values.await, coordinator, clock).await
            }
            Self::ForgeEntity { installation, is_late } => {
                let late = async || {
                    let lag = serde_json::json!({"lag": {"batch": LAG_MS, "query": LAG_MS}});
                    installation.control(lag).await;
                };
                is_late.get_or_init(late).await;
                let options = installation.entity_options();
                Arc::new(forge_kvs::OnTestClock::open(installation, options, clock).await)
            }
        }
    }

    /// Writes a value as another program does, which knows nothing of Keyward.
    pub async fn write_as_app(&self, name: &str, value: serde_json::Value, clock: &TestClock) {
        match self {
            Self::ForgeKvs { installation, .. } => {
                let now = serde_json::json!({"now": clock.now().as_millisecond()});
                installation.control(now).await;
                installation.write(name, value).await;
            }
            _ => panic!("only Forge has an app that writes"),
        }
    }
}

async fn coordinated(
    values: impl Engine,
    coordinator: &Memory,
    clock: TestClock,
) -> Arc<dyn Engine> {
    let options = keyward_coordinated::Options::default();
    let coordinator = Arc::new(coordinator.clone());
    let opened = Coordinated::open(Arc::new(values), coordinator, options, clock);
    Arc::new(opened.await.expect("the store opens"))
}

/// A database with the documents of another program, removed when it is dropped.
pub struct Documents(Database);

impl Documents {
    /// An empty database of a kind: CouchDB, DynamoDB or Firestore.
    ///
    /// # Panics
    ///
    /// If it is another kind.
    pub fn new(kind: Kind) -> Self {
        let clock = TestClock::new();
        match Database::new(kind, &clock) {
            Some(
                database @ (Database::CouchDb(_) | Database::DynamoDb(_) | Database::Firestore(_)),
            ) => Self(database),
            _ => panic!("{kind:?} has no documents of other programs"),
        }
    }

    /// An empty database of CouchDB that says it keeps three copies of each document, as a cluster does.
    pub fn couchdb_cluster() -> Self {
        Self(Database::CouchDb(couchdb::Fresh::named("-copies-3")))
    }
}

impl DocumentsPlace for Documents {
    fn open(&self) -> BoxFuture<'_, Arc<dyn keyward_engine::Documents>> {
        Box::pin(async move {
            let documents: Arc<dyn keyward_engine::Documents> = match &self.0 {
                Database::CouchDb(fresh) => Arc::new(fresh.documents().await),
                Database::DynamoDb(fresh) => {
                    let table = fresh.get_or_init(dynamodb::Fresh::documents_table).await;
                    let opened = keyward_dynamodb::DynamoDbDocuments::open(table.options());
                    Arc::new(opened.await.expect("the table opens"))
                }
                Database::Firestore(fresh) => Arc::new(fresh.documents().await),
                Database::CloudflareKv { .. }
                | Database::ForgeKvs { .. }
                | Database::ForgeEntity { .. } => unreachable!(),
            };
            documents
        })
    }
}
