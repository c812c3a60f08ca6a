//! Locks on every engine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod abandoning;
mod asking;
mod breaking;
mod crashing;
mod detaching;
mod fencing;
mod fixture;
mod histories;
mod holding;
mod naming;
mod original;
mod recovering;
mod waiting;
