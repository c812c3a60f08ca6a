//! A value store and a coordinator as one engine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod adopting;
mod catalogs;
mod catching_up;
mod cloudflare_kv;
mod conformance;
mod converging;
mod crashing;
mod foreign;
mod hanging;
mod opening;
mod parsing;
mod pushing;
mod setup;
mod simulated;
