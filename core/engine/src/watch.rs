use keyward_key::Key;

use crate::Revision;

/// What a watcher is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Everything up to this revision has been told: the point to resume from. The first event of
    /// every watch is one of these, naming the revision after which the watch began: list *then*,
    /// and nothing is missed.
    Reached(Revision),
    /// What one commit changed in the watched range.
    Changed {
        /// The commit's revision.
        revision: Revision,
        /// The changed keys.
        changes: Vec<Change>,
    },
    /// The history that was asked for is no longer kept; no event follows. List again, and watch
    /// from now.
    TooOld {
        /// The earliest revision a watch can still resume from.
        earliest: Revision,
    },
}

/// A key that changed. The new value is read from the store: a feed says what changed, not what to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Key,
    /// How it changed.
    pub kind: ChangeKind,
}

/// How a key changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It was set or added to.
    Put,
    /// It was deleted.
    Deleted,
    /// It had expired, and its space was reclaimed. Absent it was from the moment it expired.
    Expired,
}
