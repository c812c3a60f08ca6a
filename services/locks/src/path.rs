use std::fmt;
use std::str::FromStr;

use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What is locked below a root: segments, from coarse to fine. Without any, the whole root.
///
/// Paths are compared segment by segment: `policies` is above `policies:123`, and `policies:1` has
/// nothing to do with `policies:12`.
///
/// ```
/// use keyward_locks::LockPath;
///
/// let policies = LockPath::parse("policies")?;
/// let french = LockPath::new(["policies", "123", "fr"])?;
/// assert!(policies.is_above(&french) && LockPath::root().is_above(&policies));
/// assert!(!LockPath::parse("policies:1")?.overlaps(&LockPath::parse("policies:12")?));
/// assert_eq!(french.to_string(), "policies:123:fr");
/// # Ok::<(), keyward_locks::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LockPath(Vec<String>);

impl LockPath {
    /// How many segments a path may have.
    pub const SEGMENTS_MAX: usize = 16;
    /// How long its segments may be together.
    pub const BYTES_MAX: usize = 1_024;

    /// The whole root.
    pub fn root() -> Self {
        Self(Vec::new())
    }

    /// A path of segments as they are. Refused if one is empty, or if there are too many or they
    /// are too long.
    pub fn new<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> Result<Self> {
        let segments: Vec<String> = segments.into_iter().map(Into::into).collect();
        let bad = |reason: String| {
            let path = segments.join(":").chars().take(80).collect();
            Err(Error::BadPath { path, reason })
        };
        if segments.iter().any(String::is_empty) {
            return bad("a segment is empty".to_owned());
        }
        if segments.len() > Self::SEGMENTS_MAX {
            return bad(format!("it has more than {} segments", Self::SEGMENTS_MAX));
        }
        if segments.iter().map(String::len).sum::<usize>() > Self::BYTES_MAX {
            return bad(format!("it is longer than {} bytes", Self::BYTES_MAX));
        }
        Ok(Self(segments))
    }

    /// Reads colon text, escaped as in keys; the empty text is the whole root.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        match Key::parse(text) {
            Ok(key) => Self::new(key.segments()),
            Err(error) => {
                Err(Error::BadPath { path: text.to_owned(), reason: error.message().to_owned() })
            }
        }
    }

    /// The segments.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// Whether this is the whole root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the other path lies below this one. No path lies below itself.
    pub fn is_above(&self, other: &Self) -> bool {
        self.0.len() < other.0.len() && other.0.starts_with(&self.0)
    }

    /// Whether the paths are the same, or one lies below the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0) || self.0.starts_with(&other.0)
    }
}

impl fmt::Display for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Key::from_segments(&self.0) {
            Ok(key) => key.fmt(f),
            Err(_) => Ok(()),
        }
    }
}

impl FromStr for LockPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// Whether others may hold the same at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nobody else.
    #[default]
    Exclusive,
    /// Others who share it too.
    Shared,
}

impl Mode {
    /// Whether holders of two modes keep each other out where their paths overlap.
    pub fn excludes(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        })
    }
}
