//! The contract between what uses a store and the database that keeps it.
//!
//! - [`Engine`] is what an adapter implements: read, scan, commit, watch, and say honestly what it
//!   can do ([`Capabilities`]). Adapters are small and dumb.
//! - [`Store`] is what callers use: it enforces limits and capabilities before an engine sees
//!   anything, and builds listings on top of scans.
//!
//! Values are JSON text kept as bytes ([`Json`]): validated once on the way in, never parsed on the
//! way out.

mod capability;
mod clock;
mod code;
mod commit;
mod documents;
mod engine;
mod entry;
mod error;
mod feed;
mod json;
pub mod moment;
mod page_bytes;
mod scan;
#[cfg(feature = "json-schema")]
mod schema;
mod secret_file;
mod serial;
mod store;
mod url;
mod watch;

pub use capability::{
    Capabilities, ClockSource, Consistency, Durability, ExpirySupport, Limits, ScanOrder, Sharing,
    Tier, WatchSupport,
};
pub use clock::{Clock, SystemClock};
pub use code::{Code, Coded, UnknownCode};
pub use commit::{Check, Commit, Expect, Expiry, Outcome, Put, Write};
pub use documents::{
    Document, DocumentLimits, DocumentList, DocumentPage, DocumentRow, Documents, Swapped,
};
pub use engine::{BoxFuture, BoxStream, DiskSpace, Engine, Stats, cannot_watch};
pub use entry::{Entry, Revision, Version};
pub use error::{Error, ErrorKind, Result};
pub use feed::{ChangeLog, LogSlice, follow};
pub use json::{Json, JsonError};
pub use moment::moment_text;
pub use page_bytes::PageBytes;
pub use scan::{Cursor, Order, Page, Row, Scan, Want};
pub use secret_file::read_secret_file;
pub use store::{List, Listed, Listing, Store};
pub use url::StoreUrl;
pub use watch::{Change, ChangeKind, Event};
