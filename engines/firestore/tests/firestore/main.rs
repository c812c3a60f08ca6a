//! The Firestore engine against Google's emulator.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod committing;
mod conformance;
mod documents;
mod emulator;
mod foreign;
mod network;
mod opening;
mod ordering;
mod paging;
mod round_trips;
