//! Copies and comparisons of memory stores, with and without faults.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod comparing;
mod copying;
mod crashing;
mod limits;
mod meddling;
mod stores;
