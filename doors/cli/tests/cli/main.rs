//! The built `keyward` command, as a shell would use it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod agent;
mod agents;
mod agreements;
mod batches;
mod blocked;
mod caching;
mod config;
mod consumers;
mod copying;
mod crowd;
mod damage;
mod desks;
mod discretion;
mod doctoring;
mod entries;
mod installing;
mod issues;
mod keys;
mod killing;
mod listing;
mod locking;
mod mcp;
mod migrating;
mod moving;
mod ollama;
mod operating;
mod questions;
mod queues;
mod readme;
mod records;
mod registry;
mod remote;
mod repository;
mod rules;
mod sandbox;
mod schemas;
mod serving;
mod sharing;
mod shell;
mod tracing;
mod transfer;
mod upkeep;
mod watching;
mod working;
