//! Models that are asked, as callers see it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod asking;
mod failing;
mod keys;
mod prompts;
mod scripts;
mod server;
mod speakers;
mod splitting;
mod wires;
