//! The rows of roots: which partitions there are.
//!
//! DynamoDB cannot list its partitions in order. So each root that an entry is written to has a row in a partition of
//! its own. The row is written before the root's first entry, or in the same transaction, and never removed:
//! so every entry's root has one, whatever crashes. A root whose entries are all gone costs scans an empty read.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// How many roots are remembered; each has up to a kilobyte.
const KNOWN_MAX: usize = 16_384;

/// Roots that certainly have a row: commits need not write it again.
#[derive(Default)]
pub(crate) struct KnownRoots(Mutex<HashSet<Vec<u8>>>);

impl KnownRoots {
    pub(crate) fn contains(&self, root: &[u8]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(root)
    }

    pub(crate) fn add<'r>(&self, roots: impl IntoIterator<Item = &'r [u8]>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for root in roots {
            if !known.contains(root) {
                if known.len() >= KNOWN_MAX {
                    known.clear();
                }
                known.insert(root.to_owned());
            }
        }
    }
}
