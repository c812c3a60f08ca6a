//! A store that a Keyward server serves, over HTTP.
//!
//! [`Remote`] is an engine like any other: records, locks, queues and every command work on it as
//! they do on a directory, and what it can do is what the server's store can do, less what does not
//! fit into a request. It speaks to the routes below `/v1/stores/{store}/raw`.
//!
//! The API key comes from a file, from the environment (`KEYWARD_KEY`) or from the program, never from
//! the URL; it stands in no message and in no `Debug`.

mod client;
mod contract;
mod engine;
mod error;
mod events;
mod handshake;
mod options;
mod sent;
mod tls;
mod watch;
mod wire;

pub use client::Connection;
pub use engine::Remote;
pub use options::{Address, ApiKey, KEY_VARIABLE, Options};
pub use sent::{Refused, Reply, Sent};
