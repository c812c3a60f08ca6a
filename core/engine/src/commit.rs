use std::time::Duration;

use jiff::Timestamp;
use keyward_key::Key;

use crate::{Json, Revision, Version};

/// Checks and writes that happen together or not at all. All entries that one commit writes have one
/// version, so that it shows later what was written together.
///
/// ```
/// use keyward_engine::{Commit, Expect, Json, Put};
/// use keyward_key::Key;
///
/// let note = Key::parse("user:7:notes:n1")?;
/// let commit = Commit::new()
///     .check(note.clone(), Expect::Absent)
///     .put(note, Put::new(Json::parse(r#"{"text":"hi"}"#)?))
///     .add(Key::parse("user:7:note-count")?, 1);
/// assert_eq!((commit.checks.len(), commit.writes.len()), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// What must hold for the writes to be applied.
    pub checks: Vec<Check>,
    /// What to change; at most one write for each key.
    pub writes: Vec<Write>,
}

/// What a key must be for a commit to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The key.
    pub key: Key,
    /// What it must be.
    pub expect: Expect,
}

/// What a checked key must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The key must not exist (or have expired).
    Absent,
    /// The key must exist with exactly this version.
    Version(Version),
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Set the key, replacing value, metadata and expiry.
    Put(Key, Put),
    /// Remove the key; removing what is not there changes nothing.
    Delete(Key),
    /// Add to the whole number the key holds, keeping its metadata and expiry; an absent key counts
    /// as zero. If the key holds something else, or the sum does not fit 64 bits, the whole commit
    /// fails as [`Invalid`](crate::ErrorKind::Invalid).
    Add(Key, i64),
}

impl Write {
    /// The key that is changed.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put(key, _) | Self::Delete(key) | Self::Add(key, _) => key,
        }
    }
}

/// What to set a key to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The value.
    pub value: Json,
    /// What to say about the value: a JSON object.
    pub metadata: Option<Json>,
    /// When the entry ends; `None` is never.
    pub expiry: Option<Expiry>,
}

impl Put {
    /// A value without metadata that never expires.
    pub fn new(value: Json) -> Self {
        Self { value, metadata: None, expiry: None }
    }

    /// The same with metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same with an end.
    #[must_use]
    pub fn expiring(mut self, expiry: Expiry) -> Self {
        self.expiry = Some(expiry);
        self
    }
}

/// When an entry ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// This long after the write, by the engine's clock.
    After(Duration),
    /// At this moment, by the engine's clock: to keep the end of an entry that is written again. A
    /// moment that has passed, or is nearer than the engine's shortest time to live, is taken as it
    /// is: the entry is absent from then on, even if its space is kept longer.
    At(Timestamp),
}

impl Expiry {
    /// The moment it means when `now` is the time of the write. Rounded up to the next millisecond:
    /// an entry never ends before its time.
    pub fn moment(self, now: Timestamp) -> Timestamp {
        let exact = match self {
            Self::At(at) => at,
            Self::After(ttl) => now.saturating_add(ttl).unwrap_or(Timestamp::MAX),
        };
        let past = exact.subsec_nanosecond().rem_euclid(1_000_000);
        if past == 0 {
            return exact;
        }
        let rest = Duration::from_nanos(u64::from((1_000_000 - past).unsigned_abs()));
        exact.saturating_add(rest).unwrap_or(exact)
    }
}

/// How a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a commit may have been refused by a check"]
pub enum Outcome {
    /// Every check held and every write is in the store.
    Applied {
        /// The commit's place in the store's history, on engines that keep one. A commit that
        /// changed nothing has the revision the store was at. Not a point to start a watch from:
        /// on shared databases a commit with a lower revision may still be on its way. A watch
        /// tells such points itself ([`Event::Reached`](crate::Event::Reached)).
        revision: Option<Revision>,
        /// The new version of each written key, in the order of the writes; `None` for deletes. All
        /// that are there are equal, those of numbers that were added to included: a commit has one
        /// version.
        versions: Vec<Option<Version>>,
    },
    /// A check did not hold; nothing was written.
    Conflicted {
        /// The checks that did not hold, as indices into [`Commit::checks`].
        failed: Vec<usize>,
    },
}

impl Outcome {
    /// Whether the writes are in the store.
    pub fn is_applied(&self) -> bool {
        matches!(self, Self::Applied { .. })
    }

    /// The new versions, in the order of the writes, if the writes are in the store.
    pub fn versions(&self) -> Option<&[Option<Version>]> {
        match self {
            Self::Applied { versions, .. } => Some(versions),
            Self::Conflicted { .. } => None,
        }
    }
}

impl Commit {
    /// Nothing to check, nothing to write.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more check.
    #[must_use]
    pub fn check(mut self, key: Key, expect: Expect) -> Self {
        self.checks.push(Check { key, expect });
        self
    }

    /// The same with one more key set.
    #[must_use]
    pub fn put(mut self, key: Key, put: Put) -> Self {
        self.writes.push(Write::Put(key, put));
        self
    }

    /// The same with one more key removed.
    #[must_use]
    pub fn delete(mut self, key: Key) -> Self {
        self.writes.push(Write::Delete(key));
        self
    }

    /// The same with one more number added to.
    #[must_use]
    pub fn add(mut self, key: Key, amount: i64) -> Self {
        self.writes.push(Write::Add(key, amount));
        self
    }

    /// The bytes of all keys, values and metadata: what counts against a commit's size limit.
    pub fn size(&self) -> usize {
        let checks = self.checks.iter().map(|check| check.key.as_bytes().len());
        let writes = self.writes.iter().map(|write| {
            let key = write.key().as_bytes().len();
            match write {
                Write::Put(_, put) => {
                    key + put.value.len() + put.metadata.as_ref().map_or(0, Json::len)
                }
                Write::Delete(_) => key,
                Write::Add(..) => key + size_of::<i64>(),
            }
        });
        checks.chain(writes).sum()
    }
}
