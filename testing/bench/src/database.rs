//! A database of our own on a PostgreSQL server, for the cases that need one.

use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use keyward_engine::Store;
use keyward_postgres::{Options, Postgres};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use crate::Result;
use crate::server::Server;

/// A new database, removed when it is dropped, and the runtime that speaks to it.
pub struct Database {
    /// Carries every connection.
    pub runtime: Runtime,
    /// `postgres://user@host/…`.
    pub address: String,
    /// A connection that goes around the engine.
    pub client: Client,
    /// A connection to the database that was there before.
    outside: Client,
    name: String,
}

impl Database {
    /// Makes a database on the server that the environment names.
    pub fn create() -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (server, _) = Options::from_url(Server::Postgres.address()?.parse()?)?;
        let (place, _) = server
            .rsplit_once('/')
            .filter(|(place, _)| !place.ends_with('/'))
            .ok_or("the URL of the PostgreSQL server names no database")?;
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("keyward_bench_{}_{made}", process::id());
        let address = format!("{place}/{name}");
        let runtime = Runtime::new()?;
        let (outside, client) = runtime.block_on(async {
            let outside = connect(&server).await?;
            outside.batch_execute(&format!("CREATE DATABASE {name}")).await?;
            Ok::<_, crate::Failure>((outside, connect(&address).await?))
        })?;
        Ok(Self { runtime, address, client, outside, name })
    }

    /// Opens or makes a store. Nothing but the case changes it: housekeeping that the server begins
    /// by itself would fall on one of the two sides.
    pub fn store(&self) -> Result<Store> {
        let opened = self.runtime.block_on(Postgres::open(&self.address, Options::default()))?;
        self.run(
            "ALTER TABLE keyward.entries SET (autovacuum_enabled = off);
             ALTER TABLE keyward.log SET (autovacuum_enabled = off)",
        )?;
        Ok(Store::new(opened))
    }

    /// The number that the only store has in its tables.
    pub fn store_number(&self) -> Result<i32> {
        let number = self.client.query_one("SELECT id FROM keyward.stores", &[]);
        Ok(self.runtime.block_on(number)?.try_get(0)?)
    }

    /// Runs statements around the engine.
    pub fn run(&self, statements: &str) -> Result<()> {
        Ok(self.runtime.block_on(self.client.batch_execute(statements))?)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Forced: a pool may still hold connections.
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        if let Err(error) = self.runtime.block_on(self.outside.batch_execute(&drop)) {
            let name = &self.name;
            let _ = writeln!(io::stderr().lock(), "the database {name} is left behind: {error}");
        }
    }
}

async fn connect(address: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
