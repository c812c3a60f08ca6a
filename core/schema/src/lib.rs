//! What a store holds, declared.
//!
//! A schema file names stores and the spaces in them: the shape of their keys, who owns their
//! records, what their values look like, how they are indexed, how long they live. It is read once,
//! checked as a whole, and every problem is reported with its line and what to do about it.
//!
//! - [`Schema::load`] reads a file, [`Schema::parse`] a text; [`EXAMPLE`] is one to begin with.
//! - [`lint`] finds what is allowed and still a mistake, [`Schema::check_limits`] what does not fit
//!   into a store.
//! - [`diff`] says what a new schema means for data that is there.
//! - [`docs_page`] writes a schema as a page for people.
//!
//! `docs/schema.md` is the reference of the file.

mod answer;
pub mod bounds;
mod diff;
mod docs;
mod example;
mod limits;
mod lint;
mod load;
mod lock_name;
mod model;
mod nearest;
mod places;
mod problem;
mod property;
mod published;
mod shape;
mod url;
mod value;

pub use answer::Answer;
pub use diff::{Change, Diff, Migration, Source, Verdict, diff};
pub use docs::docs_page;
pub use example::EXAMPLE;
pub use limits::StoreLimits;
pub use lint::{Finding, Weight, lint};
pub use lock_name::LockNameError;
pub use model::{
    DeclaredQuery, FieldPath, FieldPathError, Index, IndexKind, Lifetime, LockTree, Ownership,
    Part, Schema, Scope, Share, Space, StoreDeclaration, ValueKind,
};
pub use problem::{Problem, Problems, Severity};
pub use published::Published;
pub use value::{Mismatch, Mismatches, ValueSchema};
