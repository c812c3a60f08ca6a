//! What is to become of a record, decided from what it is now: the same on every engine.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Entry, Expiry, Json, Version};
use keyward_key::Key;
use keyward_schema::Space;

use crate::access::Admitted;
use crate::bookkeeping::Bookkeeping;
use crate::catalog::Kept;
use crate::index::IndexEntry;
use crate::{Error, Merge, Result};

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: Json,
    /// What the writer said about the value, as a JSON object.
    pub metadata: Option<Json>,
    /// The version this value has.
    pub version: Version,
    /// From when on it is absent.
    pub expires: Option<Timestamp>,
}

impl Record {
    /// The record that is stored at a key, unless it is only the mark of one to come.
    pub(crate) fn stored(key: Key, entry: Entry) -> Result<Option<Self>> {
        // Most records have no metadata, and then nothing to tell apart.
        if entry.metadata.is_some() {
            return Current::new(key, entry).map(Current::live);
        }
        let Entry { value, version, expires, .. } = entry;
        Ok(Some(Self { key, value, metadata: None, version, expires }))
    }

    /// How many bytes its value and metadata have.
    pub(crate) fn bytes(&self) -> usize {
        self.value.len() + self.metadata.as_ref().map_or(0, Json::len)
    }
}

/// What must be so for a change to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    /// Nothing.
    #[default]
    Any,
    /// There is no such record.
    Absent,
    /// There is such a record.
    Present,
    /// The record has this version.
    Version(Version),
}

/// How long a record shall live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ttl {
    /// As the space says.
    #[default]
    Declared,
    /// As long as it would have anyway; a new record as the space says.
    Keep,
    /// This long.
    After(Duration),
    /// This long, and anew each time it is read past half of it, whatever the space says.
    Sliding(Duration),
    /// For ever, whatever the space says.
    Never,
}

/// A value to be put.
///
/// ```
/// use std::time::Duration;
/// use keyward_engine::Json;
/// use keyward_records::{Draft, Precondition, Ttl};
///
/// let draft = Draft::new(Json::parse(r#"{"title":"hi"}"#)?)
///     .expecting(Precondition::Absent)
///     .ttl(Ttl::After(Duration::from_secs(3600)));
/// assert_eq!(draft.expect, Precondition::Absent);
/// # Ok::<(), keyward_engine::JsonError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The value.
    pub value: Json,
    /// What to say about the value: a JSON object.
    pub metadata: Option<Json>,
    /// How long the record shall live.
    pub ttl: Ttl,
    /// What must be so.
    pub expect: Precondition,
}

impl Draft {
    /// A value, whatever was there before.
    pub fn new(value: Json) -> Self {
        Self { value, metadata: None, ttl: Ttl::Declared, expect: Precondition::Any }
    }

    /// The same with metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same with another lifetime.
    #[must_use]
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = ttl;
        self
    }

    /// The same under a condition.
    #[must_use]
    pub fn expecting(mut self, expect: Precondition) -> Self {
        self.expect = expect;
        self
    }
}

/// What a record shall be, as a function of what it is decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    value: Json,
    /// `None` keeps what there is.
    metadata: Option<Option<Json>>,
    ttl: Ttl,
}

impl Next {
    /// This value, with the metadata and the end that the record has.
    pub fn new(value: Json) -> Self {
        Self { value, metadata: None, ttl: Ttl::Keep }
    }

    /// The same with other metadata, or none.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Option<Json>) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same with another lifetime.
    #[must_use]
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = ttl;
        self
    }
}

/// A change of one record by a function of what it is: for [`Space::apply`](crate::Space::apply), and
/// for [`Space::apply_together`](crate::Space::apply_together), which makes many in one commit.
pub struct Update<'f> {
    pub(crate) key: Key,
    pub(crate) expect: Precondition,
    pub(crate) update: Box<Updating<'f>>,
}

impl<'f> Update<'f> {
    /// Sets a record to what `update` makes of it; `None` leaves it as it is. `update` runs again if
    /// another change comes between.
    pub fn new(
        key: Key,
        update: impl FnMut(Option<&Record>) -> Result<Option<Next>> + Send + Sync + 'f,
    ) -> Self {
        Self { key, expect: Precondition::Any, update: Box::new(update) }
    }

    /// The same under a condition.
    #[must_use]
    pub fn expecting(mut self, expect: Precondition) -> Self {
        self.expect = expect;
        self
    }
}

impl fmt::Debug for Update<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update").field("key", &self.key).finish_non_exhaustive()
    }
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a change whose precondition did not hold was not made"]
pub enum Written {
    /// The record has the new value.
    Applied {
        /// Its version.
        version: Version,
        /// Whether there was none before.
        created: bool,
    },
    /// The record is gone.
    Removed,
    /// There was nothing to change.
    Unchanged {
        /// The version of what is there.
        version: Option<Version>,
    },
    /// The precondition did not hold; nothing was changed.
    Conflicted {
        /// The version that is there instead.
        current: Option<Version>,
    },
}

impl Written {
    /// The record's new version, if the change was made.
    pub fn version(&self) -> Option<&Version> {
        match self {
            Self::Applied { version, .. } => Some(version),
            Self::Removed | Self::Unchanged { .. } | Self::Conflicted { .. } => None,
        }
    }

    /// Whether the precondition held.
    pub fn is_accepted(&self) -> bool {
        !matches!(self, Self::Conflicted { .. })
    }
}

/// A function from what a record is to what it shall be; `None` leaves it as it is.
pub(crate) type Updating<'f> =
    dyn FnMut(Option<&Record>) -> Result<Option<Next>> + Send + Sync + 'f;

/// A change to one record.
pub(crate) struct Change<'f> {
    pub target: Admitted,
    pub expect: Precondition,
    pub ttl: Ttl,
    pub kind: ChangeKind<'f>,
}

pub(crate) enum ChangeKind<'f> {
    Put {
        value: Json,
        metadata: Option<Json>,
    },
    /// What another key had, with its end.
    Place {
        value: Json,
        metadata: Option<Json>,
        expires: Option<Timestamp>,
        ttl_ms: Option<u64>,
    },
    Merge(Merge),
    Update(Box<Updating<'f>>),
    /// What is made of an earlier version, whose row must not change meanwhile.
    Restore {
        restore: Box<Updating<'f>>,
        row: Key,
        version: Version,
    },
    /// The same again, with a new end.
    Touch,
    Delete,
}

/// A record as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub record: Record,
    pub kept: Bookkeeping,
}

impl Current {
    pub fn new(key: Key, entry: Entry) -> Result<Self> {
        let (metadata, kept) = Bookkeeping::split(entry.metadata)?;
        let Entry { value, version, expires, .. } = entry;
        Ok(Self { record: Record { key, value, metadata, version, expires }, kept })
    }

    /// Whether both have the same value and metadata.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let (one, other) = (&self.record, &other.record);
        one.value == other.value && one.metadata == other.metadata
    }

    /// The record, unless it is only the mark of one to come.
    pub fn live(self) -> Option<Record> {
        (!self.kept.marker).then_some(self.record)
    }
}

/// What to do.
pub(crate) enum Decision {
    /// The precondition does not hold.
    Conflict,
    /// There is nothing to do.
    Leave,
    Remove,
    Write(NewState),
}

/// What a record shall be.
pub(crate) struct NewState {
    pub value: Json,
    pub metadata: Option<Json>,
    pub expiry: Option<Expiry>,
    pub ttl_ms: Option<u64>,
}

impl Change<'static> {
    /// A record as another key had it, where there is none.
    pub fn placing(target: Admitted, was: &Current) -> Self {
        let Record { value, metadata, expires, .. } = was.record.clone();
        let kind = ChangeKind::Place { value, metadata, expires, ttl_ms: was.kept.ttl_ms };
        Self { target, expect: Precondition::Absent, ttl: Ttl::Keep, kind }
    }

    /// A record away, whatever it is.
    pub fn removing(target: Admitted) -> Self {
        Self { target, expect: Precondition::Any, ttl: Ttl::Keep, kind: ChangeKind::Delete }
    }
}

impl Change<'_> {
    /// What to do, given what is there now. Everything about the new value is checked here.
    pub fn decide(&mut self, space: &Space, current: Option<&Current>) -> Result<Decision> {
        let record = current.filter(|current| !current.kept.marker).map(|current| &current.record);
        let holds = match (&self.expect, record) {
            (Precondition::Any, _)
            | (Precondition::Absent, None)
            | (Precondition::Present, Some(_)) => true,
            (Precondition::Version(version), Some(record)) => *version == record.version,
            _ => false,
        };
        if !holds {
            return Ok(Decision::Conflict);
        }
        let mut ttl = self.ttl;
        let (value, metadata) = match &mut self.kind {
            ChangeKind::Delete if record.is_none() => return Ok(Decision::Leave),
            ChangeKind::Delete => return Ok(Decision::Remove),
            ChangeKind::Put { value, metadata } => (value.clone(), metadata.clone()),
            ChangeKind::Place { value, metadata, expires, ttl_ms } => {
                check_value(space, value)?;
                return Ok(Decision::Write(NewState {
                    value: value.clone(),
                    metadata: metadata.clone(),
                    expiry: expires.map(Expiry::At),
                    ttl_ms: *ttl_ms,
                }));
            }
            ChangeKind::Merge(merge) => {
                let value = merge.apply(record.map(|record| &record.value))?;
                (value, record.and_then(|record| record.metadata.clone()))
            }
            ChangeKind::Update(update) | ChangeKind::Restore { restore: update, .. } => {
                let Some(next) = update(record)? else { return Ok(Decision::Leave) };
                ttl = next.ttl;
                let kept = || record.and_then(|record| record.metadata.clone());
                (next.value, next.metadata.unwrap_or_else(kept))
            }
            ChangeKind::Touch => match record {
                Some(record) => (record.value.clone(), record.metadata.clone()),
                None => return Ok(Decision::Leave),
            },
        };
        // What is only to live on is not judged again: the schema may ask for more by now.
        if !matches!(self.kind, ChangeKind::Touch) {
            check_value(space, &value)?;
            if let Some(metadata) = &metadata {
                Bookkeeping::admit(metadata)?;
            }
        }
        let own = current.and_then(|current| current.kept.ttl_ms).map(Duration::from_millis);
        let Life { expiry, sliding } = Life::new(space, ttl, record, own);
        // Reading prolongs life by what was asked for, so that is kept where it is not the space's.
        let declared = space.lifetime.filter(|lifetime| lifetime.sliding).map(|it| it.ttl);
        let own = sliding.filter(|ttl| declared != Some(*ttl));
        let ttl_ms = own.and_then(|ttl| u64::try_from(ttl.as_millis()).ok());
        Ok(Decision::Write(NewState { value, metadata, expiry, ttl_ms }))
    }

    /// The entries of the value that is to be written. What is only to live on stays in the indexes
    /// that have it, though another one could not take it.
    pub fn entries(
        &self,
        space: &crate::Space,
        indexes: &[Kept],
        value: &Json,
    ) -> Result<Vec<IndexEntry>> {
        match self.kind {
            ChangeKind::Touch => Ok(space.held(indexes, &self.target, value)),
            _ => space.entries(indexes, &self.target, value),
        }
    }
}

/// How long a record is to live.
struct Life {
    expiry: Option<Expiry>,
    /// By how much reading prolongs it, if it does.
    sliding: Option<Duration>,
}

impl Life {
    fn new(space: &Space, ttl: Ttl, record: Option<&Record>, own: Option<Duration>) -> Self {
        let declared = space.lifetime.map(|lifetime| lifetime.ttl);
        let slides = space.lifetime.is_some_and(|lifetime| lifetime.sliding);
        let by = |ttl: Option<Duration>| ttl.filter(|_| slides);
        match (ttl, record) {
            (Ttl::Never, _) => Self { expiry: None, sliding: None },
            (Ttl::After(ttl), _) => {
                Self { expiry: Some(Expiry::After(ttl)), sliding: by(Some(ttl)) }
            }
            (Ttl::Sliding(ttl), _) => Self { expiry: Some(Expiry::After(ttl)), sliding: Some(ttl) },
            (Ttl::Keep, Some(record)) => {
                Self { expiry: record.expires.map(Expiry::At), sliding: own.or(by(declared)) }
            }
            (Ttl::Keep, None) | (Ttl::Declared, _) => {
                Self { expiry: declared.map(Expiry::After), sliding: by(declared) }
            }
        }
    }
}

/// Refuses a value that the space does not take.
pub(crate) fn check_value(space: &Space, value: &Json) -> Result<()> {
    if let Some(bytes_max) = space.value_bytes_max.filter(|max| value.len() > *max) {
        let (space, bytes) = (space.name.clone(), value.len());
        return Err(Error::ValueTooLarge { space, bytes, bytes_max });
    }
    let Some(schema) = &space.value else {
        return Ok(());
    };
    let parsed = serde_json::from_slice(value.as_bytes())
        .map_err(|error| Error::BadChange(format!("the value cannot be checked: {error}")))?;
    let mismatches = schema.mismatches(&parsed);
    if mismatches.is_empty() {
        return Ok(());
    }
    Err(Error::SchemaMismatch { space: space.name.clone(), mismatches })
}
