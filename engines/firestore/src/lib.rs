//! The Firestore engine: stores in a collection of a Firestore database in Native mode, over its REST API.
//!
//! Each entry is a document whose id is the key's sortable text after a `=`:
//!
//! | field | type | is |
//! |---|---|---|
//! | `key` | string | the document's id again: Firestore sorts ids only upwards without an index of ours, and fields both ways |
//! | `value` | string | the JSON text, byte for byte |
//! | `metadata` | string | the metadata's JSON text, if there is any |
//! | `expires` | timestamp | the end of the entry, if it has one; a TTL policy of Firestore may name this field |
//! | `commit` | string | a random mark of the commit, so that every write changes the document, and the end of the entry of that commit that ends first |
//!
//! The document `keyward` of the collection says that there is a store. Documents with other ids are somebody else's: they
//! are neither read nor written.
//!
//! A commit is one `:commit` request with preconditions. A version is the time at which Firestore last changed the document,
//! which never comes back. [`FirestoreDocuments`] reads and writes documents in the layout of another program instead.

mod access;
mod client;
mod collection;
mod commit;
mod document;
mod documents;
mod emulator;
mod engine;
mod error;
mod moment;
mod options;
mod read;
mod tidy;
mod transaction;
mod version;

pub use documents::FirestoreDocuments;
pub use engine::Firestore;
pub use options::Options;
