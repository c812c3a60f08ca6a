//! The CouchDB engine: a store in a database of Apache CouchDB 3, or of a server that speaks its protocol.
//!
//! [`CouchDb`] keeps one document per key and compares by `_rev`: the recoverable tier. [`CouchDbDocuments`]
//! opens a database whose documents another program lays out.
//!
//! # The documents of a store
//!
//! ```json
//! {
//!     "_id": "keyward!user!7!notes",
//!     "_rev": "3-9a1f…",
//!     "keyward": 1,
//!     "value": "{\"text\":\"hi\"}",
//!     "metadata": "{\"type\":\"note\"}",
//!     "expires": 1767225600000,
//!     "mark": "b2T0m3n…"
//! }
//! ```
//!
//! - `_id` is `keyward!` and the sortable text of the key, so ids sort as keys do, never begin with `_`, and
//!   are told from those of other documents of the database.
//! - `value` and `metadata` are JSON text inside a string. CouchDB keeps what JSON means and not how it was
//!   written: it reads `1.00` as `1.0`, rounds numbers of many digits and refuses `1e400`. A string comes back
//!   byte for byte.
//! - `expires` is in milliseconds since 1970. It is also part of the entry's version, so that a commit with a check
//!   knows without a read whether the entry has expired.
//! - `mark` is random and new with every write. It makes every `_rev` unique, as CouchDB computes it from the
//!   document, and tells after a lost answer whether a write was this one.
//!
//! # Watching
//!
//! CouchDB's `_changes` is a feed of documents, and not of commits: it tells only the last change of each document, a
//! write is not told its place in it, and places are opaque texts that a cluster gives in another order to every
//! reader. A [`Revision`](keyward_engine::Revision) is a number that every reader agrees on. So each process follows the
//! feed once, and numbers the changes for its own watches (`keyward-changes`): they are
//! [`Live`](keyward_engine::WatchSupport::Live). The documents of another program are not watched.

mod changes;
mod client;
mod commit;
mod design;
mod document;
mod documents;
mod engine;
mod error;
mod expiring;
mod fields;
mod list;
mod number;
mod options;
mod read;
mod rev;
mod verify;
mod write;

pub use documents::CouchDbDocuments;
pub use engine::CouchDb;
pub use options::Options;
