//! A real server on a free port of this machine, and a real client.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod description;
mod entries;
mod fixture;
mod hardening;
mod watching;
