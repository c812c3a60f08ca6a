//! Migrations and the doctor, on every engine, with writers beside them and crashes in them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod adopting;
mod advisory;
mod breaking;
mod changing_keys;
mod crashing;
mod doctoring;
mod examined_by_server;
mod fixture;
mod indexing;
mod naming;
mod optional;
mod previewing;
mod racing;
mod rekeying;
mod signs_of_life;
mod simulated;
mod transforming;
mod unique;
mod versions;
