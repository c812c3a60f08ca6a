//! What the agent data store promises, on every engine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod apart;
mod between;
mod bounds;
mod committing;
mod copying;
mod exchanging;
mod fixture;
mod in_place;
mod keeping;
mod late;
mod listing;
mod living;
mod logging;
mod past;
mod racing;
mod reading;
mod remembering;
mod searching;
mod tracking;
