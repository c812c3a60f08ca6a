//! What can be asked for, as plain functions: they know callers and data, and no wires.

pub(crate) mod agents;
pub(crate) mod agreements;
pub(crate) mod batches;
pub(crate) mod cache;
pub(crate) mod claims;
pub(crate) mod clearing;
pub(crate) mod commits;
pub(crate) mod dead_letters;
pub(crate) mod entries;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod locks;
pub(crate) mod messages;
pub(crate) mod migrations;
pub(crate) mod once;
pub(crate) mod queries;
pub(crate) mod queues;
pub(crate) mod raw;
pub(crate) mod reach;
pub(crate) mod records;
pub(crate) mod registries;
pub(crate) mod several;
pub(crate) mod sight;
pub(crate) mod spaces;
pub(crate) mod users;
pub(crate) mod watching;
