//! The token mark of a root: a number above every token that the root has given out, kept beside the
//! catalog at `system:locks:{root}`.
//!
//! Tokens must rise for ever, also after somebody deleted or damaged the catalog. A grant that comes to
//! the mark raises it by a block in its own commit, so most grants do not write it. A catalog that is
//! gone is begun again after the mark, and the fences of those who held locks by then are revoked first.

use keyward_engine::{Check, Commit, Entry, Expect, Json, Put, Row, Scan, Version};
use keyward_key::{Key, KeyRange, Prefix};

use crate::catalog::Catalog;
use crate::{Error, Locks, Result, Root};

/// How many tokens one raise of the mark is good for.
pub(crate) const BLOCK: u64 = 1_000;
/// How many fences of a lost catalog are read at once.
const FENCES_AT_ONCE: usize = 100;

/// A root's mark as it was at the moment its catalog was read.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    /// That the mark is still the same.
    pub unchanged: Check,
    /// No token above this was given out, if the root ever had a catalog.
    pub token_max: Option<u64>,
}

/// The key of a root's mark.
pub(crate) fn mark_key(root: &Key) -> Key {
    // The first segment is not empty, so these are a key.
    Key::from_segments(["system", "locks", &root.to_string()])
        .unwrap_or_else(|_| root.child("locks"))
}

impl Locks {
    /// The check that a key is not the root of locks, and never was: for commits that write keys which
    /// somebody else chose. Roots that were last locked by a version of Keyward without marks pass it.
    pub fn is_no_root(key: &Key) -> Check {
        Check { key: mark_key(key), expect: Expect::Absent }
    }
}

impl Mark {
    pub fn read(root: &Key, entry: Option<Entry>) -> Self {
        let token_max = entry.as_ref().and_then(number);
        let expect = entry.map_or(Expect::Absent, |entry| Expect::Version(entry.version));
        Self { unchanged: Check { key: mark_key(root), expect }, token_max }
    }
}

impl Root {
    /// Takes the fences away from everybody whose lock the catalog does not know, up to a token: they
    /// held it by a catalog that is gone, and what they still write under it is refused from now on.
    /// `false`: a fence changed meanwhile.
    pub(crate) async fn revoke(&self, token_max: u64, catalog: &Catalog) -> Result<bool> {
        for (key, version) in self.fences().await? {
            let stale = |token: &u64| *token <= token_max && catalog.claim(*token).is_none();
            let Some(token) = token_of(&key).filter(stale) else { continue };
            let commit = Commit::new()
                .check(key.clone(), Expect::Version(version))
                .delete(key)
                .delete(self.lease_key(token));
            if !self.shared.store.commit(commit).await?.is_applied() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The largest token that has a fence.
    pub(crate) async fn last_fence(&self) -> Result<Option<u64>> {
        Ok(self.fences().await?.iter().filter_map(|(key, _)| token_of(key)).max())
    }

    /// The fences below this root.
    async fn fences(&self) -> Result<Vec<(Key, Version)>> {
        let mut fences = Vec::new();
        if !self.shared.is_atomic() {
            return Ok(fences);
        }
        let below = Prefix::from_segments(["lock", &self.key().to_string()]);
        let mut scan = Scan::new(KeyRange::under(&below)).limit(FENCES_AT_ONCE);
        loop {
            let page = self.shared.store.scan(&scan).await?;
            let is_fence = |row: &Row| row.key.segments().count() == 3;
            let found = page.rows.into_iter().filter(is_fence);
            fences.extend(found.filter_map(|row| Some((row.key, row.entry?.version))));
            match page.next {
                Some(next) => scan.after = Some(next),
                None => return Ok(fences),
            }
        }
    }

    /// Adds the mark to a commit of the catalog, if the catalog has raised it.
    pub(crate) fn with_mark(&self, commit: Commit, catalog: &Catalog) -> Result<Commit> {
        match catalog.raised() {
            Some(mark) if self.shared.is_atomic() => {
                Ok(commit.put(mark_key(self.key()), Put::new(text(self.key(), mark)?)))
            }
            _ => Ok(commit),
        }
    }

    /// Raises the mark before the catalog, where they cannot be one commit. `false`: somebody else has
    /// raised it meanwhile.
    pub(crate) async fn raise_before(&self, catalog: &Catalog, mark: &Mark) -> Result<bool> {
        let Some(raised) = catalog.raised().filter(|_| !self.shared.is_atomic()) else {
            return Ok(true);
        };
        let Check { key, expect } = mark.unchanged.clone();
        let put = Put::new(text(self.key(), raised)?);
        let commit = Commit::new().check(key.clone(), expect).put(key, put);
        Ok(self.shared.store.commit(commit).await?.is_applied())
    }
}

fn text(root: &Key, mark: u64) -> Result<Json> {
    let damaged = |reason: String| Error::Damaged { root: root.clone(), reason };
    Json::from_value(&mark).map_err(|error| damaged(error.to_string()))
}

fn number(mark: &Entry) -> Option<u64> {
    serde_json::from_slice(mark.value.as_bytes()).ok()
}

/// The token in the key of a fence or a lease.
fn token_of(key: &Key) -> Option<u64> {
    key.segments().nth(2)?.parse().ok()
}
