//! Figures and bounds of the attack suite in `tests/attack`.
//!
//! The attacks themselves are tests: each starts the real `keyward` command as a child, attacks it from
//! loopback addresses with a bounded number of clients for a bounded time, and measures what another
//! user notices. `docs/testing.md` says how to run them.

mod figures;
mod scale;

pub use figures::{Figures, Latencies};
pub use scale::{Bounds, Scale};
