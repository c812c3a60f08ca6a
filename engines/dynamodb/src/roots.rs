//! The rows of roots: which partitions there are.
//!
//! DynamoDB cannot list its partitions in order. So each root that an entry is written to has a row in a partition of
//! its own. The row is written before the root's first entry, or in the same transaction, and never removed:
//! so every entry's root has one, whatever crashes. A root whose entries are all gone costs scans an empty read.
//!
//! A process remembers which rows are there, but not for long: the table may be deleted and made again meanwhile, by
//! somebody else. So a root that is written to gets its row again every few seconds.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// How many roots are remembered; each has up to a kilobyte.
const KNOWN_MAX: usize = 16_384;
/// How long a row is taken to be there once it was seen or written: less than AWS needs to delete a table and to make
/// another.
const CONFIRMED_FOR: SignedDuration = SignedDuration::from_secs(10);

/// Roots that have a row, and when that was last certain.
#[derive(Default)]
pub(crate) struct KnownRoots(Mutex<HashMap<Vec<u8>, Timestamp>>);

impl KnownRoots {
    /// Those roots of a commit whose rows it must write.
    ///
    /// For a row that was there a while ago, one commit does it for all that come meanwhile: transactions that write
    /// one row at the same time would make each other start again.
    pub(crate) fn claim<'r>(&self, mut roots: Vec<&'r [u8]>, now: Timestamp) -> Claim<'_, 'r> {
        let mut known = self.lock();
        roots.retain(|root| {
            let Some(confirmed) = known.get_mut(*root) else { return true };
            // A clock that was set back says nothing.
            let age = now.duration_since(*confirmed);
            let is_recent = !age.is_negative() && age < CONFIRMED_FOR;
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
            if let Some(confirmed) = known.get_mut(root) {
                *confirmed = at.max(*confirmed);
                continue;
            }
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(root.to_owned(), at);
        }
    }

    /// The table is gone, and all rows with it.
    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            known.remove(*root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::constant(1_767_225_600, 0);
    const ROOT: &[u8] = b"a";
    const NONE: [&[u8]; 0] = [];

    fn claim(known: &KnownRoots, after: SignedDuration) -> Claim<'_, 'static> {
        known.claim(vec![ROOT], START + after)
    }

    #[test]
    fn a_row_is_written_again_after_a_while_by_one_commit() {
        let known = KnownRoots::default();
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
}
