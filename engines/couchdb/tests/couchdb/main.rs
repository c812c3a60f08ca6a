//! The CouchDB engine on a server that speaks CouchDB's protocol: the contract, and what it promises beyond.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod conflicts;
mod conformance;
mod documents;
mod entries;
mod listing;
mod lost;
mod network;
mod opening;
mod order;
mod preparing;
mod round_trips;
mod server;
mod watching;
