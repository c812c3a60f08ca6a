//! Embedded stores, and what only they have.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use keyward_embedded::{Compacted, Salvaged};
use keyward_embedded::{Embedded, Options};
use keyward_engine::{Engine, Error, ErrorKind, Result, Row, StoreUrl};

use super::{Absent, Opened};

pub(super) async fn open(url: StoreUrl, absent: Absent) -> Result<Opened> {
    let (directory, options) = Options::from_url(url)?;
    let opened = blocking(move || match absent {
        Absent::Create => Embedded::open(&directory, options).map(Some),
        Absent::Leave => Embedded::open_existing(&directory, options),
    });
    Ok(opened.await?.map(|opened| Arc::new(opened) as Arc<dyn Engine>))
}

/// Rewrites an embedded store without its free pages and expired entries. Nobody else may have it
/// open.
pub async fn compact(url: &str) -> Result<Compacted> {
    let (directory, options) = directory(url, "compacted")?;
    blocking(move || keyward_embedded::compact(&directory, options)).await
}

/// Makes a new embedded store of a file that [`Store::backup`](keyward_engine::Store::backup) wrote.
/// Nothing may stand where the store shall be.
pub async fn restore(url: &str, backup: &Path) -> Result<()> {
    let (directory, options) = directory(url, "restored")?;
    let backup = backup.to_owned();
    blocking(move || keyward_embedded::restore(&directory, &backup, options)).await
}

/// Hands over every entry of a damaged embedded store that can still be read, in no promised order,
/// until `take` says to stop. The store is not changed, and nobody may have it open. Blocks.
pub fn salvage(url: &str, take: impl FnMut(Row) -> ControlFlow<()>) -> Result<Salvaged> {
    let (directory, _) = directory(url, "salvaged")?;
    keyward_embedded::salvage(&directory, take)
}

fn directory(url: &str, what: &str) -> Result<(PathBuf, Options)> {
    let url: StoreUrl = url.parse()?;
    if url.engine() != "embedded" {
        let message =
            format!("only embedded stores can be {what}, and {:?} is none", url.to_string());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Options::from_url(url)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        Error::new(ErrorKind::Internal, "opening the store panicked").caused_by(error)
    })?
}
