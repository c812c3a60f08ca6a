//! The engine on a server of the documented shapes, and beside Atlassian's own client.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod apps;
mod conformance;
mod coordinated;
mod entity;
mod expiry;
mod installation;
mod listing;
mod network;
mod round_trips;
mod rows;
mod tokens;
