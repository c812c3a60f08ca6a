//! Engines by URL: the only place that names an adapter.

use std::ops::ControlFlow;
use std::path::Path;

use keyward_embedded::Embedded;
pub use keyward_embedded::{Compacted, Salvaged};
use keyward_engine::{Capabilities, Error, ErrorKind, Result, Row, Store, StoreUrl, SystemClock};
use keyward_memory::Memory;
use keyward_postgres::Postgres;
use keyward_remote::Remote;

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
        "keyward+http" | "keyward+https" => open_remote(url).await,
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
        // A server that does not have it says so itself.
        "keyward+http" | "keyward+https" => open_remote(url).await.map(Some),
        other => Err(unknown_engine(other)),
    }
}

/// What the store that a URL names can do, its limits among it. Nothing is opened, and nothing need be
/// there. An error for a URL that [`open`] would refuse as it stands, and for a store behind a server,
/// which tells what it can do when it is opened.
///
/// ```
/// let embedded = keyward::capabilities("embedded:./data")?;
/// assert_eq!(embedded.limits.key_bytes_max, 1_974);
/// # Ok::<(), keyward::Error>(())
/// ```
pub fn capabilities(url: &str) -> Result<Capabilities> {
    known_capabilities(url)?.ok_or_else(|| {
        let message = "what a store behind a server can do is told when it is opened";
        Error::new(ErrorKind::Unsupported, message)
    })
}

/// [`capabilities`], or nothing where only the opened store can tell.
pub(crate) fn known_capabilities(url: &str) -> Result<Option<Capabilities>> {
    let url: StoreUrl = url.parse()?;
    match url.engine() {
        "memory" => Ok(Some(keyward_memory::Options::from_url(url)?.capabilities())),
        "embedded" => Ok(Some(keyward_embedded::Options::from_url(url)?.1.capabilities())),
        "postgres" | "postgresql" => {
            keyward_postgres::Options::from_url(url)?;
            Ok(Some(keyward_postgres::Options::capabilities()))
        }
        "keyward+http" | "keyward+https" => {
            keyward_remote::Options::from_url(url)?;
            Ok(None)
        }
        other => Err(unknown_engine(other)),
    }
}

fn open_memory(url: StoreUrl) -> Result<Store> {
    let options = keyward_memory::Options::from_url(url)?;
    Ok(Store::new(Memory::with(options, SystemClock)))
}

async fn open_remote(url: StoreUrl) -> Result<Store> {
    let (address, options) = keyward_remote::Options::from_url(url)?;
    Ok(Store::new(Remote::open(&address, &options).await?))
}

fn unknown_engine(name: &str) -> Error {
    let message = format!(
        "there is no engine called {name:?}; there are embedded, postgres, keyward+http, \
         keyward+https and memory"
    );
    Error::new(ErrorKind::Invalid, message)
}

/// A store's URL as it stands in a file of `folder`: the place of an embedded store is relative to
/// that folder, so that the file means the same from everywhere.
///
/// ```
/// use std::path::Path;
///
/// let url = keyward::url_beside(Path::new("/srv/app"), "embedded:data?durability=relaxed")?;
/// assert_eq!(url, "embedded:/srv/app/data?durability=relaxed");
/// # Ok::<(), keyward::Error>(())
/// ```
pub fn url_beside(folder: &Path, url: &str) -> Result<String> {
    let Some(rest) = url.strip_prefix("embedded:") else {
        return Ok(url.to_owned());
    };
    let (place, options) = match rest.find('?') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if place.is_empty() || Path::new(place).is_absolute() || folder == Path::new("") {
        return Ok(url.to_owned());
    }
    let place = folder.join(place);
    match place.to_str().filter(|place| !place.contains('?')) {
        Some(place) => Ok(format!("embedded:{place}{options}")),
        None => {
            let place = place.display();
            let reason = "its path must be UTF-8 and without a question mark";
            let message = format!("a store cannot be at {place}: {reason}");
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
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

/// Hands over every entry of a damaged embedded store that can still be read, in no promised order,
/// until `take` says to stop. The store is not changed, and nobody may have it open. Blocks.
pub fn salvage(url: &str, take: impl FnMut(Row) -> ControlFlow<()>) -> Result<Salvaged> {
    let (directory, _) = embedded(url, "salvaged")?;
    keyward_embedded::salvage(&directory, take)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_place_is_relative_to_the_folder_of_the_file() {
        let beside = |folder: &str, url| url_beside(Path::new(folder), url).unwrap();
        let relaxed = "embedded:./data?durability=relaxed";
        assert_eq!(beside("/etc/kw", relaxed), "embedded:/etc/kw/./data?durability=relaxed");
        assert_eq!(beside("", relaxed), relaxed);
        assert_eq!(beside("up", "embedded:data"), "embedded:up/data");
        for url in ["embedded:/var/data", "memory:", "no url"] {
            assert_eq!(beside("/etc/kw", url), url);
        }
    }

    #[test]
    fn a_folder_that_no_url_can_name_is_refused() {
        let error = url_beside(Path::new("/what?"), "embedded:data").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
