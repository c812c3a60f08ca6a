//! Moving stores: a copy from any engine to any other, and an exact comparison.
//!
//! [`struct@Copy`] and [`verify()`] are the same walk over two stores, in key order and side by side. Since a
//! copy compares before it writes, it needs no notes of how far it came: after a crash it is started
//! again, passes over what is equal, and goes on. Both read a page of each store at a time, whatever
//! the stores hold.
//!
//! Both stores must scan in key order.

mod batch;
mod copy;
mod rows;
mod verify;
mod walk;

pub use copy::{Copied, Copy};
pub use verify::{Difference, Verified, verify};
