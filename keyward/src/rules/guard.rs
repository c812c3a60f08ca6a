//! A store that refuses commits which break the rules.

use std::path::Path;

use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, DiskSpace, Engine, Entry, Event, Outcome, Page,
    Result, Revision, Scan, Stats, Store, Tier,
};
use keyward_key::{Key, KeyRange};
use keyward_locks::Locks;

use super::{Keeper, Reserved, WriteRules};

/// What keeps a commit from roots of locks that no schema declares: checks that the keys it writes are
/// none, in the commit itself where they fit.
#[derive(Debug)]
pub struct SparedRoots {
    /// The keys that must be no roots.
    keys: Vec<Key>,
    /// The index of the first of their checks.
    first: usize,
}

impl SparedRoots {
    /// For a commit that need not spare any.
    pub fn none() -> Self {
        Self { keys: Vec::new(), first: 0 }
    }

    /// Adds the checks to a commit on a store. Where they do not fit, they are made now: a root that
    /// comes to be afterwards goes on after its tokens. A root that is found is the inner error.
    pub async fn add(store: &Store, commit: &mut Commit) -> Result<Result<Self, Reserved>> {
        let first = commit.checks.len();
        let limits = store.limits();
        // Where there is no room for the mark of a root, there is no root.
        let written = commit.writes.iter().map(|write| write.key().clone());
        let marked = written.map(|key| (Locks::is_no_root(&key), key));
        let marked = marked.filter(|(mark, _)| mark.key.as_bytes().len() <= limits.key_bytes_max);
        let (checks, keys): (Vec<_>, Vec<Key>) = marked.unzip();
        let bytes: usize = checks.iter().map(|check| check.key.as_bytes().len()).sum();
        let fits = first + 2 * keys.len() + ROOM_KEYS <= limits.commit_keys_max
            && commit.size() + bytes <= limits.commit_bytes_max;
        if store.capabilities().tier() == Tier::Atomic && fits {
            commit.checks.extend(checks);
            return Ok(Ok(Self { keys, first }));
        }
        let found = Self::find(store, &keys).await?;
        Ok(found.map(|()| Self { keys: Vec::new(), first }))
    }

    /// Looks for a root of locks among keys, as far as that is known now. One that is found is the inner
    /// error.
    pub async fn find(store: &Store, keys: &[Key]) -> Result<Result<(), Reserved>> {
        let limits = store.limits();
        // Where there is no room for the mark of a root, there is no root.
        let marked = keys.iter().map(|key| (key, Locks::is_no_root(key).key));
        let marked = marked.filter(|(_, mark)| mark.as_bytes().len() <= limits.key_bytes_max);
        let (keys, marks): (Vec<&Key>, Vec<Key>) = marked.unzip();
        let at_once = limits.get_keys_max.clamp(1, CHECKED_AT_ONCE);
        for (keys, marks) in keys.chunks(at_once).zip(marks.chunks(at_once)) {
            let found = store.get_many(marks).await?;
            let root = keys.iter().zip(found).find(|(_, mark)| mark.is_some());
            if let Some((root, _)) = root {
                return Ok(Err(Reserved { key: (*root).clone(), keeper: Keeper::Locks }));
            }
        }
        Ok(Ok(()))
    }

    /// Tells which root it is, if a commit failed for one of the checks.
    pub fn check(&self, failed: &[usize]) -> Result<(), Reserved> {
        let mut indexes = failed.iter().filter_map(|at| at.checked_sub(self.first));
        match indexes.find_map(|at| self.keys.get(at)) {
            Some(root) => Err(Reserved { key: root.clone(), keeper: Keeper::Locks }),
            None => Ok(()),
        }
    }
}

/// How many keys are left for what else a commit may carry: marks of requests, messages.
const ROOM_KEYS: usize = 64;
/// How many marks of roots are read at once.
const CHECKED_AT_ONCE: usize = 1_000;

/// A store whose commits keep to the rules.
pub(super) fn guarded(rules: WriteRules, store: Store) -> Store {
    let limits = *store.limits();
    Store::new(Guarded { rules, store }).with_limits(limits)
}

struct Guarded {
    rules: WriteRules,
    store: Store,
}

impl Engine for Guarded {
    fn capabilities(&self) -> &Capabilities {
        self.store.capabilities()
    }

    fn reads_inline(&self) -> bool {
        self.store.reads_inline()
    }

    fn counts_by_reading(&self) -> bool {
        self.store.counts_by_reading()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(self.store.get(key))
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.store.get_many(keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.store.scan(scan))
    }

    fn commit(&self, mut commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            for write in &commit.writes {
                self.rules.admit(write.key())?;
            }
            let spared = SparedRoots::add(&self.store, &mut commit).await??;
            let outcome = self.store.commit(commit).await?;
            if let Outcome::Conflicted { failed } = &outcome {
                spared.check(failed)?;
            }
            Ok(outcome)
        })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        self.store.watch(range, since)
    }

    fn push_through<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<bool>>> {
        Box::pin(self.store.push_through(key))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(self.store.stats())
    }

    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        Box::pin(self.store.expired())
    }

    fn verify<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.store.verify(range))
    }

    fn check_space(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.store.check_space())
    }

    fn disk_space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        Box::pin(self.store.disk_space())
    }

    fn backup<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.store.backup(file))
    }
}
