//! The functions behind operations, and behind routes that are not operations yet.

pub mod agents;
pub mod agreements;
pub mod batches;
pub mod cache;
pub mod claims;
pub mod clearing;
pub mod commits;
pub mod dead_letters;
pub mod entries;
pub mod jobs;
pub mod keys;
pub mod locks;
pub mod messages;
pub mod migrations;
pub mod once;
pub mod queries;
pub mod queues;
pub mod raw;
pub mod records;
pub mod registries;
pub mod several;
pub mod spaces;
pub mod users;
pub mod watching;
