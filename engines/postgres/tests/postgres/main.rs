//! The PostgreSQL engine on a real server: the contract, and what it promises beyond.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod conformance;
mod faults;
mod paging;
mod proxy;
mod restoring;
mod round_trips;
mod server;
mod sharing;
mod watching;
