//! Documents that come from elsewhere, in the formats that other programs write.

mod reader;
mod typed;

pub use reader::{DocumentReader, Incoming};
