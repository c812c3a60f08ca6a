//! A real server on a free port of this machine, and a real client.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod agents;
mod agreements;
mod attack;
mod audit;
mod batches;
mod cache;
mod certificates;
mod claims;
mod clearing;
mod cors;
mod credentials;
mod crowding;
mod dead_letters;
mod description;
mod entries;
mod expensive;
mod exposure;
mod fixture;
mod hardening;
mod history;
mod issuers;
mod jobs;
mod locks;
mod mcp;
mod messages;
mod metrics;
mod migrations;
mod owners;
mod page_sizes;
mod questions;
mod rates;
mod raw;
mod readiness;
mod records;
mod registries;
mod repeating;
#[path = "../../../../systems/registry/tests/repository/mod.rs"]
mod repository;
mod roles;
mod several;
mod spaces;
mod table;
mod tenancy;
mod tokens;
mod users;
mod watching;
mod workers;
