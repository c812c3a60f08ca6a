//! The embedded engine: a store in a directory, on LMDB.
//!
//! Reads are copies out of mapped memory and never wait for writers. Writes go through one
//! committer thread for each process, which gathers what is queued into one transaction and one
//! sync (group commit). A commit whose turn does not come in time, because another process keeps the
//! write lock, is given up unwritten. Several processes of one machine may have the same store open: LMDB orders
//! their commits, and watchers see each other's.
//!
//! The format on disk is drawn in `docs/embedded-format.md`.

mod commit;
mod committer;
mod directory;
mod engine;
mod environment;
mod error;
mod history;
mod holder;
mod maintenance;
mod options;
mod pages;
mod place;
mod queue;
mod read;
mod record;
mod registry;

pub use engine::Embedded;
pub use maintenance::{Compacted, compact, restore, salvage};
pub use options::Options;
pub use pages::Salvaged;
