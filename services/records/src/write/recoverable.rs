//! Where only single keys can be compared and swapped: the entries first, then the record, then what
//! it no longer needs away. `docs/decisions/0005-indexes-without-transactions.md` says why each step
//! is there, and `tests/protocol` checks all of it exhaustively.
//!
//! The invariant: a record that is committed has all its entries. Whoever takes an entry away first
//! moves the version of the record that the entry names, so that a writer who has just made the
//! entry sure cannot commit without it.

use std::time::Duration;

use keyward_engine::{Commit, Entry, Expect, Expiry, ExpirySupport, Outcome, Put, Version};
use keyward_engine::{Error as StoreError, ErrorKind};
use keyward_key::Key;

use super::backoff::Backoff;
use super::{ATTEMPTS_MAX, holder, require};
use crate::bookkeeping::Bookkeeping;
use crate::build::admitted;
use crate::catalog::{Kept, Snapshot};
use crate::change::{Change, Current, Decision, NewState, Written};
use crate::index::{IndexEntry, null};
use crate::space::Space;
use crate::{Error, Result};

/// How much longer than their record entries live: they are written before it, and must not end
/// before it.
const ENTRY_LIFE_MORE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the mark of a writer who never came back stays.
const MARKER_LIFE: Duration = Duration::from_secs(60 * 60);

pub(super) async fn write(space: &Space, mut change: Change<'_>) -> Result<Written> {
    space.ensure_indexes().await?;
    let shared = &space.shared;
    let key = change.target.key.clone();
    let mut backoff = Backoff::new(shared, &key);
    for _ in 0..ATTEMPTS_MAX {
        let catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
        let indexes = catalog.kept(&space.access.space.name);
        let current = space.current(&change.target.key).await?;
        let decision = change.decide(&space.access.space, current.as_ref())?;
        let live = current.as_ref().filter(|current| !current.kept.marker);
        let version = live.map(|current| current.record.version.clone());
        let new = match decision {
            Decision::Conflict => return Ok(Written::Conflicted { current: version }),
            Decision::Leave => return Ok(Written::Unchanged { version }),
            Decision::Remove => None,
            Decision::Write(new) => Some(new),
        };
        let writer = Writer { space, catalog: &catalog, indexes: &indexes, change: &change };
        if let Some(written) = writer.attempt(current, new).await? {
            return Ok(written);
        }
        backoff.pause().await;
    }
    Err(Error::Contended { key, attempts: ATTEMPTS_MAX })
}

/// Makes sure that a record has all its entries, and gives their number. It is an error if the index
/// `only` cannot take its value; another index that cannot holds none of it.
pub(super) async fn reindex(space: &Space, key: &Key, only: Option<&str>) -> Result<usize> {
    let shared = &space.shared;
    let target = admitted(space, key);
    let mut backoff = Backoff::new(shared, key);
    for _ in 0..ATTEMPTS_MAX {
        let catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
        let indexes = catalog.kept(&space.access.space.name);
        let Some(current) = space.current(key).await?.filter(|current| !current.kept.marker) else {
            return Ok(0);
        };
        require(space, &indexes, only, &current)?;
        let entries = space.held(&indexes, &target, &current.record.value);
        let expiry = current.record.expires.map(Expiry::At);
        for entry in &entries {
            touch(space, &indexes, key, entry, expiry).await?;
        }
        if move_version(space, &current).await? {
            return Ok(entries.len());
        }
        backoff.pause().await;
    }
    Err(Error::Contended { key: key.clone(), attempts: ATTEMPTS_MAX })
}

struct Writer<'w> {
    space: &'w Space,
    catalog: &'w Snapshot,
    indexes: &'w [Kept],
    change: &'w Change<'w>,
}

impl Writer<'_> {
    /// One attempt; `None` if somebody else changed the record meanwhile.
    async fn attempt(
        &self,
        current: Option<Current>,
        new: Option<NewState>,
    ) -> Result<Option<Written>> {
        let (space, target) = (self.space, &self.change.target);
        let live = current.as_ref().filter(|current| !current.kept.marker);
        let old = match live {
            Some(current) => space.held(self.indexes, target, &current.record.value),
            None => Vec::new(),
        };
        let wanted = match &new {
            Some(new) => self.change.entries(space, self.indexes, &new.value)?,
            None => Vec::new(),
        };
        let expiry = new.as_ref().and_then(|new| new.expiry);
        // An entry that ends, or shall end, is written again: it must not end before its record.
        let ends = expiry.is_some() || live.is_some_and(|live| live.record.expires.is_some());
        let is_held = |entry: &&IndexEntry| old.contains(entry) && !ends;
        let mut touched: Vec<&IndexEntry> = wanted.iter().filter(|entry| !is_held(entry)).collect();
        // Those that may be refused come first: then there is little to leave behind.
        touched.sort_by_key(|entry| !entry.unique);
        let dropped: Vec<Key> = old
            .iter()
            .filter(|entry| !wanted.iter().any(|wanted| wanted.key == entry.key))
            .map(|entry| entry.key.clone())
            .collect();

        let mut base = current.as_ref().map(|current| current.record.version.clone());
        let announces = base.is_none() && !touched.is_empty();
        if announces {
            base = match self.announce().await? {
                Some(version) => Some(version),
                None => return Ok(None),
            };
        }
        for entry in touched {
            let sure = touch(space, self.indexes, &target.key, entry, expiry).await;
            if let (Err(_), true, Some(mark)) = (&sure, announces, &base) {
                // Nobody comes back for the mark; it would also end by itself.
                let _left_to_end = delete_seen(space, target.key.clone(), mark.clone()).await;
            }
            sure?;
        }
        let seen = space.shared.store.get_many(&dropped).await?;
        let created = live.is_none();
        if self.is_outdated().await? {
            return Ok(None);
        }
        let Some(written) = self.commit(base, new, created).await? else { return Ok(None) };
        if let Written::Applied { .. } = written {
            self.catch_up().await?;
        }
        for (key, entry) in dropped.into_iter().zip(seen) {
            // What cannot be removed now is dropped by readers, and removed by the next sweep.
            if let Some(entry) = entry.filter(|entry| self.is_ours(entry)) {
                let _left_for_the_sweep = delete_seen(space, key, entry.version).await;
            }
        }
        Ok(Some(written))
    }

    /// Whether the indexes may be others by now. Whoever adds one waits until nobody can go by a
    /// catalog without it.
    async fn is_outdated(&self) -> Result<bool> {
        let shared = &self.space.shared;
        let catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
        Ok(catalog.version != self.catalog.version)
    }

    /// Adds a record to the indexes that were added while its commit was under way. Whoever adds one
    /// waits before looking at what is there; a commit that takes longer than that is not seen.
    async fn catch_up(&self) -> Result<()> {
        let caught_up = async {
            match self.is_outdated().await? {
                true => reindex(self.space, &self.change.target.key, None).await.map(drop),
                false => Ok(()),
            }
        };
        match caught_up.await {
            // Which of two records keeps a value is for a person to say; the doctor asks.
            Ok(()) | Err(Error::UniqueClash { .. }) => Ok(()),
            Err(error) => {
                let key = &self.change.target.key;
                let message = format!("{key} was written, and not added to new indexes: {error}");
                Err(StoreError::new(ErrorKind::OutcomeUnknown, message).into())
            }
        }
    }

    /// Marks the key of a record that does not exist, so that the commit has a version to check.
    async fn announce(&self) -> Result<Option<Version>> {
        let kept = Bookkeeping { marker: true, ..Bookkeeping::default() };
        let store = &self.space.shared.store;
        let expires = store.capabilities().expiry != ExpirySupport::Unsupported;
        let expiry = expires.then_some(Expiry::After(MARKER_LIFE));
        let put = Put { value: null(), metadata: kept.join(None)?, expiry };
        swap(self.space, self.change.target.key.clone(), None, put).await
    }

    /// Writes or removes the record at the version it was read at: from here on the change counts.
    async fn commit(
        &self,
        base: Option<Version>,
        new: Option<NewState>,
        created: bool,
    ) -> Result<Option<Written>> {
        let key = self.change.target.key.clone();
        let put = match new {
            Some(new) => {
                let kept = Bookkeeping { ttl_ms: new.ttl_ms, ..Bookkeeping::default() };
                let metadata = kept.join(new.metadata.as_ref())?;
                Some(Put { value: new.value, metadata, expiry: new.expiry })
            }
            None => None,
        };
        let removing = put.is_none();
        let check = base.map_or(Expect::Absent, Expect::Version);
        let commit = Commit::new().check(key.clone(), check);
        let commit = match put {
            Some(put) => commit.put(key, put),
            None => commit.delete(key),
        };
        match self.space.shared.store.commit(commit).await? {
            Outcome::Conflicted { .. } => Ok(None),
            Outcome::Applied { .. } if removing => Ok(Some(Written::Removed)),
            Outcome::Applied { versions, .. } => match versions.into_iter().next().flatten() {
                Some(version) => Ok(Some(Written::Applied { version, created })),
                None => Err(Error::Damaged("a record was written without a version".into())),
            },
        }
    }

    /// Whether an entry that is no longer needed may be taken away: a unique one may be another
    /// record's by now.
    fn is_ours(&self, entry: &Entry) -> bool {
        match holder(entry) {
            Some(owner) => owner == self.change.target.key,
            None => true,
        }
    }
}

/// Makes an entry sure, and moves its version even if it was there: whoever meant to take it away
/// must look again.
async fn touch(
    space: &Space,
    indexes: &[Kept],
    key: &Key,
    entry: &IndexEntry,
    expiry: Option<Expiry>,
) -> Result<()> {
    let put = Put { value: entry.value.clone(), metadata: None, expiry: outliving(expiry) };
    if !entry.unique {
        space.shared.store.put(entry.key.clone(), put).await?;
        return Ok(());
    }
    // By the record's key: rivals for one entry have different ones.
    let mut backoff = Backoff::new(&space.shared, key);
    for _ in 0..ATTEMPTS_MAX {
        let held = space.shared.store.get(&entry.key).await?;
        let revoked = match held.as_ref().and_then(holder) {
            Some(owner) if owner != *key => revoke(space, indexes, &owner, &entry.key).await?,
            _ => true,
        };
        let seen = held.map(|held| held.version);
        if revoked && swap(space, entry.key.clone(), seen, put.clone()).await?.is_some() {
            return Ok(());
        }
        backoff.pause().await;
    }
    Err(Error::Contended { key: entry.key.clone(), attempts: ATTEMPTS_MAX })
}

/// Makes sure that a record which does not hold a unique entry cannot come to hold it by a commit
/// that is under way. False if it changed meanwhile; an error if it does hold it.
async fn revoke(space: &Space, indexes: &[Kept], owner: &Key, entry: &Key) -> Result<bool> {
    let Some(current) = space.current(owner).await? else { return Ok(true) };
    if holds(space, indexes, &current, entry) {
        return Err(space.clash(entry, Some(owner.clone())));
    }
    move_version(space, &current).await
}

/// Whether a record has an entry by what its value is.
fn holds(space: &Space, indexes: &[Kept], current: &Current, entry: &Key) -> bool {
    if current.kept.marker {
        return false;
    }
    let target = admitted(space, &current.record.key);
    let entries = space.held(indexes, &target, &current.record.value);
    entries.iter().any(|held| held.key == *entry)
}

/// Writes a record again as it is. False if it changed meanwhile.
async fn move_version(space: &Space, current: &Current) -> Result<bool> {
    let record = &current.record;
    let put = Put {
        value: record.value.clone(),
        metadata: current.kept.join(record.metadata.as_ref())?,
        expiry: record.expires.map(Expiry::At),
    };
    let seen = Some(record.version.clone());
    Ok(swap(space, record.key.clone(), seen, put).await?.is_some())
}

/// Removes an entry that no record holds. False if somebody was faster; then it is to be looked at
/// again.
pub(super) async fn remove_orphan(
    space: &Space,
    indexes: &[Kept],
    entry: &Key,
    seen: Version,
    owner: &Key,
) -> Result<bool> {
    if let Some(current) = space.current(owner).await?
        && (holds(space, indexes, &current, entry) || !move_version(space, &current).await?)
    {
        return Ok(false);
    }
    delete_seen(space, entry.clone(), seen).await
}

async fn delete_seen(space: &Space, key: Key, seen: Version) -> Result<bool> {
    let commit = Commit::new().check(key.clone(), Expect::Version(seen)).delete(key);
    Ok(space.shared.store.commit(commit).await?.is_applied())
}

/// Puts a key that must be at a version, or absent, and gives the new version; `None` if it is not.
async fn swap(space: &Space, key: Key, seen: Option<Version>, put: Put) -> Result<Option<Version>> {
    let expect = seen.map_or(Expect::Absent, Expect::Version);
    let commit = Commit::new().check(key.clone(), expect).put(key, put);
    match space.shared.store.commit(commit).await? {
        Outcome::Applied { versions, .. } => Ok(versions.into_iter().next().flatten()),
        Outcome::Conflicted { .. } => Ok(None),
    }
}

fn outliving(expiry: Option<Expiry>) -> Option<Expiry> {
    expiry.map(|expiry| match expiry {
        Expiry::After(ttl) => Expiry::After(ttl.saturating_add(ENTRY_LIFE_MORE)),
        Expiry::At(at) => Expiry::At(at.saturating_add(ENTRY_LIFE_MORE).unwrap_or(at)),
    })
}
