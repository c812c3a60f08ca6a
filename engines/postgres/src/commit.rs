//! A commit as it is sent, and what its answer means.

use std::collections::BTreeMap;

use jiff::Timestamp;
use keyward_engine::{
    Commit, Error, ErrorKind, Expect, Expiry, Json, Outcome, Put, Result, Revision, Version, Write,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::client::Client;
use crate::error::corrupt;

/// A commit that only puts.
pub const PUT: &str = "SELECT revision, watched FROM keyward.put($1, $2, $3, $4, $5, $6)";
const COMMIT: &str = "SELECT revision, watched, failed, refused, reason \
                      FROM keyward.commit($1, $2, $3, $4, $5, $6, $7, $8, $9)";
/// Wakes those who watch the store.
const NOTIFY: &str = "SELECT pg_notify($1, '')";

/// What `keyward.commit` calls the changes of a key.
const NOTHING: i16 = 0;
const PUT_ACT: i16 = 1;
const DELETE_ACT: i16 = 2;
const ADD_ACT: i16 = 3;
/// A version that no key ever has.
const NO_VERSION: i64 = -1;
/// Ends further away than this are beyond the calendar, and `keyward.moment` cuts them there.
const TTL_MS_MAX: i64 = 300_000_000_000_000;

/// How a commit ended, and whether anyone watches the store.
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) watched: bool,
}

/// The channel on which a store's commits are announced.
pub(crate) fn channel(store: i32) -> String {
    format!("keyward_{store}")
}

impl Client {
    /// Applies a commit. If the store is known to be watched, its watchers are woken in the same
    /// round trip.
    ///
    /// `NOTIFY` as part of the transaction would be simpler. But it takes a lock on the whole
    /// cluster, and holds it while the transaction is synced: commits would go one by one.
    pub(crate) async fn commit(
        &self,
        store: i32,
        commit: &Commit,
        known_watched: bool,
    ) -> Result<Answer> {
        let columns = Columns::of(commit);
        let values = columns.values(&store);
        let channel = channel(store);
        let notify: [&(dyn ToSql + Sync); 1] = [&channel];
        let after = known_watched.then_some((NOTIFY, &notify[..]));
        let statement = if columns.only_puts { PUT } else { COMMIT };
        let rows = self.write(statement, &values, after).await?;
        let watched = rows.first().is_some_and(|row| row.try_get(1).unwrap_or(false));
        if watched && !known_watched {
            // It is applied whatever becomes of this; watchers also look for themselves.
            let _ = self.read("cannot notify", NOTIFY, &notify).await;
        }
        Ok(Answer { outcome: columns.outcome(commit, &rows)?, watched })
    }
}

/// The keys of a commit in byte order, and for each what must hold and what shall happen.
struct Columns<'c> {
    keys: Vec<&'c [u8]>,
    expects: Vec<Option<i64>>,
    acts: Vec<i16>,
    values: Vec<Option<&'c [u8]>>,
    metadata: Vec<Option<&'c [u8]>>,
    ttls: Vec<Option<i64>>,
    ends: Vec<Option<Timestamp>>,
    amounts: Vec<Option<i64>>,
    /// Which check each expectation comes from.
    checks: Vec<Option<usize>>,
    only_puts: bool,
}

impl<'c> Columns<'c> {
    fn of(commit: &'c Commit) -> Self {
        let mut touched: BTreeMap<&[u8], (Option<usize>, Option<&Write>)> = BTreeMap::new();
        for (at, check) in commit.checks.iter().enumerate() {
            touched.entry(check.key.as_bytes()).or_default().0 = Some(at);
        }
        for write in &commit.writes {
            touched.entry(write.key().as_bytes()).or_default().1 = Some(write);
        }
        let count = touched.len();
        let is_put = |write: &Write| matches!(write, Write::Put(..));
        let mut columns = Self {
            keys: Vec::with_capacity(count),
            expects: vec![None; count],
            acts: vec![NOTHING; count],
            values: vec![None; count],
            metadata: vec![None; count],
            ttls: vec![None; count],
            ends: vec![None; count],
            amounts: vec![None; count],
            checks: Vec::with_capacity(count),
            only_puts: commit.checks.is_empty() && commit.writes.iter().all(is_put),
        };
        for (at, (key, (check, write))) in touched.into_iter().enumerate() {
            columns.keys.push(key);
            columns.checks.push(check);
            columns.expects[at] = check.map(|check| match &commit.checks[check].expect {
                Expect::Absent => 0,
                Expect::Version(version) => number(version),
            });
            match write {
                None => {}
                Some(Write::Put(_, put)) => columns.put(at, put),
                Some(Write::Delete(_)) => columns.acts[at] = DELETE_ACT,
                Some(Write::Add(_, amount)) => {
                    columns.acts[at] = ADD_ACT;
                    columns.amounts[at] = Some(*amount);
                }
            }
        }
        if columns.only_puts {
            leave_out_nulls(&mut columns.metadata);
            leave_out_nulls(&mut columns.ttls);
            leave_out_nulls(&mut columns.ends);
        }
        columns
    }

    fn put(&mut self, at: usize, put: &'c Put) {
        self.acts[at] = PUT_ACT;
        self.values[at] = Some(put.value.as_bytes());
        self.metadata[at] = put.metadata.as_ref().map(Json::as_bytes);
        match put.expiry {
            None => {}
            Some(Expiry::After(ttl)) => {
                let ms = ttl.as_nanos().div_ceil(1_000_000);
                self.ttls[at] = Some(i64::try_from(ms).unwrap_or(i64::MAX).min(TTL_MS_MAX));
            }
            // PostgreSQL's calendar begins later than ours; long past is past.
            Some(Expiry::At(end)) => {
                self.ends[at] = Some(Expiry::At(end.max(Timestamp::UNIX_EPOCH)).moment(end));
            }
        }
    }

    fn values<'a>(&'a self, store: &'a i32) -> Vec<&'a (dyn ToSql + Sync)> {
        if self.only_puts {
            return vec![store, &self.keys, &self.values, &self.metadata, &self.ttls, &self.ends];
        }
        vec![
            store,
            &self.keys,
            &self.expects,
            &self.acts,
            &self.values,
            &self.metadata,
            &self.ttls,
            &self.ends,
            &self.amounts,
        ]
    }

    fn outcome(&self, commit: &Commit, rows: &[Row]) -> Result<Outcome> {
        let row = rows.first().ok_or_else(|| senseless("nothing"))?;
        let revision: Option<i64> = row.try_get(0).map_err(corrupt)?;
        if let Some(revision) = revision {
            let revision = u64::try_from(revision).map_err(|_| senseless("a negative revision"))?;
            let version = |write: &Write| {
                (!matches!(write, Write::Delete(_))).then(|| Version::from(revision))
            };
            return Ok(Outcome::Applied {
                revision: Some(Revision(revision)),
                versions: commit.writes.iter().map(version).collect(),
            });
        }
        if let Some(failed) = row.try_get::<_, Option<Vec<i32>>>(2).map_err(corrupt)? {
            let check = |place: &i32| self.checks.get(index(*place)?).copied().flatten();
            let mut failed: Vec<usize> = failed.iter().filter_map(check).collect();
            failed.sort_unstable();
            return Ok(Outcome::Conflicted { failed });
        }
        let place: i32 = row.try_get(3).map_err(corrupt)?;
        let reason: String = row.try_get(4).map_err(corrupt)?;
        let key = index(place).and_then(|at| self.keys.get(at)).copied().unwrap_or_default();
        let write = commit.writes.iter().find(|write| write.key().as_bytes() == key);
        let key = write.map(|write| write.key().to_string()).unwrap_or_default();
        Err(Error::new(ErrorKind::Invalid, format!("cannot add to {key}: {reason}")))
    }
}

/// Empties a column that holds nothing: `unnest` fills up what is missing with nulls.
fn leave_out_nulls<T>(column: &mut Vec<Option<T>>) {
    if column.iter().all(Option::is_none) {
        column.clear();
    }
}

/// A version as the database has it.
fn number(version: &Version) -> i64 {
    let number = version.as_number().and_then(|number| i64::try_from(number).ok());
    number.filter(|&number| number > 0).unwrap_or(NO_VERSION)
}

/// Arrays in the database begin with 1.
fn index(place: i32) -> Option<usize> {
    usize::try_from(place).ok()?.checked_sub(1)
}

fn senseless(what: &str) -> Error {
    Error::new(ErrorKind::OutcomeUnknown, format!("the answer to the commit was {what}"))
}
