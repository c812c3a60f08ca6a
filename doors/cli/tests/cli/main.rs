//! The built `keyward` command, as a shell would use it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod config;
mod copying;
mod entries;
mod listing;
mod readme;
mod sandbox;
mod shell;
mod transfer;
mod upkeep;
mod watching;
