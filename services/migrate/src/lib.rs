//! Changing what is stored while it is in use: migrations, copies between engines, and a doctor.
//!
//! A [`Migrator`] makes and removes indexes, gives records other keys and changes their values. Each
//! migration is a row of the store, written after each page: one that was killed goes on when it is
//! run again, and nothing is lost in between. [`plan()`] says which indexes a store lacks. A
//! [`Doctor`] looks through a whole store for what is not as it should be.
//!
//! [`struct@Copy`] and [`verify()`] are the same walk over two stores, in key order and side by side. Since a
//! copy compares before it writes, it needs no notes of how far it came: after a crash it is started
//! again, passes over what is equal, and goes on. Both read a page of each store at a time, whatever
//! the stores hold.
//!
//! Both stores must scan in key order.

mod adopt;
mod batch;
mod copy;
mod definition;
mod doctor;
mod edit;
mod error;
mod index;
mod ledger;
mod migrator;
mod pace;
mod plan;
mod preview;
mod rehearsal;
mod rekey;
mod rows;
mod transform;
mod verify;
mod walk;

pub use copy::{Copied, Copy};
pub use definition::{Definition, Source};
pub use doctor::{Doctor, Found, Probed, Promise, Report, Scratch, probe, probe_on};
pub use edit::Edit;
pub use error::{Error, Result};
pub use ledger::{Counts, Migration, Phase, Problem, Runner, State};
pub use migrator::{Change, Migrator};
pub use pace::Pause;
pub use plan::{Differing, Plan, Taken, plan};
pub use preview::Preview;
pub use verify::{Difference, Verified, verify};
