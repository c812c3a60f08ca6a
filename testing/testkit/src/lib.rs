//! The behaviours every engine must show, a clock that tests own, and injected faults.
//!
//! # Conformance
//!
//! An adapter has one test file. It says where stores can be opened ([`Place`]) and calls
//! [`conformance!`], which makes one named test of each behaviour:
//!
//! ```
//! use std::sync::Arc;
//!
//! use keyward_engine::{BoxFuture, Engine};
//! use keyward_memory::{Memory, Options};
//! use keyward_testkit::{Place, TestClock};
//!
//! struct InMemory;
//!
//! impl Place for InMemory {
//!     fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
//!         let engine = Memory::with(Options::default(), clock);
//!         Box::pin(async { Arc::new(engine) as Arc<dyn Engine> })
//!     }
//! }
//!
//! keyward_testkit::conformance!(memory, InMemory);
//! # fn main() {}
//! ```
//!
//! Nothing is skipped: what an engine says it cannot do, it must refuse, and leave the store as it
//! was. Random behaviours print their seed and the command that runs it again
//! (`KEYWARD_SEED=n`); `KEYWARD_DEEP=1` tries more.
//!
//! # Faults
//!
//! [`FaultyEngine`] wraps an engine and fails, delays or crashes between any two calls, by a script
//! or by a seed: what protocols above the engine are tested on.
//!
//! # Networks
//!
//! [`HttpProxy`] stands between an engine and a database that speaks HTTP. It counts requests, and
//! cuts, delays and falsely answers them. [`network_faults!`] makes one named test of each thing that
//! an engine must show when it does ([`NetworkPlace`]).
//!
//! # Documents
//!
//! [`document_conformance!`] makes one named test of each thing that an adapter of
//! [`Documents`](keyward_engine::Documents) must show ([`DocumentsPlace`]). [`MemoryDocuments`] is the
//! reference, and [`FaultyDocuments`] does for it what [`FaultyEngine`] does for an engine.
//!
//! # Histories
//!
//! [`linearize`] checks whether what clients of a real engine saw could have happened one after the
//! other.

mod behaviours;
mod clock;
#[doc(hidden)]
pub mod documents;
mod faults;
#[doc(hidden)]
pub mod faulty_network;
mod history;
mod http_proxy;
mod place;
mod reference;
mod run;
mod secret_file;
mod seeds;
mod subject;
#[doc(hidden)]
pub mod suite;
mod watcher;

pub use clock::{TestClock, VirtualClock};
pub use documents::{
    DocumentCall, DocumentCalls, DocumentsPlace, FaultyDocuments, Meaning, MemoryDocuments,
};
pub use faults::{Call, Fault, Faults, FaultyEngine, Rates, When};
pub use faulty_network::NetworkPlace;
pub use history::{Model, NotLinearizable, Timed, linearize};
pub use http_proxy::{HttpProxy, NetworkFault};
pub use place::Place;
#[doc(hidden)]
pub use run::run;
pub use secret_file::write_secret;
pub use seeds::{Replay, Test, deep, seeds};
pub use subject::Subject;
