//! The rows of roots: which partitions there are.
//!
//! DynamoDB cannot list its partitions in order. So each root that an entry is written to has a row in a partition of
//! its own. The row is written before the root's first entry, or in the same transaction, and never removed:
//! so every entry's root has one, whatever crashes. A root whose entries are all gone costs scans an empty read.
//!
//! A process remembers which rows are there. All rows lie in one partition, which takes about 1,000 writes a second
//! for all processes together. So a row is written again only after an hour, in case the table was restored from a
//! backup. That the table was deleted and made again by somebody else, its header tells: it has an id, and is read once in
//! a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::table::StoreTable;

/// How many roots are remembered; each has up to a kilobyte.
const KNOWN_MAX: usize = 16_384;
/// How long a row is taken to be there once it was seen or written.
const CONFIRMED_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How long the table is taken to be the same: less than AWS needs to delete one and to make another.
const CHECKED_FOR: SignedDuration = SignedDuration::from_secs(10);

/// Roots that have a row in a table, and when that was last certain.
pub(crate) struct KnownRoots(Mutex<Known>);

struct Known {
    rows: HashMap<Vec<u8>, Timestamp>,
    /// The table that they are in.
    table: Option<StoreTable>,
    checked: Timestamp,
}

impl KnownRoots {
    /// None yet, in a table whose header was just read.
    pub(crate) fn new(table: StoreTable, now: Timestamp) -> Self {
        Self(Mutex::new(Known { rows: HashMap::new(), table: Some(table), checked: now }))
    }

    /// Whether a commit to these roots must read the header before it trusts that they are known. One commit does it for
    /// all that come meanwhile.
    pub(crate) fn is_check_due(&self, roots: &[&[u8]], now: Timestamp) -> bool {
        let mut known = self.lock();
        if !roots.iter().any(|root| known.rows.contains_key(*root)) {
            return false;
        }
        let is_due = !is_within(known.checked, now, CHECKED_FOR);
        if is_due {
            known.checked = now;
        }
        is_due
    }

    /// What the header said; none if there is no header, or it could not be read.
    pub(crate) fn checked(&self, table: Option<StoreTable>, now: Timestamp) {
        let mut known = self.lock();
        known.checked = now;
        if table.is_none() || known.table != table {
            known.rows.clear();
            known.table = table;
        }
    }

    /// Those roots of a commit whose rows it must write.
    ///
    /// For a row that was there a while ago, one commit does it for all that come meanwhile: transactions that write
    /// one row at the same time would make each other start again.
    pub(crate) fn claim<'r>(&self, mut roots: Vec<&'r [u8]>, now: Timestamp) -> Claim<'_, 'r> {
        let mut known = self.lock();
        roots.retain(|root| {
            let Some(confirmed) = known.rows.get_mut(*root) else { return true };
            let is_recent = is_within(*confirmed, now, CONFIRMED_FOR);
            if !is_recent {
                *confirmed = now;
            }
            !is_recent
        });
        Claim { known: self, roots, now }
    }

    /// The rows of some roots were there at a moment.
    pub(crate) fn confirm<'r>(&self, roots: impl IntoIterator<Item = &'r [u8]>, at: Timestamp) {
        let mut known = self.lock();
        for root in roots {
            if let Some(confirmed) = known.rows.get_mut(root) {
                *confirmed = at.max(*confirmed);
                continue;
            }
            if known.rows.len() >= KNOWN_MAX {
                known.rows.clear();
            }
            known.rows.insert(root.to_owned(), at);
        }
    }

    /// The table is gone, and all rows with it.
    pub(crate) fn forget_all(&self) {
        self.lock().rows.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is not longer ago. A clock that was set back says nothing.
fn is_within(at: Timestamp, now: Timestamp, time: SignedDuration) -> bool {
    let age = now.duration_since(at);
    !age.is_negative() && age < time
}

/// The roots whose rows a commit writes. Dropped before they are confirmed, they are forgotten.
pub(crate) struct Claim<'k, 'r> {
    known: &'k KnownRoots,
    pub(crate) roots: Vec<&'r [u8]>,
    now: Timestamp,
}

impl Claim<'_, '_> {
    /// The rows are written.
    pub(crate) fn confirm(mut self) {
        self.known.confirm(std::mem::take(&mut self.roots), self.now);
    }
}

impl Drop for Claim<'_, '_> {
    fn drop(&mut self) {
        let mut known = self.known.lock();
        for root in &self.roots {
            known.rows.remove(*root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    const START: Timestamp = Timestamp::constant(1_767_225_600, 0);
    const ROOT: &[u8] = b"a";
    const NONE: [&[u8]; 0] = [];

    fn table(id: &str) -> StoreTable {
        StoreTable { layout: Layout { segments: 1 }, id: Some(id.to_owned()) }
    }

    fn claim(known: &KnownRoots, after: SignedDuration) -> Claim<'_, 'static> {
        known.claim(vec![ROOT], START + after)
    }

    #[test]
    fn a_row_is_written_again_after_a_while_by_one_commit() {
        let known = KnownRoots::new(table("one"), START);
        let first = claim(&known, SignedDuration::ZERO);
        assert_eq!(first.roots, [ROOT]);
        let beside = claim(&known, SignedDuration::ZERO);
        assert_eq!(beside.roots, [ROOT], "nobody has written it yet");
        beside.confirm();
        assert_eq!(claim(&known, CONFIRMED_FOR / 2).roots, NONE);
        drop(first);
        claim(&known, SignedDuration::ZERO).confirm();
        assert_eq!(claim(&known, CONFIRMED_FOR / 2).roots, NONE);
        let again = claim(&known, CONFIRMED_FOR);
        assert_eq!(again.roots, [ROOT]);
        assert_eq!(claim(&known, CONFIRMED_FOR).roots, NONE, "another commit is at it");
        drop(again);
        let again = claim(&known, CONFIRMED_FOR);
        assert_eq!(again.roots, [ROOT], "which was not applied");
        again.confirm();
        assert_eq!(claim(&known, SignedDuration::ZERO).roots, [ROOT], "the clock was set back");
        claim(&known, CONFIRMED_FOR).confirm();
        known.forget_all();
        assert_eq!(claim(&known, CONFIRMED_FOR).roots, [ROOT], "the table is gone");
    }

    #[test]
    fn rows_are_known_for_an_hour_while_the_table_is_the_same() {
        let known = KnownRoots::new(table("one"), START);
        assert!(!known.is_check_due(&[ROOT], START + CHECKED_FOR), "nothing is known of it");
        claim(&known, SignedDuration::ZERO).confirm();
        assert!(!known.is_check_due(&[ROOT], START));
        let mut writes = 0;
        for seconds in 0..3_600 {
            let now = START + SignedDuration::from_secs(seconds);
            if known.is_check_due(&[ROOT], now) {
                assert!(!known.is_check_due(&[ROOT], now), "another commit is at it");
                known.checked(Some(table("one")), now);
            }
            let claim = known.claim(vec![ROOT], now);
            writes += claim.roots.len();
            claim.confirm();
        }
        assert_eq!(writes, 0);
        for found in [Some(table("two")), None] {
            known.checked(found, START);
            let claim = claim(&known, SignedDuration::ZERO);
            assert_eq!(claim.roots, [ROOT], "it is another table, or none");
            claim.confirm();
        }
    }
}
