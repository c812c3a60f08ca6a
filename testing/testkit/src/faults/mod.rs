//! Faults between a protocol and its engine.

mod engine;
mod plan;
mod switch;

pub use engine::FaultyEngine;
pub use plan::{Call, Fault, Faults, Rates, When};
