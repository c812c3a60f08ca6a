//! Workspaces: policies made once, kept up to date, and compared; tasks that are watched, cancelled and
//! taken over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod adopting;
mod analyzing;
mod coherence;
mod fixture;
mod killed;
mod levels;
mod once;
mod purging;
mod redoing;
mod tasks;
mod translating;
