//! Applying commits inside one LMDB transaction.

use std::io::Write as _;
use std::ops::Bound;

use heed::{PutFlags, RoTxn, RwTxn};
use jiff::Timestamp;
use keyward_engine::{
    ChangeKind, Check, Clock, Commit, Error, ErrorKind, Expect, Json, Outcome, Put, Result,
    Revision, Version, Write,
};
use keyward_key::Key;

use crate::environment::Tables;
use crate::error::{corrupt, from_lmdb};
use crate::record::{self, Record};

/// How large the log may become, whatever its number of commits.
const LOG_BYTES_MAX: usize = 1 << 30;
/// How many rows of the log one transaction trims at most, and how many there must be to trim, so
/// that most transactions do not touch the log's old end.
const TRIMMED_MAX: u64 = 512;

/// An LMDB transaction to which commits are applied one after the other, each seeing those before.
pub(crate) struct Transaction<'e> {
    txn: RwTxn<'e>,
    tables: Tables,
    now: Timestamp,
    revision: u64,
    changed: bool,
    /// Whether any entry may have an end.
    has_ends: bool,
    /// How many ends were added.
    ends_added: usize,
    /// The row of the log that the current commit fills.
    row: Vec<u8>,
}

/// Why a commit was not applied.
pub(crate) enum Failure {
    /// It was refused before it wrote anything: the transaction goes on without it.
    Refused(Error),
    /// It failed in the middle: the transaction must be given up.
    Broken(Error),
}

impl From<heed::Error> for Failure {
    fn from(error: heed::Error) -> Self {
        Self::Broken(from_lmdb("cannot commit", error))
    }
}

impl<'e> Transaction<'e> {
    pub(crate) fn new(txn: RwTxn<'e>, tables: Tables, clock: &dyn Clock) -> Result<Self> {
        let revision = latest_revision(&tables, &txn)?;
        // Read after LMDB has let us in, so that commits and their clocks have one order.
        let now = clock.now();
        let no_ends = tables.ends.is_empty(&txn);
        let has_ends = !no_ends.map_err(|error| from_lmdb("cannot commit", error))?;
        let row = Vec::new();
        Ok(Self { txn, tables, now, revision, changed: false, has_ends, ends_added: 0, row })
    }

    /// The revision after what was applied so far.
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    /// Applies a commit, or refuses it.
    pub(crate) fn apply(&mut self, commit: &Commit) -> Result<Outcome, Failure> {
        let mut failed = Vec::new();
        for (at, check) in commit.checks.iter().enumerate() {
            if !self.holds(check).map_err(Failure::Refused)? {
                failed.push(at);
            }
        }
        if !failed.is_empty() {
            return Ok(Outcome::Conflicted { failed });
        }
        let sums = self.sums(commit).map_err(Failure::Refused)?;

        let revision = self.revision + 1;
        self.row.clear();
        let mut sums = sums.into_iter();
        let mut versions = Vec::with_capacity(commit.writes.len());
        for write in &commit.writes {
            match write {
                Write::Put(key, put) => self.put(key, put, revision)?,
                Write::Delete(key) => self.delete(key)?,
                Write::Add(key, _) => self.add(key, sums.next().unwrap_or_default(), revision)?,
            }
            let written = !matches!(write, Write::Delete(_));
            versions.push(written.then(|| Version::from(revision)));
        }
        self.log()?;
        Ok(Outcome::Applied { revision: Some(Revision(self.revision)), versions })
    }

    /// Frees the space of expired entries, more of them than ends were added and at least so many,
    /// and trims the log to its length: housekeeping that rides along with commits. Says whether
    /// there was anything to reclaim.
    pub(crate) fn tidy(&mut self, history: u64, reclaimed_min: usize) -> Result<bool, Failure> {
        let reclaimed = self.reclaim(reclaimed_min.max(2 * self.ends_added))?;
        self.trim(history.max(1))?;
        Ok(reclaimed)
    }

    /// Makes everything durable, with one sync; nothing changed costs nothing.
    pub(crate) fn commit(self) -> heed::Result<()> {
        if self.changed { self.txn.commit() } else { Ok(()) }
    }

    /// What a key holds, unless it has expired.
    fn present(&self, key: &Key) -> Result<Option<Record<'_>>> {
        let record = self.stored(key)?;
        Ok(record.filter(|record| !self.has_ended(record)))
    }

    /// What a key holds, expired or not.
    fn stored(&self, key: &Key) -> Result<Option<Record<'_>>> {
        let bytes = self.tables.entries.get(&self.txn, key.as_bytes());
        let bytes = bytes.map_err(|error| from_lmdb("cannot commit", error))?;
        bytes.map(|bytes| Record::read_of(key.as_bytes(), bytes)).transpose()
    }

    fn has_ended(&self, record: &Record<'_>) -> bool {
        record.expires.is_some_and(|end| end <= self.now.as_millisecond())
    }

    fn holds(&self, check: &Check) -> Result<bool> {
        let version = self.present(&check.key)?.map(|record| record.version);
        Ok(match (&check.expect, version) {
            (Expect::Absent, version) => version.is_none(),
            (Expect::Version(expected), Some(version)) => expected.as_number() == Some(version),
            (Expect::Version(_), None) => false,
        })
    }

    /// What each add comes to; before anything is written, since one bad sum refuses the commit.
    fn sums(&self, commit: &Commit) -> Result<Vec<i64>> {
        let mut sums = Vec::new();
        for write in &commit.writes {
            let Write::Add(key, amount) = write else {
                continue;
            };
            let old = self.present(key)?.map(|record| Json::from_stored(record.value.to_vec()));
            let sum = Json::sum(old.as_ref(), *amount).map_err(|reason| {
                Error::new(ErrorKind::Invalid, format!("cannot add to {key}: {reason}"))
            })?;
            sums.push(sum);
        }
        Ok(sums)
    }

    fn put(&mut self, key: &Key, put: &Put, revision: u64) -> Result<(), Failure> {
        let record = Record {
            version: revision,
            expires: put.expiry.map(|expiry| expiry.moment(self.now).as_millisecond()),
            metadata: put.metadata.as_ref().map(Json::as_bytes),
            value: put.value.as_bytes(),
        };
        self.write(key, record)
    }

    fn add(&mut self, key: &Key, sum: i64, revision: u64) -> Result<(), Failure> {
        let old = self.present(key).map_err(Failure::Broken)?;
        let expires = old.and_then(|old| old.expires);
        let metadata = old.and_then(|old| old.metadata).map(<[u8]>::to_vec);
        let value = sum.to_string();
        let record = Record {
            version: revision,
            expires,
            metadata: metadata.as_deref(),
            value: value.as_bytes(),
        };
        self.write(key, record)
    }

    fn write(&mut self, key: &Key, record: Record<'_>) -> Result<(), Failure> {
        self.changed = true;
        if self.has_ends
            && let Some(old) =
                self.stored(key).map_err(Failure::Broken)?.and_then(|old| old.expires)
        {
            self.tables.ends.delete(&mut self.txn, &record::end(old, key.as_bytes()))?;
        }
        let key = key.as_bytes();
        self.tables.entries.put_reserved(&mut self.txn, key, record.size(), |space| {
            record.write(|part| space.write_all(part))
        })?;
        if let Some(expires) = record.expires {
            self.has_ends = true;
            self.ends_added += 1;
            self.tables.ends.put(&mut self.txn, &record::end(expires, key), &[])?;
        }
        record::push_change(&mut self.row, ChangeKind::Put, key);
        Ok(())
    }

    fn delete(&mut self, key: &Key) -> Result<(), Failure> {
        let Some(old) = self.stored(key).map_err(Failure::Broken)? else { return Ok(()) };
        // What has expired was absent already: deleting it only reclaims its space.
        let kind = if self.has_ended(&old) { ChangeKind::Expired } else { ChangeKind::Deleted };
        let expires = old.expires;
        self.changed = true;
        self.tables.entries.delete(&mut self.txn, key.as_bytes())?;
        if let Some(expires) = expires {
            self.tables.ends.delete(&mut self.txn, &record::end(expires, key.as_bytes()))?;
        }
        record::push_change(&mut self.row, kind, key.as_bytes());
        Ok(())
    }

    /// Writes the row of the log, if the commit changed anything.
    fn log(&mut self) -> Result<(), Failure> {
        if self.row.is_empty() {
            return Ok(());
        }
        self.revision += 1;
        let key = self.revision.to_be_bytes();
        self.tables.log.put_with_flags(&mut self.txn, PutFlags::APPEND, &key, &self.row)?;
        Ok(())
    }

    fn reclaim(&mut self, most: usize) -> Result<bool, Failure> {
        self.row.clear();
        for _ in 0..most {
            let Some((end, _)) = self.tables.ends.first(&self.txn)? else { break };
            let end = end.to_vec();
            let (expires, key) = record::split_end(&end).map_err(Failure::Broken)?;
            if expires > self.now.as_millisecond() {
                break;
            }
            self.changed = true;
            self.tables.ends.delete(&mut self.txn, &end)?;
            let key = Key::from_stored(key.to_vec());
            // What is damaged stays, for whoever reads it to be told.
            if let Ok(Some(record)) = self.stored(&key)
                && self.has_ended(&record)
            {
                self.tables.entries.delete(&mut self.txn, key.as_bytes())?;
                record::push_change(&mut self.row, ChangeKind::Expired, key.as_bytes());
            }
        }
        let reclaimed = !self.row.is_empty();
        self.log()?;
        Ok(reclaimed)
    }

    /// Keeps the log to about so many commits, and to a size. The last row always stays: it holds
    /// the store's revision.
    fn trim(&mut self, history: u64) -> Result<(), Failure> {
        let Some((first, _)) = self.tables.log.first(&self.txn)? else { return Ok(()) };
        let first = revision_of(first).map_err(Failure::Broken)?;
        let slack = TRIMMED_MAX.min(history / 4);
        let mut keep_from = (self.revision + 1).saturating_sub(history);
        if self.log_bytes()? > LOG_BYTES_MAX {
            keep_from = keep_from.max(first + slack + TRIMMED_MAX).min(self.revision);
        }
        if keep_from <= first + slack {
            return Ok(());
        }
        let start = first.to_be_bytes();
        let end = keep_from.min(first + TRIMMED_MAX + slack).to_be_bytes();
        let old = (Bound::Included(&start[..]), Bound::Excluded(&end[..]));
        self.changed = true;
        self.tables.log.delete_range(&mut self.txn, &old)?;
        Ok(())
    }

    fn log_bytes(&self) -> heed::Result<usize> {
        let stat = self.tables.log.stat(&self.txn)?;
        let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        Ok(pages.saturating_mul(stat.page_size as usize))
    }
}

/// The revision of the last commit: the log always keeps the last row.
pub(crate) fn latest_revision(tables: &Tables, txn: &RoTxn<'_>) -> Result<u64> {
    let last = tables.log.last(txn).map_err(|error| from_lmdb("cannot read the log", error))?;
    last.map_or(Ok(0), |(key, _)| revision_of(key))
}

/// The revision that a key of the log stands for.
pub(crate) fn revision_of(key: &[u8]) -> Result<u64> {
    let bytes = key.try_into().map_err(|_| corrupt("the log in the data file is damaged"))?;
    Ok(u64::from_be_bytes(bytes))
}
