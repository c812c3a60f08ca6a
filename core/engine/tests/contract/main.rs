//! What the contract promises by itself, whatever the engine: JSON that can be stored, store URLs,
//! and listings on engines that page in their own way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod expiry;
mod fuzz;
mod json;
mod listing;
mod url;
