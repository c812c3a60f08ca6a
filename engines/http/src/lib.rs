//! HTTP for engines whose database speaks it.
//!
//! Not an engine: the part that adapters over HTTP would otherwise each write. [`Client::send`] sends
//! a request, sends it again where that is safe and the time for it is not used up, and turns a lost
//! answer into the right [kind of error](keyward_engine::ErrorKind): `Unavailable` if nothing was
//! done, `OutcomeUnknown` if a write was under way. Every other status is the adapter's to read.

mod client;
mod options;
mod request;
mod retry_after;
mod tls;

pub use client::Client;
pub use options::Options;
pub use request::{Effect, Request, Response};
pub use reqwest::header;
pub use reqwest::{Method, StatusCode, Url};
