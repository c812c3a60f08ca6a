//! Agents: MCP over HTTP, as clients of the newest revision and of older ones speak it.

mod access;
mod agents;
mod agreements;
mod arguments;
pub mod client;
mod confirming;
mod isolation;
mod jobs;
mod large;
mod locks;
mod memory;
mod piped;
mod plain;
mod records;
mod registries;
mod resources;
mod sessions;
mod speaking;
mod subscriptions;
