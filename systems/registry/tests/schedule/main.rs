//! When runs are due, and who begins them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod beginning;
mod moments;
