//! Versions that follow their record to another key.

use keyward_engine::{Commit, Entry, Expect, Expiry, Json, Limits, Put, Want};
use keyward_key::Key;

use super::{newest, prefix, row_key, rows, seq_of};
use crate::space::Space;
use crate::{Error, Result};

/// How many versions go in one commit at most.
const TOGETHER_MAX: usize = 100;

/// How often versions are given their old keys again while others change them.
const TAKE_BACK_ATTEMPTS_MAX: usize = 64;

/// The versions of a record that gets another key, the oldest first.
pub(crate) struct Moving {
    rows: Vec<Moved>,
    /// Whether there are newer ones, which do not go together with these.
    partial: bool,
}

struct Moved {
    from: Key,
    to: Key,
    seq: u64,
    entry: Entry,
}

/// How versions go.
pub(crate) enum Going {
    /// With the record, in this commit, which has so many checks more.
    Along(Commit, usize),
    /// The oldest ones first.
    Ahead(Ahead),
}

/// The oldest versions of a record, which go before it does.
pub(crate) struct Ahead {
    /// What moves them.
    pub commit: Commit,
    /// Their keys before and after, the oldest first.
    pub keys: Vec<(Key, Key)>,
}

impl Moving {
    /// The versions of `old`, if both spaces keep them.
    pub async fn read(from: &Space, old: &Key, to: &Space, new: &Key) -> Result<Option<Self>> {
        if from.access.space.history.is_none() || to.access.space.history.is_none() {
            return Ok(None);
        }
        let old = prefix(&from.access.space.name, old);
        let new = prefix(&to.access.space.name, new);
        let listed = rows(from, &old, None, usize::MAX, Want::Keys).await?;
        let mut keys: Vec<Key> = listed.into_iter().map(|row| row.key).collect();
        keys.reverse();
        let partial = keys.len() > TOGETHER_MAX;
        keys.truncate(TOGETHER_MAX);
        let Some(first) = keys.first().map(seq_of).transpose()? else {
            return Ok(Some(Self { rows: Vec::new(), partial: false }));
        };
        // Numbers stay, unless a record that was there before has used them.
        let taken = newest(to, &new).await?;
        let more = if taken >= first { taken + 1 - first } else { 0 };
        let entries = from.shared.store.get_many(&keys).await?;
        let mut moving = Self { rows: Vec::with_capacity(keys.len()), partial };
        for (key, entry) in keys.into_iter().zip(entries) {
            // One that is gone by now made room for a newer one: the record has changed, which the
            // commit notices.
            let Some(entry) = entry else { continue };
            let seq = seq_of(&key)? + more;
            moving.rows.push(Moved { from: key, to: row_key(&new, seq)?, seq, entry });
        }
        Ok(Some(moving))
    }

    /// The number that the newest of them gets.
    pub fn newest(&self) -> Option<u64> {
        self.rows.last().map(|row| row.seq)
    }

    /// Adds them to the record's commit, if they fit there beside so many keys and bytes that go along. What cannot
    /// fit in any commit is left to the store to refuse.
    pub fn go(&self, commit: Commit, along: (usize, usize), limits: &Limits) -> Result<Going> {
        let (keys, bytes) = (commit.checks.len() + commit.writes.len(), size(&commit));
        let together = fitting(&self.rows, keys + along.0, bytes + along.1, limits);
        // The newest one goes with the record, whose number it has.
        let ahead_max = self.rows.len() - usize::from(!self.partial && !self.rows.is_empty());
        if !self.partial && (together == self.rows.len() || ahead_max == 0) {
            return Ok(Going::Along(added(commit, &self.rows), 2 * self.rows.len()));
        }
        let ahead = fitting(&self.rows, 0, 0, limits).min(ahead_max);
        if ahead == 0 {
            let message = "one of its earlier versions is too large to be moved".to_owned();
            return Err(Error::BadChange(message));
        }
        let rows = &self.rows[..ahead];
        let keys = rows.iter().map(|row| (row.from.clone(), row.to.clone())).collect();
        Ok(Going::Ahead(Ahead { commit: added(Commit::new(), rows), keys }))
    }
}

/// Gives versions that went ahead of a record their old keys again, because the record stays. One that is gone was
/// dropped meanwhile, and needs nothing. The newest go first, so that whatever stops this leaves older versions ahead
/// of newer ones, as the moving did.
pub(crate) async fn take_back(space: &Space, mut keys: Vec<(Key, Key)>) -> Result<()> {
    let store = &space.shared.store;
    let mut conflicts = 0;
    while let Some((first, _)) = keys.last() {
        if conflicts == TAKE_BACK_ATTEMPTS_MAX {
            return Err(Error::Contended { key: first.clone(), attempts: conflicts });
        }
        let start = keys.len().saturating_sub(TOGETHER_MAX);
        let (before, after): (Vec<Key>, Vec<Key>) = keys[start..].iter().rev().cloned().unzip();
        let (free, entries) = (store.get_many(&before).await?, store.get_many(&after).await?);
        let mut rows = Vec::with_capacity(after.len());
        for (((to, from), taken), entry) in before.into_iter().zip(after).zip(free).zip(entries) {
            // A number that another version has by now is that one's.
            if let (None, Some(entry)) = (taken, entry) {
                rows.push(Moved { from, seq: seq_of(&to)?, to, entry });
            }
        }
        // Each of them fitted a commit before.
        let together = fitting(&rows, 0, 0, store.limits()).max(1).min(rows.len());
        let commit = added(Commit::new(), &rows[..together]);
        if together > 0 && !store.commit(commit).await?.is_applied() {
            conflicts += 1;
        } else if together == rows.len() {
            keys.truncate(start);
        }
    }
    Ok(())
}

/// How many of the rows, from the first on, fit a commit beside what it has.
fn fitting(rows: &[Moved], mut keys: usize, mut bytes: usize, limits: &Limits) -> usize {
    let fits = |row: &&Moved| {
        keys += 2;
        bytes += row.size();
        keys <= limits.commit_keys_max && bytes <= limits.commit_bytes_max
    };
    rows.iter().take_while(fits).count()
}

impl Moved {
    /// What it counts in a commit at most: both keys are checked, and written.
    fn size(&self) -> usize {
        let metadata = self.entry.metadata.as_ref().map_or(0, Json::len);
        let keys = self.from.as_bytes().len() + self.to.as_bytes().len();
        2 * keys + self.entry.value.len() + metadata
    }
}

fn size(commit: &Commit) -> usize {
    let checks = commit.checks.iter().map(|check| check.key.as_bytes().len());
    let writes = commit.writes.iter().map(|write| {
        let put = match write {
            keyward_engine::Write::Put(_, put) => {
                put.value.len() + put.metadata.as_ref().map_or(0, Json::len)
            }
            keyward_engine::Write::Delete(_) | keyward_engine::Write::Add(..) => 0,
        };
        write.key().as_bytes().len() + put
    });
    checks.sum::<usize>() + writes.sum::<usize>()
}

fn added(mut commit: Commit, rows: &[Moved]) -> Commit {
    for row in rows {
        let Entry { value, metadata, version, expires, .. } = row.entry.clone();
        let put = Put { value, metadata, expiry: expires.map(Expiry::At) };
        commit = commit
            .check(row.from.clone(), Expect::Version(version))
            .check(row.to.clone(), Expect::Absent)
            .delete(row.from.clone())
            .put(row.to.clone(), put);
    }
    commit
}
