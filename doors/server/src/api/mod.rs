//! What can be asked for, as plain functions: they know callers and data, and no wires.

pub(crate) mod batches;
pub(crate) mod cache;
pub(crate) mod commits;
pub(crate) mod entries;
pub(crate) mod keys;
pub(crate) mod locks;
pub(crate) mod migrations;
pub(crate) mod reach;
pub(crate) mod records;
pub(crate) mod spaces;
pub(crate) mod users;
pub(crate) mod watching;
