//! What a registry promises, on every engine, with real repositories.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod costs;
mod dropping;
mod entries;
mod fixture;
mod history;
mod migrating;
mod namespaces;
mod reading;
mod refusing;
#[path = "../repository/mod.rs"]
mod repository;
mod scenarios;
mod since;
mod sources;
mod together;
