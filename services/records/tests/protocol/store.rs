//! The engine as the model sees it: single keys with versions, and nothing that spans two of them.
//!
//! Versions never repeat and are compared for equality only, so the model needs no numbers: whoever
//! has read a key holds a [`Guard`] that is `Current` until the next write of that key and
//! `Outdated` for ever after. Being absent is no version: a guard of `Absent` holds again when the
//! key has been made and deleted in between.

/// Records in the model at most.
pub const RECORDS: usize = 3;
/// Entries one record can have at most.
pub const ENTRIES: usize = 3;

/// A set of entries of one record, a bit each.
pub type Set = u8;

/// The members of a set.
pub fn members(set: Set) -> impl Iterator<Item = u8> {
    (0..ENTRIES as u8).filter(move |entry| set & (1 << entry) != 0)
}

/// What the key of a record holds.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// None: a marker, made before the entries of a record that does not exist yet.
    pub value: Option<u8>,
    /// The entries that the last committed write made sure of.
    pub idx: Set,
    /// The entries that a writer is about to make; only where [`Intent::Always`] is the rule.
    ///
    /// [`Intent::Always`]: crate::protocol::Intent::Always
    pub pending: Set,
}

impl Record {
    pub fn holds(self, entry: u8) -> bool {
        self.value.is_some() && self.idx & (1 << entry) != 0
    }
}

/// What a writer knows of the version of a key.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    Unread,
    Absent,
    Current,
    Outdated,
    /// No check at all.
    Any,
}

impl Guard {
    pub fn outdate(&mut self) {
        if *self == Self::Current {
            *self = Self::Outdated;
        }
    }

    fn passes(self, absent: bool) -> bool {
        match self {
            Self::Any | Self::Current => true,
            Self::Absent => absent,
            Self::Outdated => false,
            Self::Unread => unreachable!("a check of a key that was not read"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Record(u8),
    Entry(u8),
}

/// One call of the engine.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Call {
    ReadRecord(u8),
    ReadEntry(u8),
    /// The records that have a plain entry for this value, one page of a scan.
    List(u8),
    PutRecord {
        record: u8,
        guard: Guard,
        to: Record,
        /// Whether the write gives the record a new write id.
        renames: bool,
    },
    DeleteRecord {
        record: u8,
        guard: Guard,
    },
    PutEntry {
        slot: u8,
        guard: Guard,
        owner: u8,
    },
    DeleteEntry {
        slot: u8,
        guard: Guard,
    },
}

impl Call {
    /// The key that the call writes.
    pub fn writes(&self) -> Option<Key> {
        match *self {
            Self::ReadRecord(_) | Self::ReadEntry(_) | Self::List(_) => None,
            Self::PutRecord { record, .. } | Self::DeleteRecord { record, .. } => {
                Some(Key::Record(record))
            }
            Self::PutEntry { slot, .. } | Self::DeleteEntry { slot, .. } => Some(Key::Entry(slot)),
        }
    }

    /// The record that gets a new write id, or loses its own, if the call is applied.
    pub fn renames(&self) -> Option<u8> {
        match *self {
            Self::PutRecord { record, renames: true, .. } | Self::DeleteRecord { record, .. } => {
                Some(record)
            }
            _ => None,
        }
    }

    pub fn guard_mut(&mut self) -> Option<&mut Guard> {
        match self {
            Self::ReadRecord(_) | Self::ReadEntry(_) | Self::List(_) => None,
            Self::PutRecord { guard, .. }
            | Self::DeleteRecord { guard, .. }
            | Self::PutEntry { guard, .. }
            | Self::DeleteEntry { guard, .. } => Some(guard),
        }
    }
}

/// What the caller gets to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Record(Option<Record>),
    /// The owner of the entry.
    Entry(Option<u8>),
    Listed(u8),
    Applied,
    Conflicted,
    /// Sent, and no answer came.
    Unknown,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Store {
    pub records: [Option<Record>; RECORDS],
    /// One more than the owner, 0 if absent. A unique entry is in the slot of its own number, a
    /// plain one in a slot of its record.
    pub entries: [u8; RECORDS * ENTRIES],
}

impl Store {
    pub fn owner(&self, slot: u8) -> Option<u8> {
        self.entries[usize::from(slot)].checked_sub(1)
    }

    pub fn holds(&self, record: u8, entry: u8) -> bool {
        self.records[usize::from(record)].is_some_and(|record| record.holds(entry))
    }

    /// Does one call. The caller outdates the guards of everybody else when it was applied.
    pub fn apply(&mut self, call: &Call) -> Reply {
        match *call {
            Call::ReadRecord(record) => Reply::Record(self.records[usize::from(record)]),
            Call::ReadEntry(slot) => Reply::Entry(self.owner(slot)),
            Call::List(entry) => {
                let listed =
                    |record: &usize| self.entries[record * ENTRIES + usize::from(entry)] != 0;
                Reply::Listed((0..RECORDS).filter(listed).map(|record| 1 << record).sum())
            }
            Call::PutRecord { record, guard, to, .. } => {
                write(&mut self.records[usize::from(record)], guard, Some(to), Option::is_none)
            }
            Call::DeleteRecord { record, guard } => {
                write(&mut self.records[usize::from(record)], guard, None, Option::is_none)
            }
            Call::PutEntry { slot, guard, owner } => {
                write(&mut self.entries[usize::from(slot)], guard, owner + 1, |owner| *owner == 0)
            }
            Call::DeleteEntry { slot, guard } => {
                write(&mut self.entries[usize::from(slot)], guard, 0, |owner| *owner == 0)
            }
        }
    }
}

fn write<T>(place: &mut T, guard: Guard, to: T, absent: fn(&T) -> bool) -> Reply {
    if !guard.passes(absent(place)) {
        return Reply::Conflicted;
    }
    *place = to;
    Reply::Applied
}
