//! Engines by URL: the only place that names an adapter.

use std::path::Path;

pub use keyward_embedded::Compacted;
use keyward_embedded::Embedded;
use keyward_engine::{Error, ErrorKind, Result, Store, StoreUrl, SystemClock};
use keyward_memory::Memory;
use keyward_postgres::Postgres;

/// Opens the store a URL names, creating it if it does not exist.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let directory = tempfile::tempdir()?;
/// let url = format!("embedded:{}/data", directory.path().display());
/// let store = keyward::open(&url).await?;
/// assert_eq!(store.capabilities().engine, "embedded");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn open(url: &str) -> Result<Store> {
    let url: StoreUrl = url.parse()?;
    match url.engine() {
        "memory" => open_memory(url),
        "embedded" => {
            let (directory, options) = keyward_embedded::Options::from_url(url)?;
            let opened = blocking(move || Embedded::open(&directory, options)).await?;
            Ok(Store::new(opened))
        }
        "postgres" | "postgresql" => {
            let (server, options) = keyward_postgres::Options::from_url(url)?;
            Ok(Store::new(Postgres::open(&server, options).await?))
        }
        other => Err(unknown_engine(other)),
    }
}

/// Opens the store a URL names, or says that there is none: for reading, where a mistyped name
/// should not leave an empty store behind.
pub async fn open_existing(url: &str) -> Result<Option<Store>> {
    let url: StoreUrl = url.parse()?;
    match url.engine() {
        "memory" => open_memory(url).map(Some),
        "embedded" => {
            let (directory, options) = keyward_embedded::Options::from_url(url)?;
            let opened = blocking(move || Embedded::open_existing(&directory, options)).await?;
            Ok(opened.map(Store::new))
        }
        "postgres" | "postgresql" => {
            let (server, options) = keyward_postgres::Options::from_url(url)?;
            Ok(Postgres::open_existing(&server, options).await?.map(Store::new))
        }
        other => Err(unknown_engine(other)),
    }
}

fn open_memory(url: StoreUrl) -> Result<Store> {
    let options = keyward_memory::Options::from_url(url)?;
    Ok(Store::new(Memory::with(options, SystemClock)))
}

fn unknown_engine(name: &str) -> Error {
    let message =
        format!("there is no engine called {name:?}; there are embedded, postgres and memory");
    Error::new(ErrorKind::Invalid, message)
}

/// Rewrites an embedded store without its free pages and expired entries. Nobody else may have it
/// open.
pub async fn compact(url: &str) -> Result<Compacted> {
    let (directory, options) = embedded(url, "compacted")?;
    blocking(move || keyward_embedded::compact(&directory, options)).await
}

/// Makes a new embedded store of a file that [`Store::backup`] wrote. Nothing may stand where the
/// store shall be.
pub async fn restore(url: &str, backup: &Path) -> Result<()> {
    let (directory, options) = embedded(url, "restored")?;
    let backup = backup.to_owned();
    blocking(move || keyward_embedded::restore(&directory, &backup, options)).await
}

fn embedded(url: &str, what: &str) -> Result<(std::path::PathBuf, keyward_embedded::Options)> {
    let url: StoreUrl = url.parse()?;
    if url.engine() != "embedded" {
        let message =
            format!("only embedded stores can be {what}, and {:?} is none", url.to_string());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    keyward_embedded::Options::from_url(url)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        Error::new(ErrorKind::Internal, "opening the store panicked").caused_by(error)
    })?
}
