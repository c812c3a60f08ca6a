//! Migrations and the doctor, on every engine, with writers beside them and crashes in them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod crashing;
mod doctoring;
mod fixture;
mod indexing;
mod optional;
mod rekeying;
mod transforming;
mod versions;
