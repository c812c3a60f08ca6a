//! What can be wrong with what a store holds.

use keyward_engine::Version;
use keyward_key::Key;

/// What is wrong with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// No declared pattern has its shape, and it is none of Keyward's own.
    UnknownKey,
    /// A record lacks an index entry.
    MissingEntry,
    /// An index entry says something else than its record.
    WrongEntry,
    /// A unique entry names another record than the one that has the value.
    TakenEntry,
    /// Two records have one value of a unique index: which of them keeps it is for a person to say.
    DuplicateValue,
    /// An index entry whose record is not there, or has another value.
    OrphanedEntry,
    /// An index entry whose record has ended.
    ExpiredEntry,
    /// An index entry that leads to no record.
    BrokenEntry,
    /// An entry of an index that is not in the catalog, or disabled there.
    UnknownIndex,
    /// The mark of a writer who never came back.
    LeftMarker,
    /// A value that is not what its space's schema says, or too large for it.
    BadValue,
    /// A value that one of the space's indexes cannot take.
    Unindexable,
    /// Metadata that makes no sense.
    BadMetadata,
    /// A key longer than the store takes.
    LongKey,
    /// A value larger than the store takes.
    LargeValue,
}

impl Flaw {
    /// The stable code shown by every door.
    pub fn code(self) -> &'static str {
        match self {
            Self::UnknownKey => "unknown-key",
            Self::MissingEntry => "missing-entry",
            Self::WrongEntry => "wrong-entry",
            Self::TakenEntry => "taken-entry",
            Self::DuplicateValue => "duplicate-value",
            Self::OrphanedEntry => "orphaned-entry",
            Self::ExpiredEntry => "expired-entry",
            Self::BrokenEntry => "broken-entry",
            Self::UnknownIndex => "unknown-index",
            Self::LeftMarker => "left-marker",
            Self::BadValue => "bad-value",
            Self::Unindexable => "unindexable",
            Self::BadMetadata => "bad-metadata",
            Self::LongKey => "long-key",
            Self::LargeValue => "large-value",
        }
    }

    /// Whether mending it touches no record.
    pub fn is_mendable(self) -> bool {
        match self {
            Self::MissingEntry
            | Self::WrongEntry
            | Self::TakenEntry
            | Self::OrphanedEntry
            | Self::ExpiredEntry
            | Self::BrokenEntry
            | Self::UnknownIndex
            | Self::LeftMarker => true,
            Self::UnknownKey
            | Self::DuplicateValue
            | Self::BadValue
            | Self::Unindexable
            | Self::BadMetadata
            | Self::LongKey
            | Self::LargeValue => false,
        }
    }
}

impl Flaw {
    /// Whether it is about an entry that a record should have.
    pub(super) fn is_of_a_record(self) -> bool {
        let of_a_record =
            [Self::MissingEntry, Self::WrongEntry, Self::TakenEntry, Self::DuplicateValue];
        of_a_record.contains(&self)
    }

    /// Whether a writer who is under way may leave it for a moment, where commits take one key.
    pub fn may_pass(self) -> bool {
        self.is_mendable() || self == Self::DuplicateValue
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub flaw: Flaw,
    /// With which key: the entry's, where it is about an index entry.
    pub key: Key,
    /// The record that it is about.
    pub record: Option<Key>,
    /// In words.
    pub message: String,
    /// Whether it is about an entry of a unique index, which only one record can have.
    pub unique: bool,
    /// The version of the entry or the mark that shows it.
    pub(super) seen: Option<Version>,
}

/// What is wrong with some rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspected {
    /// How many rows were looked at.
    pub rows: usize,
    /// What is wrong with them.
    pub findings: Vec<Finding>,
    /// Where to go on; `None` at the end.
    pub position: Option<Vec<u8>>,
}

impl Finding {
    pub(super) fn new(flaw: Flaw, key: &Key, record: Option<&Key>, message: String) -> Self {
        Self { flaw, key: key.clone(), record: record.cloned(), message, unique: false, seen: None }
    }

    /// The same finding where another record without the entry has the same unique value.
    #[must_use]
    pub fn duplicate_of(mut self, other: &Key) -> Self {
        if let Some(record) = &self.record {
            self.message = super::record::duplicate(record, other);
            self.flaw = Flaw::DuplicateValue;
        }
        self
    }

    /// The same, as it was seen at this version.
    pub(super) fn seen(mut self, version: &Version) -> Self {
        self.seen = Some(version.clone());
        self
    }
}
