//! The remote engine on a real server: the contract, and what it promises beyond.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod conformance;
mod encryption;
mod linear;
mod losing;
mod served;
mod telling;
mod watching;
