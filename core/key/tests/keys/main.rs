//! Everything promised about keys: round trips, order, ranges, patterns.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod format;
mod fuzz;
mod generate;
mod order;
mod patterns;
mod round_trip;
