//! LMDB's data file, read page by page in safe code.
//!
//! LMDB trusts its file: a damaged page number or length sends it outside its map, which ends the
//! process. So everything that LMDB would follow is checked here first, by ordinary reads: page
//! numbers, kinds, bounds, the order of keys, and that no page is used twice. The format has no
//! checksums, so a changed byte that leaves all of this sound, and JSON valid, is not noticed.
//!
//! A walk needs a snapshot that no writer touches: that of a read transaction, or that of a store
//! which nobody has open.

mod check;
mod file;
mod layout;
mod lists;
mod nodes;
mod page_set;
mod salvage;
mod visit;
mod walk;

pub(crate) use check::{check, check_opening};
pub(crate) use file::PageFile;
pub(crate) use layout::Meta;
pub use salvage::Salvaged;
pub(crate) use salvage::salvage;
