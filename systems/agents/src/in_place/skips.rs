//! Documents that lists leave out.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bounded::Bounded;
use crate::skipped::Skipped;

/// Of how many namespaces it is known, and of how many documents of each.
const NAMESPACES_MAX: usize = 1_024;
const DOCUMENTS_MAX: usize = 100_000;

/// The documents that lists of this process left out, by user and namespace.
pub(super) struct Skips(Mutex<Held>);

type Held = Bounded<(String, String), OfNamespace>;

#[derive(Default)]
struct OfNamespace {
    /// A hash of each id: a document is counted once, however often it is met.
    documents: HashSet<u64>,
    last_id: String,
}

impl Default for Skips {
    fn default() -> Self {
        Self(Mutex::new(Bounded::new(NAMESPACES_MAX, usize::MAX)))
    }
}

impl Skips {
    pub fn note(&self, user: &str, namespace: &str, id: &str) {
        let mut held = self.held();
        let place = (user.to_owned(), namespace.to_owned());
        let mut of = held.remove(&place).unwrap_or_default();
        if of.documents.len() < DOCUMENTS_MAX {
            let hash = blake3::hash(id.as_bytes());
            let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
            of.documents.insert(u64::from_le_bytes(first));
        }
        id.clone_into(&mut of.last_id);
        held.insert(place, of, 0);
    }

    /// Those of a user, in one namespace or in all.
    pub fn of(&self, user: &str, namespace: Option<&str>) -> Skipped {
        let held = self.held();
        let mut skipped = Skipped::default();
        for ((of_user, of_namespace), of) in held.iter() {
            if of_user == user && namespace.is_none_or(|namespace| namespace == of_namespace) {
                skipped.documents += of.documents.len() as u64;
                skipped.last_id = skipped.last_id.max(Some(of.last_id.clone()));
            }
        }
        skipped
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
