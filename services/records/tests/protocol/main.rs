//! How indexes stay right where the engine has compare-and-swap of one key and nothing more: the
//! protocol as a model, checked in every reachable state.
//!
//! `docs/decisions/0005-indexes-without-transactions.md` says the same in words. The model knows
//! nothing of the crate: it is the specification that the code follows.
//!
//! - [`store`]: the engine. One call is one step; a guard is a version that was read.
//! - [`protocol`]: the rules, as data.
//! - [`script`]: what writers have to do, and what their callers are told.
//! - [`writer`], [`sweeper`], [`reader`]: who follows the rules, one engine call at a time.
//! - [`config`], [`model`]: everybody together, with crashes, lost answers and expiry.
//! - [`property`]: what must be true.
//! - [`verdict`]: runs the checker, and tells what it found.
//! - [`situations`], [`endings`]: the protocol holds.
//! - [`shortcuts`]: what looks simpler does not, and the checker says why.
//!
//! `KEYWARD_DEEP=1` checks larger situations. `--nocapture` shows the numbers of states and the
//! counterexamples.

mod config;
mod endings;
mod model;
mod property;
mod protocol;
mod reader;
mod script;
mod shortcuts;
mod situations;
mod store;
mod sweeper;
mod verdict;
mod writer;
