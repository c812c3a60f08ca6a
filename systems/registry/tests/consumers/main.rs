//! Consumers, with real ones: commands, an HTTP server, folders, buckets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod commands;
mod crashing;
mod exports;
mod fixture;
mod mixing;
mod namespaces;
mod posts;
mod repairing;
#[path = "../repository/mod.rs"]
mod repository;
mod retrying;
mod s3;
mod server;
mod working;
