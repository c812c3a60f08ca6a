//! What the issues of a page promise, on every engine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod crashing;
mod editing;
mod exporting;
mod finding;
mod fixture;
mod listing;
mod locating;
mod moving;
mod racing;
mod staleness;
