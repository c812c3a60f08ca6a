//! Queues, jobs and workers on every engine that can keep them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod claiming;
mod cost;
mod crashing;
mod dead_letters;
mod enqueuing;
mod fixture;
mod histories;
mod inspecting;
mod jobs;
mod passing_over;
mod refusing;
mod replacing;
mod riding;
mod tickets;
mod unanswered;
mod waiting;
mod working;
