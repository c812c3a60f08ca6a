//! The memory engine: the reference that says what a store does, and the stand-in for databases
//! that can do less.
//!
//! `memory:` keeps everything the contract offers, as long as the process lives.
//! `memory:?tier=recoverable` has only compare-and-swap of one key, no history and no numbers;
//! `memory:?tier=advisory` has not even that: the last writer wins, and reads are late. They exist so
//! that what is built on weaker databases is tested from the start.

mod engine;
mod options;
mod state;

pub use engine::Memory;
pub use options::Options;
