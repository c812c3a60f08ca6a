//! The shape of this repository, as rules: which crate may use which, where a crate lies and what
//! it is called, where `unsafe` may stand, and which file names say nothing.
//!
//! The rules are plain functions over texts; `tests/tree.rs` holds the repository to them. To allow
//! something new, change a table here, and say why in the commit.

mod direction;
mod manifest;
mod place;
mod source;

pub use direction::{Use, refused_edge, refused_library};
pub use manifest::inherits_lints;
pub use place::misplaced;
pub use source::{UNSAFE_FILES, is_vague, unsafe_lines};
