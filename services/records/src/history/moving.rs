//! Versions that follow their record to another key.

use keyward_engine::{Commit, Entry, Expect, Expiry, Json, Limits, Put, Want};
use keyward_key::Key;

use super::{newest, prefix, row_key, rows, seq_of};
use crate::space::Space;
use crate::{Error, Result};

/// How many versions go in one commit at most.
const TOGETHER_MAX: usize = 100;

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
    /// The oldest ones first, by this commit.
    Ahead(Commit),
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

    /// Adds them to the record's commit, if they fit there. What cannot fit in any commit is left to
    /// the store to refuse.
    pub fn go(&self, commit: Commit, limits: &Limits) -> Result<Going> {
        let (keys, bytes) = (commit.checks.len() + commit.writes.len(), size(&commit));
        let together = fitting(&self.rows, keys, bytes, limits);
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
        Ok(Going::Ahead(added(Commit::new(), &self.rows[..ahead])))
    }
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
