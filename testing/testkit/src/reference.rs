//! What a store should do, as simply as it can be said: the model for random operations.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use keyward_engine::{
    Capabilities, Check, Commit, Entry, ErrorKind, Expect, ExpirySupport, Json, Put, Version, Write,
};
use keyward_key::{Key, KeyRange};

/// How a commit should end.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Applied,
    Conflicted(Vec<usize>),
    Refused(ErrorKind),
}

/// A map with a memory for versions.
#[derive(Default)]
pub struct Reference {
    entries: BTreeMap<Key, Entry>,
    versions: HashSet<(Key, Version)>,
}

impl Reference {
    pub fn get(&self, key: &Key, now: Timestamp) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| !entry.is_expired(now))
    }

    /// The entries of a range, in order.
    pub fn range(
        &self,
        range: KeyRange,
        now: Timestamp,
    ) -> impl DoubleEndedIterator<Item = (&Key, &Entry)> {
        self.entries
            .iter()
            .filter(move |(key, entry)| range.contains(key) && !entry.is_expired(now))
    }

    /// How a commit should end at this moment, on an engine that can do so much.
    pub fn verdict(&self, commit: &Commit, can: &Capabilities, now: Timestamp) -> Verdict {
        let adds = commit.writes.iter().any(|w| matches!(w, Write::Add(..)));
        let expires =
            commit.writes.iter().any(|w| matches!(w, Write::Put(_, put) if put.expiry.is_some()));
        if (!commit.checks.is_empty() && !can.compare)
            || (adds && !can.add)
            || (expires && can.expiry == ExpirySupport::Unsupported)
        {
            return Verdict::Refused(ErrorKind::Unsupported);
        }
        let checked = commit.checks.iter().map(|check| &check.key);
        let keys: HashSet<&Key> = commit.writes.iter().map(Write::key).chain(checked).collect();
        if keys.len() > can.limits.commit_keys_max {
            return Verdict::Refused(ErrorKind::LimitExceeded);
        }
        let failed: Vec<usize> =
            (0..commit.checks.len()).filter(|&at| !self.holds(&commit.checks[at], now)).collect();
        if !failed.is_empty() {
            return Verdict::Conflicted(failed);
        }
        let sums = commit.writes.iter().all(|write| match write {
            Write::Add(key, amount) => self.sum(key, *amount, now).is_some(),
            Write::Put(..) | Write::Delete(_) => true,
        });
        if sums { Verdict::Applied } else { Verdict::Refused(ErrorKind::Invalid) }
    }

    /// Takes over a commit that was applied, with the versions the engine gave. Panics if one of
    /// them came before and checks rely on versions.
    pub fn apply(
        &mut self,
        commit: Commit,
        versions: Vec<Option<Version>>,
        can: &Capabilities,
        now: Timestamp,
    ) {
        assert_eq!(versions.len(), commit.writes.len());
        for (write, version) in commit.writes.into_iter().zip(versions) {
            let key = write.key().clone();
            let Some(version) = version else {
                assert!(matches!(write, Write::Delete(_)), "{key} has no version");
                self.entries.remove(&key);
                continue;
            };
            let fresh = self.versions.insert((key.clone(), version.clone()));
            assert!(fresh || !can.compare, "{key} has {version:?} again");
            let entry = match write {
                Write::Put(_, put) => entry_of(put, version, now),
                Write::Add(_, amount) => {
                    let sum = self.sum(&key, amount, now).expect("it was applied");
                    let old = self.get(&key, now);
                    Entry {
                        value: Json::from_integer(sum),
                        metadata: old.and_then(|old| old.metadata.clone()),
                        expires: old.and_then(|old| old.expires),
                        version,
                    }
                }
                Write::Delete(_) => panic!("{key} was deleted, but has {version:?}"),
            };
            self.entries.insert(key, entry);
        }
    }

    /// Corrects the end of an entry to what a server's clock, or a coarser one, made of it.
    pub fn correct_end(&mut self, key: &Key, expires: Option<Timestamp>) {
        if let Some(entry) = self.entries.get_mut(key) {
            assert_eq!(entry.expires.is_some(), expires.is_some());
            entry.expires = expires;
        }
    }

    fn holds(&self, check: &Check, now: Timestamp) -> bool {
        let version = self.get(&check.key, now).map(|entry| &entry.version);
        match &check.expect {
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(expected),
        }
    }

    fn sum(&self, key: &Key, amount: i64, now: Timestamp) -> Option<i64> {
        let old = match self.get(key, now) {
            Some(entry) => entry.value.as_str().parse::<i64>().ok()?,
            None => 0,
        };
        old.checked_add(amount)
    }
}

fn entry_of(put: Put, version: Version, now: Timestamp) -> Entry {
    Entry {
        value: put.value,
        metadata: put.metadata,
        version,
        expires: put.expiry.map(|expiry| expiry.moment(now)),
    }
}
