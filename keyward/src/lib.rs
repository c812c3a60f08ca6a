//! Keyward: the data layer over key-value stores.
//!
//! Open a store by URL, and use it through [`Store`]:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use keyward::{Json, Key, Put};
//!
//! let store = keyward::open("memory:").await?;
//! let key = Key::parse("user:7:notes:n1")?;
//! store.put(key.clone(), Put::new(Json::parse(r#"{"text":"hi"}"#)?)).await?;
//! assert!(store.get(&key).await?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | URL | engine |
//! |---|---|
//! | `embedded:./data` | a directory on this machine, shared by its processes |
//! | `embedded:./data?durability=relaxed` | the same; a power loss may undo the last commits |
//! | `postgres://user:password@host/database?store=NAME` | a PostgreSQL database, shared by every process that reaches it |
//! | `couchdb://user:password@host:5984/database` | a CouchDB database |
//! | `dynamodb://REGION/TABLE` | a DynamoDB table; credentials as Amazon's SDK finds them |
//! | `firestore://PROJECT/DATABASE/COLLECTION` | a Firestore collection; credentials as Google's libraries find them |
//! | `cloudflare-kv://ACCOUNT/NAMESPACE?coordinator=URL` | a Cloudflare KV namespace; an atomic store coordinates it |
//! | `forge-kvs://…?coordinator=URL` | the storage of a Forge app |
//! | `couchdb://…?layout=document`, also `dynamodb`, `firestore` | agent data in the documents of another program |
//! | `keyward+https://host:7480/STORE` | a store that a Keyward server serves; its API key is in `KEYWARD_KEY` |
//! | `memory:` | this process only |
//! | `memory:?tier=recoverable`, `?tier=advisory` | with the restrictions of weaker databases, for tests |
//!
//! CouchDB, DynamoDB, Firestore, Cloudflare KV and Forge KVS are cargo features (`couchdb`, `dynamodb`,
//! `firestore`, `cloudflare-kv`, `forge-kvs`), all on by default.
//!
//! Above stores are records: [`Data`] opens what a schema file declares (see [`schema`]), and gives
//! out its spaces, in which records have owners, indexes and history (see [`records`]). What agents keep
//! for users is in one of them (see [`agents`]). Documents that are kept in git are in a [`registry`] of a
//! store. Several people work on pages with policies and issues in a workspace of [`agreements`].

mod data;
mod doctor;
mod open;
pub mod rules;
mod sameness;

pub use data::Data;
pub use doctor::{doctor, probe};
#[doc(inline)]
pub use keyward_agents as agents;
#[doc(inline)]
pub use keyward_agreements as agreements;
#[doc(inline)]
pub use keyward_cache as cache;
pub use keyward_coordinated::finish_pushes;
pub use keyward_engine::*;
#[doc(inline)]
pub use keyward_extract as extract;
pub use keyward_key::*;
#[doc(inline)]
pub use keyward_locks as locks;
#[doc(inline)]
pub use keyward_migrate as migrate;
#[doc(inline)]
pub use keyward_models as models;
#[doc(inline)]
pub use keyward_queue as queue;
#[doc(inline)]
pub use keyward_records as records;
#[doc(inline)]
pub use keyward_registry as registry;
#[doc(inline)]
pub use keyward_remote as remote;
#[doc(inline)]
pub use keyward_schema as schema;
pub use open::{
    Compacted, Salvaged, capabilities, compact, has_document_layout, open, open_existing, prepare,
    restore, salvage, url_beside,
};
pub use sameness::Sameness;

/// The README's example, so that it keeps compiling and running.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
