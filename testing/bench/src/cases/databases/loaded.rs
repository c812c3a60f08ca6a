//! The records in a database, for both sides of a case.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use keyward_engine::{BoxFuture, Json, Put, Store};
use keyward_key::Key;
use tokio::runtime::Runtime;

use super::{cloudflare_kv, couchdb, dynamodb, firestore, forge_kvs};
use crate::Result;
use crate::bench::fill;
use crate::measure::Side;
use crate::records;
use crate::server::Server;

/// Gets and puts records: the adapter, or a raw client of its database.
pub(super) trait Client: Send + Sync {
    /// The value of a record, if it is there.
    fn get(&self, record: usize) -> BoxFuture<'_, Result<Option<Bytes>>>;

    /// Puts the value of some record under the key of another.
    fn put(&self, record: usize, value: usize) -> BoxFuture<'_, Result<()>>;
}

/// A client that knows the database and nothing of Keyward but the layout of the records.
pub(super) trait RawClient: Client {
    /// Removes what the case made in the database.
    fn remove(&self) -> BoxFuture<'_, Result<()>>;
}

/// The keys and values that both sides have in hand: neither making nor parsing them is compared.
pub(super) struct Records {
    /// The key of each record.
    pub keys: Vec<Key>,
    /// The value that each is loaded with.
    pub values: Vec<Json>,
}

/// A new, empty store in a database, and a raw client of the same.
pub(super) type Opened = (Store, Arc<dyn RawClient>);

/// The records in a database of their own, removed when this is dropped.
pub struct Loaded {
    /// Carries every connection.
    pub runtime: Runtime,
    records: Arc<Records>,
    adapter: Arc<dyn Client>,
    raw: Arc<dyn RawClient>,
    server: Server,
}

impl Loaded {
    /// How many there are.
    pub const RECORDS: usize = 1_000;

    /// Loads the records by the adapter.
    pub fn load(server: Server) -> Result<Self> {
        let runtime = Runtime::new()?;
        let numbers = 0..Self::RECORDS as u64;
        let records = Arc::new(Records {
            keys: numbers.clone().map(records::key).collect::<Result<_>>()?,
            values: numbers.map(records::value).collect::<Result<_>>()?,
        });
        let (store, raw) = runtime.block_on(open(server, &records))?;
        let adapter = Arc::new(Adapter { store: store.clone(), records: records.clone() });
        let loaded = Self { runtime, records, adapter, raw, server };
        fill(&loaded.runtime, &store, Self::RECORDS as u64)?;
        loaded.runtime.block_on(loaded.compare())?;
        Ok(loaded)
    }

    /// Who works on a side.
    pub(super) fn client(&self, side: Side) -> Arc<dyn Client> {
        match side {
            Side::Measured => self.adapter.clone(),
            Side::Reference => self.raw.clone(),
        }
    }

    /// Makes sure that each side reads what the other one has written.
    async fn compare(&self) -> Result<()> {
        for record in [0, 7, 123, Self::RECORDS - 1] {
            let other = Self::RECORDS - 1 - record;
            self.expect(&*self.raw, record, record).await?;
            self.raw.put(record, other).await?;
            self.expect(&*self.adapter, record, other).await?;
            self.adapter.put(record, record).await?;
            self.expect(&*self.raw, record, record).await?;
        }
        Ok(())
    }

    async fn expect(&self, client: &dyn Client, record: usize, value: usize) -> Result<()> {
        if client.get(record).await? == Some(self.records.values[value].to_bytes()) {
            return Ok(());
        }
        let (server, key) = (self.server.name(), &self.records.keys[record]);
        Err(format!("adapter and raw client of {server} do not agree on {key}").into())
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = self.runtime.block_on(self.raw.remove()) {
            let server = self.server.name();
            let _ = writeln!(io::stderr().lock(), "records are left behind in {server}: {error}");
        }
    }
}

async fn open(server: Server, records: &Arc<Records>) -> Result<Opened> {
    match server {
        Server::CouchDb => couchdb::open(records).await,
        Server::DynamoDb => dynamodb::open(records).await,
        Server::Firestore => firestore::open(records).await,
        Server::CloudflareKv => cloudflare_kv::open(records).await,
        Server::ForgeKvs => forge_kvs::open(records).await,
        Server::Postgres => Err("PostgreSQL is measured against pgbench".into()),
    }
}

/// A name for a new database that nobody else uses.
pub(super) fn unused_name() -> String {
    format!("bench-{:016x}", fastrand::u64(..))
}

/// The side that is measured.
struct Adapter {
    store: Store,
    records: Arc<Records>,
}

impl Client for Adapter {
    fn get(&self, record: usize) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let entry = self.store.get(&self.records.keys[record]).await?;
            Ok(entry.map(|entry| entry.value.to_bytes()))
        })
    }

    fn put(&self, record: usize, value: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let (key, value) = (&self.records.keys[record], &self.records.values[value]);
            self.store.put(key.clone(), Put::new(value.clone())).await?;
            Ok(())
        })
    }
}
