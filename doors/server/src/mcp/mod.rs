//! The Model Context Protocol: what agents call.
//!
//! One [`Handler`](handler::Handler) answers, and knows no wires. It is spoken to over HTTP at `/mcp`
//! (`endpoint`), behind the same gate as everything else, and over standard input and output
//! (`stdio`), for one user of this machine. Calls of tools over HTTP that need nothing of the protocol but their
//! answer come to its tools directly (`plain`). What its tools do are the functions of `api`; here their
//! arguments are read, and their answers and problems put into words for a model.

mod answer;
mod arguments;
mod call;
mod completion;
mod confirm;
mod endpoint;
mod fixtures;
mod handler;
mod hosts;
mod local;
mod options;
mod plain;
mod prompts;
mod resources;
mod seal;
mod sessions;
mod skim;
mod stdio;
mod subscriptions;
mod tools;
mod uri;

pub(crate) use endpoint::{Endpoint, PATH, is_endpoint};
pub use options::{LocalUser, McpOptions};
pub(crate) use skim::{PassedOver, Skim};
pub use stdio::serve_mcp;
