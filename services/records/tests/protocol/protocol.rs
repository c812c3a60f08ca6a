//! The rules that writers, sweepers, rivals and readers follow, as data: the two that hold, and each
//! tempting shortcut as a change of one field.

use crate::store::{ENTRIES, Record, Set};

/// A part of a write. Within a part the calls for several entries come in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Makes a marker, or writes the intent into the record, as [`Intent`] says.
    Announce,
    /// Makes the new entries sure, and reads the versions of those that will go.
    Prepare,
    /// Makes the new entries sure.
    Touch,
    /// Reads the versions of the entries that will go.
    Look,
    /// Writes the record: from here on the write counts.
    Commit,
    /// Deletes the entries that went.
    Clean,
}

/// When a writer announces itself in the record before it touches an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    Never,
    /// Only where there is no record: the marker gives the commit a version to check.
    OnCreate,
    /// Always, with the list of entries in `pending`.
    Always,
}

/// When somebody who means to take an entry away first moves the version of the record that the
/// entry names, so that a writer in between cannot commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoke {
    Never,
    /// Only if the record announces the entry as pending.
    IfPending,
    Always,
}

impl Revoke {
    pub fn applies(self, seen: Record, entry: u8) -> bool {
        match self {
            Self::Never => false,
            Self::IfPending => seen.pending & (1 << entry) != 0,
            Self::Always => true,
        }
    }
}

/// What a writer does when a write gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Tells its caller so, and stops.
    GiveUp,
    /// Goes on, and looks by the write id in the record whether its commit was done.
    FindOut,
    /// Goes on as if nothing had been done.
    TryAgain,
}

#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    pub phases: &'static [Phase],
    pub intent: Intent,
    /// What a sweeper does before it deletes an entry.
    pub sweeper_revokes: Revoke,
    /// What a rival does before it takes over a unique entry.
    pub rival_revokes: Revoke,
    /// Whether a unique entry can be taken from an owner that does not hold the value.
    pub takes_over: bool,
    /// Whether the commit checks the version of the record that was read.
    pub checked: bool,
    /// Whether an entry that is there already is written again, which moves its version.
    pub bump: bool,
    /// Whether entries are deleted only at the version that was read.
    pub guarded: bool,
    /// Whether a sweeper reads the entry before the record.
    pub entry_first: bool,
    /// What a writer does when a write gets no answer.
    pub unanswered: Unanswered,
    /// Whether a query looks at the record before it answers.
    pub recheck: bool,
}

/// The protocol of this project: writers announce themselves only where there is no record; whoever
/// takes an entry away moves the version of its record first.
pub const REVOKING: Protocol = Protocol {
    phases: &[Phase::Announce, Phase::Prepare, Phase::Commit, Phase::Clean],
    intent: Intent::OnCreate,
    sweeper_revokes: Revoke::Always,
    rival_revokes: Revoke::Always,
    takes_over: true,
    checked: true,
    bump: true,
    guarded: true,
    entry_first: true,
    unanswered: Unanswered::FindOut,
    recheck: true,
};

/// The other one that holds, at the price of one more call for each write that changes entries:
/// writers always announce themselves.
pub const ANNOUNCING: Protocol = Protocol {
    intent: Intent::Always,
    sweeper_revokes: Revoke::IfPending,
    rival_revokes: Revoke::IfPending,
    ..REVOKING
};

/// Which entries a value has, and which of them are unique.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    pub unique: Set,
    /// The entries of each value.
    pub values: &'static [Set],
}

impl Schema {
    pub fn is_unique(&self, entry: u8) -> bool {
        self.unique & (1 << entry) != 0
    }

    /// Where an entry of a record is: records meet in the slots of unique entries.
    pub fn slot(&self, record: u8, entry: u8) -> u8 {
        if self.is_unique(entry) { entry } else { record * ENTRIES as u8 + entry }
    }

    /// The entry that lives in a slot.
    pub fn entry(slot: u8) -> u8 {
        slot % ENTRIES as u8
    }
}
