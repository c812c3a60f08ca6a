//! The agent data store: what AI agents keep for users.
//!
//! A user has **namespaces**, a namespace has **entries**: a key, a JSON value, metadata, who made it
//! and who accessed it last. Everything is done for one user, in the name of an agent:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use keyward_agents::{Actor, Agents, Options, Set};
//! use keyward_engine::{Json, Store, SystemClock};
//!
//! let store = Store::new(keyward_memory::Memory::new());
//! let agents = Agents::alone(store, Options::default(), SystemClock)?;
//!
//! let ada = agents.user("ada", Actor::agent("indexer").in_run("r1"));
//! let files = ada.use_namespace("files:apache/repo")?;
//! let metadata = Json::parse(r#"{"version":"1.0"}"#)?;
//! files.set("src/main.py", Set::new(Json::parse(r#"{"lines":2}"#)?).metadata(metadata)).await?;
//! assert_eq!(files.get("src/main.py").await?.unwrap().as_str(), r#"{"lines":2}"#);
//!
//! let entry = files.entry("src/main.py").await?.unwrap();
//! assert_eq!(entry.id().compose(), "ada:files:apache/repo:c3JjL21haW4ucHk=");
//! // Two reads by an agent: `get`, and `entry` itself.
//! assert_eq!((entry.created_by_agent.as_deref(), entry.access.count), (Some("indexer"), 2));
//!
//! // Another user's namespace of the same name is another one.
//! let bob = agents.user("bob", Actor::agent("indexer")).use_namespace("files:apache/repo")?;
//! assert_eq!(bob.get("src/main.py").await?, None);
//!
//! agents.close().await?; // what was gathered about accesses is written
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Entries are records of the space [`SPACE`], so they have an owner, a history and, where the schema
//! declares it, indexes. `docs/agents.md` has the fields, the keys and the promises.

mod access;
mod actor;
mod agents;
mod clear;
mod copy;
mod decimal;
mod declaration;
mod document;
mod document_id;
mod entry;
mod error;
mod exchange;
mod fingerprint;
mod import;
mod in_place;
mod listing;
mod memory;
mod namespace;
mod past;
mod places;
mod rename;
mod search;
mod set;
mod settings;
mod skipped;
mod stats;
mod together;
mod track;
mod user_data;
mod write_times;

pub use access::Access;
pub use actor::Actor;
pub use agents::{Agents, Gathered, Options};
pub use copy::{CopiedEntries, EntryCopy, OnConflict};
pub use declaration::{PATTERN, SPACE, declare};
pub use document::Document;
pub use document_id::{DocumentId, DocumentIdError};
pub use entry::AgentEntry;
pub use error::{Error, Result};
pub use exchange::{Exported, Imported};
pub use import::{DocumentReader, Incoming};
pub use in_place::DocumentLayout;
pub use listing::{Entries, Keys, Namespaces};
pub use memory::{Memories, MemoryAnswer, MemoryCommand};
pub use namespace::Namespace;
pub use past::{PastEntry, PastPage};
pub use search::{Found, Search};
pub use set::{Life, Patch, Set};
pub use settings::Settings;
pub use skipped::Skipped;
pub use stats::NamespaceStats;
pub use track::{LoggedOperation, Operations, Runs};
pub use user_data::UserData;
