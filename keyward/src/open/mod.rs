//! Stores by URL. The modules below are the only ones that name adapters.

mod beside;
#[cfg(feature = "cloudflare-kv")]
mod cloudflare_kv;
mod coordinator;
#[cfg(feature = "couchdb")]
mod couchdb;
mod document_layout;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod embedded;
mod family;
#[cfg(feature = "firestore")]
mod firestore;
#[cfg(feature = "forge-kvs")]
mod forge_kvs;
#[macro_use]
mod not_built;
mod request;

use std::sync::Arc;

use keyward_engine::{Capabilities, Engine, Error, ErrorKind, Result, Store, StoreUrl};

pub use beside::url_beside;
pub(crate) use beside::with_coordinator;
pub use embedded::{Compacted, Salvaged, compact, restore, salvage};
use request::Request;

not_built!(cloudflare_kv(), "Cloudflare KV", "cloudflare-kv");
not_built!(couchdb(), "CouchDB", "couchdb");
not_built!(dynamodb(), "DynamoDB", "dynamodb");
not_built!(firestore(), "Firestore", "firestore");
not_built!(forge_kvs(bool), "Forge KVS", "forge-kvs");

/// An engine that was opened; nothing, if there is no such store and none was to be created.
type Opened = Option<Arc<dyn Engine>>;

/// What becomes of a store that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    Create,
    Leave,
}

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
    let request = Request::parse(url)?;
    let opened = request.open(Absent::Create).await?;
    opened
        .map(Store::from_arc)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the store was neither found nor created"))
}

/// Opens the store a URL names, or says that there is none: for reading, where a mistyped name
/// should not leave an empty store behind.
pub async fn open_existing(url: &str) -> Result<Option<Store>> {
    Ok(Request::parse(url)?.open(Absent::Leave).await?.map(Store::from_arc))
}

/// What the store that a URL names can do, its limits among it. Nothing is opened, and nothing need be
/// there. An error for a URL that [`open`] would refuse as it stands, and for a store that only tells
/// what it can do when it is opened: one behind a server, or with `layout=document`.
///
/// ```
/// let embedded = keyward::capabilities("embedded:./data")?;
/// assert_eq!(embedded.limits.key_bytes_max, 1_974);
/// # Ok::<(), keyward::Error>(())
/// ```
pub fn capabilities(url: &str) -> Result<Capabilities> {
    known_capabilities(url)?.ok_or_else(|| {
        let message = "this store tells what it can do only when it is opened";
        Error::new(ErrorKind::Unsupported, message)
    })
}

/// [`capabilities`], or nothing where only the opened store can tell.
pub(crate) fn known_capabilities(url: &str) -> Result<Option<Capabilities>> {
    Request::parse(url)?.capabilities()
}

/// The indexes that lists of a store with `layout=document` need and its database does not have, each as a
/// sentence that says what would be created. With `create`, they are created and ready afterwards.
///
/// An error for a store without `layout=document`.
pub async fn prepare(url: &str, create: bool) -> Result<Vec<String>> {
    Request::parse(url)?.document_layout().await?.prepare(create).await
}

/// Whether a URL asks for `layout=document`: agent data in the documents of another program. False for what is
/// no URL of a store.
pub fn has_document_layout(url: &str) -> bool {
    Request::parse(url).is_ok_and(|request| request.has_document_layout())
}

/// The URL of the coordinator that a store's URL names, if it names one.
pub(crate) fn coordinator_of(url: &str) -> Option<String> {
    url.parse::<StoreUrl>().ok()?.take_decoded(coordinator::OPTION).ok().flatten()
}

/// Why the coordinator that a URL names cannot be one. What is wrong with the store itself is not told.
pub(crate) fn check_coordinator(url: &str) -> Result<()> {
    request::check_coordinator(url)
}

/// Whether a URL names an engine that can have a coordinator, and does not name one.
pub(crate) fn lacks_coordinator(url: &str) -> bool {
    let Ok(url) = url.parse::<StoreUrl>() else { return false };
    let family = family::Family::of(&url);
    family.is_ok_and(family::Family::takes_coordinator)
        && !coordinator::has(&url, coordinator::OPTION)
}
