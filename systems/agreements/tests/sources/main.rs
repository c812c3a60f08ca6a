//! Where pages come from: folders with real files, uploads on every engine, and Confluence as a server
//! of the test's own speaks it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod confluence;
mod crashing;
mod failing;
mod folders;
mod server;
mod uploads;
mod watching;
mod wiki;

use keyward_agreements::{PageId, SourceId};

fn page(id: &str) -> PageId {
    PageId::new(id).unwrap()
}

fn source(id: &str) -> SourceId {
    SourceId::new(id).unwrap()
}
