//! Keys, and everything that can be said about them without a store.
//!
//! A [`Key`] is a list of text segments. It has two forms:
//!
//! - **Colon text** (`user:7:notes:n1`) is what people, files, HTTP and text-only databases see.
//!   `%`, `:` and control characters inside a segment are percent-escaped, so a segment can never
//!   turn into two.
//! - **The tuple encoding** ([`Key::as_bytes`]) is what our own layouts store. Its separator sorts
//!   below every data byte, so byte order is segment order. `docs/key-format.md` draws it byte by
//!   byte.
//!
//! A [`Pattern`] such as `{page}:policy:{source}[:{language}]` builds and parses keys of one shape;
//! a [`PatternSet`] refuses patterns that could claim the same key. A [`KeyRange`] is a contiguous
//! part of the key order, and its constructors cannot express a prefix that stops in the middle of
//! a segment by accident.
//!
//! ```
//! use keyward_key::{Bindings, Key, KeyRange, Pattern, Prefix};
//!
//! let pattern: Pattern = "user:{user}:notes:{note}".parse()?;
//! let key = pattern.build(&Bindings::new().with("user", "a:b").with("note", "n1"))?;
//! assert_eq!(key.to_string(), "user:a%3Ab:notes:n1");
//! assert_eq!(pattern.parse_key(&key).unwrap().text("user"), Some("a:b"));
//!
//! let notes_of_7 = KeyRange::under(&Prefix::parse("user:7")?);
//! assert!(notes_of_7.contains(&Key::parse("user:7:notes:n1")?));
//! assert!(!notes_of_7.contains(&Key::parse("user:70:notes:n1")?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encoding;
mod error;
mod key;
mod names;
mod pattern;
mod prefix;
mod range;
#[cfg(feature = "json-schema")]
mod schema;
mod serial;
mod sortable;
mod text;

pub use error::{BuildError, KeyError, ParseError};
pub use key::{Key, Segments};
pub use names::{FileNames, NameCollision};
pub use pattern::{
    AmbiguousPatterns, Bindings, Pattern, PatternSet, SegmentType, SegmentValue, Variable,
};
pub use prefix::Prefix;
pub use range::KeyRange;

/// First segments that belong to Keyward itself. A variable in first position never takes one of
/// these values, so a page called `job` cannot be mistaken for a job.
pub const RESERVED_FIRST_SEGMENTS: [&str; 7] =
    ["index", "job", "system", "lock", "queue", "dead-letter", "metadata"];

/// Whether `segment` is one of [`RESERVED_FIRST_SEGMENTS`].
pub fn is_reserved(segment: &str) -> bool {
    RESERVED_FIRST_SEGMENTS.contains(&segment)
}
