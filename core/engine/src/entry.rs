use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::Json;

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub value: Json,
    /// What the writer said about the value, as a JSON object.
    pub metadata: Option<Json>,
    /// The version this write gave the key.
    pub version: Version,
    /// From when on the entry is absent.
    pub expires: Option<Timestamp>,
}

impl Entry {
    /// Whether the entry counts as absent at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// A version of one key: opaque, to be compared for equality only. A key never has the same version
/// twice, also after it was deleted and created again.
///
/// On an engine that cannot [compare](crate::Capabilities::compare), a version may be a fingerprint:
/// another entry has another one, and the same entry, written again, may have the same.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Number(u64),
    Text(Arc<str>),
}

impl Version {
    /// Takes a version back from the text that `Display` gave.
    ///
    /// ```
    /// use keyward_engine::Version;
    /// assert_eq!(Version::parse("17"), Version::from(17));
    /// assert_eq!(Version::parse("3-a9f2").to_string(), "3-a9f2");
    /// ```
    pub fn parse(text: &str) -> Self {
        match text.parse::<u64>() {
            // Only the canonical form is a number, so that text and version are one to one.
            Ok(number) if number.to_string() == text => Self(Form::Number(number)),
            _ => Self(Form::Text(text.into())),
        }
    }

    /// The number, for engines that count.
    pub fn as_number(&self) -> Option<u64> {
        match &self.0 {
            Form::Number(number) => Some(*number),
            Form::Text(_) => None,
        }
    }
}

impl From<u64> for Version {
    fn from(number: u64) -> Self {
        Self(Form::Number(number))
    }
}

impl From<Revision> for Version {
    fn from(revision: Revision) -> Self {
        Self(Form::Number(revision.0))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Number(number) => write!(f, "{number}"),
            Form::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// A point in the history of a store: each commit that changes something has the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
