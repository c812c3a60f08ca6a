//! The tables and functions in the database: created and upgraded by whoever opens a store first.

use keyward_engine::{Error, ErrorKind, Result};
use tokio_postgres::error::Error as PostgresError;
use tokio_postgres::{Client, GenericClient};

use crate::error::from_postgres;

/// What leads from each version of the schema to the next; the first creates it.
const STEPS: [&str; 1] = [concat!(
    include_str!("schema/tables.sql"),
    include_str!("schema/commit.sql"),
    include_str!("schema/feed.sql"),
    include_str!("schema/upkeep.sql"),
)];
/// `pg_current_xact_id` and what goes with it.
const SERVER_VERSION_MIN: i32 = 130_000;
/// Held while the schema is changed.
const LOCK: i64 = 0x6b65_7977_6172_6400;

/// Makes the schema what this version of the engine works with.
pub(crate) async fn prepare(client: &mut Client) -> Result<()> {
    let failed = |error| from_postgres("cannot prepare the database", error);
    let server = client
        .query_one("SELECT current_setting('server_version_num')::int", &[])
        .await
        .and_then(|row| row.try_get::<_, i32>(0))
        .map_err(failed)?;
    if server < SERVER_VERSION_MIN {
        let message = format!(
            "the server is PostgreSQL {}; version {} or later is needed",
            server / 10_000,
            SERVER_VERSION_MIN / 10_000
        );
        return Err(Error::new(ErrorKind::Misplaced, message));
    }
    if steps_after(version(client).await?)?.is_empty() {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    // Another may have done it while we waited.
    for step in steps_after(version(&transaction).await?)? {
        transaction.batch_execute(step).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

fn steps_after(version: usize) -> Result<&'static [&'static str]> {
    STEPS.get(version..).ok_or_else(|| {
        let message = format!(
            "the database was prepared by a newer Keyward: its schema has version {version}, and \
             this one knows {} at most",
            STEPS.len()
        );
        Error::new(ErrorKind::Misplaced, message)
    })
}

/// The version of the schema in the database; 0 if there is none.
async fn version(client: &impl GenericClient) -> Result<usize> {
    if !exists(client).await? {
        return Ok(0);
    }
    let row = client.query_one("SELECT version FROM keyward.schema", &[]).await;
    let version = row.and_then(|row| row.try_get::<_, i32>(0)).map_err(unreadable)?;
    Ok(usize::try_from(version).unwrap_or_default())
}

/// Whether there is a schema in the database.
pub(crate) async fn exists(client: &impl GenericClient) -> Result<bool> {
    // Not to_regclass, which may remember that there was none before we waited for the lock.
    const EXISTS: &str = "SELECT EXISTS (
        SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'keyward' AND c.relname = 'schema')";
    let row = client.query_one(EXISTS, &[]).await;
    row.and_then(|row| row.try_get(0)).map_err(unreadable)
}

fn unreadable(error: PostgresError) -> Error {
    from_postgres("cannot read the version of the schema", error)
}
