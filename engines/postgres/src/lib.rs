//! The PostgreSQL engine: stores in a database, shared by every process that reaches it.
//!
//! A read is one statement. A commit is one call of a function in the database, hence one
//! transaction and one round trip; the reasons why it is atomic, and why no change is ever skipped
//! by those who watch, stand in `src/schema/*.sql`, next to the code they are about. The tables
//! are created and upgraded when a store is opened.
//!
//! Entries expire by the server's clock. Watchers are woken by `NOTIFY`.

mod address;
mod client;
mod commit;
mod engine;
mod error;
mod options;
mod read;
mod schema;
#[doc(hidden)]
pub mod statements;
mod tls;
mod watch;

pub use address::Address;
pub use engine::Postgres;
pub use options::{Options, Tls};
