//! Agent data opened in place: what the agent data store promises, on the documents of another program.
//!
//! Each function takes an [`InPlace`](place::InPlace), so that `on_documents!` makes a named test of it on each
//! database that `place.rs` names.

#[macro_use]
mod place;

mod cluster;
mod copying;
mod crashing;
mod documents;
mod isolation;
mod keeping;
mod listing;
mod racing;
mod refusing;
mod round_trips;
mod tracking;
mod watched;
