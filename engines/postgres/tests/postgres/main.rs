//! The PostgreSQL engine on a real server: the contract, and what it promises beyond.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod child;
mod conformance;
mod encryption;
mod faults;
mod ordeal;
mod own_server;
mod paging;
mod processes;
mod proxy;
mod restoring;
mod round_trips;
mod server;
mod sharing;
mod small_disk;
mod stopping;
mod watching;
