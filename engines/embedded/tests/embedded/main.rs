//! What the embedded engine promises beyond the contract: places, processes, kills, power loss.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod blocked;
mod child;
mod conformance;
mod damage;
mod format;
mod kill_steps;
mod kills;
mod linear;
mod places;
mod power_loss;
mod process;
mod sharing;
mod shim;
mod workload;
