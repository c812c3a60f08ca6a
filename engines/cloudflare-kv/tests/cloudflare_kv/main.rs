//! The Cloudflare KV engine on workerd's own KV, behind the REST API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod answers;
mod conformance;
mod foreign;
mod limits;
mod network;
mod opening;
mod round_trips;
mod scripted;
mod server;
mod settling;
mod throttling;
mod worker;
