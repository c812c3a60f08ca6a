//! What this process created and deleted a moment ago: lists may not show it yet.
//!
//! The database's index may follow its documents late, and later pages of a listing go by keys that were listed with the
//! first one. Without this, a process would list an entry that it has deleted itself.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use keyward_key::{Key, KeyRange};

use super::bounded::Bounded;
use super::window::Moment;

const CHANGES_MAX: usize = 4_096;
const BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Created,
    Deleted,
}

pub(super) struct OwnChanges(Mutex<Held>);

struct Held {
    last: u64,
    /// By the key of the entry.
    changes: Bounded<Key, (Change, Moment)>,
}

impl Default for OwnChanges {
    fn default() -> Self {
        Self(Mutex::new(Held { last: 0, changes: Bounded::new(CHANGES_MAX, BYTES_MAX) }))
    }
}

impl OwnChanges {
    /// The moment at which a listing begins.
    pub fn moment(&self, at: Timestamp) -> Moment {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Moment { at, change: held.last }
    }

    /// Notes a change that was acknowledged.
    pub fn note(&self, entry: Key, change: Change, at: Timestamp) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.last += 1;
        let moment = Moment { at, change: held.last };
        let bytes = entry.as_bytes().len();
        held.changes.insert(entry, (change, moment), bytes);
    }

    /// The changes in a range that a listing may not show, if its index is so late.
    pub fn unseen(
        &self,
        began: Moment,
        lag: Option<Duration>,
        entries: impl Fn(&Key) -> Key,
        range: &KeyRange,
    ) -> Vec<(Key, Change)> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unseen = |moment: &Moment| {
            let shows = lag.and_then(|lag| moment.at.checked_add(lag).ok());
            moment.change > began.change || shows.is_some_and(|shows| shows > began.at)
        };
        let unseen = held.changes.iter().filter(|(_, (_, moment))| is_unseen(moment));
        let keyed = unseen.map(|(entry, (change, _))| (entries(entry), *change));
        keyed.filter(|(key, _)| range.contains(key)).collect()
    }
}
