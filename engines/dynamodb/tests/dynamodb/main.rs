//! The DynamoDB engine on Amazon's DynamoDB Local: the contract, and what it promises beyond.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod committing;
mod conformance;
mod documents;
mod expiry;
mod foreign_documents;
mod network;
mod opening;
mod round_trips;
mod scanning;
mod server;
mod snapshots;
mod throttling;
mod watching;
