//! What runs did: one row each, written once, in the order of time.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use keyward_engine::{
    Commit, Cursor, Expiry, ExpirySupport, Json, List, Listed, Put, Scan, moment_text,
};
use keyward_engine::{Error as StoreError, ErrorKind, Store, Tier};
use keyward_key::{Key, KeyRange};
use keyward_records::Error as RecordsError;
use serde::{Deserialize, Serialize};

use super::Tracker;
use crate::error::damaged;
use crate::user_data::UserData;
use crate::{Error, Result, places};

/// How many lines are written in one commit.
const TOGETHER_MAX: usize = 200;
/// How many lines a page has at most.
const LIMIT_MAX: usize = 1_000;

/// What was done, to be logged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Line<'l> {
    pub op: &'static str,
    pub namespace: Option<&'l str>,
    pub key: Option<&'l str>,
    pub found: Option<bool>,
    /// That nothing was changed: the entry was not as expected.
    pub refused: bool,
    pub count: Option<usize>,
    pub preview: Option<&'l Json>,
}

impl<'l> Line<'l> {
    pub fn of(op: &'static str) -> Self {
        Self { op, ..Self::default() }
    }

    pub fn key(mut self, key: &'l str) -> Self {
        self.key = Some(key);
        self
    }

    pub fn write(
        &self,
        agent: Option<&str>,
        at: Timestamp,
        preview_chars_max: usize,
    ) -> keyward_records::Result<Json> {
        let owned = |text: &str| text.to_owned();
        // A value that was refused was neither read nor written.
        let preview = self.preview.filter(|_| preview_chars_max > 0 && !self.refused);
        let logged = LoggedOperation {
            op: self.op.to_owned(),
            at: moment_text(at),
            agent: agent.map(owned),
            namespace: self.namespace.map(owned),
            key: self.key.map(owned),
            found: self.found,
            refused: self.refused,
            count: self.count.map(|count| count as u64),
            preview: preview.map(|json| json.as_str().chars().take(preview_chars_max).collect()),
        };
        Json::from_value(&logged).map_err(|error| damaged(error.to_string()))
    }
}

/// A line that is not written yet.
#[derive(Debug, Clone)]
pub(super) struct HeldLine {
    pub key: Key,
    pub value: Json,
}

/// Something that a run did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedOperation {
    /// What: `get`, `set`, `delete` …
    pub op: String,
    /// When, in ISO 8601.
    pub at: String,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The namespace, where it was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The key, where it was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether there was something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<bool>,
    /// That nothing was changed, because the entry was not as the change expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// How many it was about, where it was about several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The beginning of the value that was read or written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// A page of an operations log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operations {
    /// What was done, in the order of time.
    pub operations: Vec<LoggedOperation>,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
}

impl Tracker {
    /// Writes the lines that are held. Each has its own key, so writing one again changes nothing. A store that takes
    /// none says so once: then they are dropped, which is counted, and no more are held.
    pub(super) async fn flush_lines(&self, store: &Store) -> Result<()> {
        let together = match store.capabilities().tier() {
            Tier::Atomic => TOGETHER_MAX.min(store.limits().commit_keys_max),
            Tier::Recoverable | Tier::Advisory => 1,
        };
        let expires = store.capabilities().expiry != ExpirySupport::Unsupported;
        let expiry = expires.then_some(Expiry::After(self.log_life));
        // Those that come meanwhile are for the next flush.
        let mut left = self.held().lines.len();
        while left > 0 {
            let some: Vec<HeldLine> =
                self.held().lines.iter().take(together.min(left)).cloned().collect();
            let count = some.len();
            let commit = some.into_iter().fold(Commit::new(), |commit, line| {
                commit.put(line.key, Put { value: line.value, metadata: None, expiry })
            });
            // Without checks nothing conflicts.
            match store.commit(commit).await {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    self.refuse_log();
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            // Lines are only added at the end, and one flush runs at a time.
            self.held().lines.drain(..count);
            left -= count;
        }
        Ok(())
    }

    fn refuse_log(&self) {
        self.log_refused.store(true, Ordering::Relaxed);
        let mut held = self.held();
        let dropped = held.lines.len() as u64;
        held.lines.clear();
        self.lines_lost.fetch_add(dropped, Ordering::Relaxed);
    }
}

/// Refuses to show logs of a store that keeps none: an empty answer would say that nothing was done.
async fn admit_logs(store: &Store) -> Result<()> {
    let Some(key) = places::no_log() else { return Ok(()) };
    let said = store.get(&key).await?;
    if said.is_none_or(|entry| entry.value.as_str() != places::NO_LOG) {
        return Ok(());
    }
    let message = "this store holds agent entries only; it keeps no logs of runs";
    Err(StoreError::new(ErrorKind::Unsupported, message).into())
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs {
    /// Their ids, in the order of their bytes.
    pub runs: Vec<String>,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
}

impl UserData {
    /// One page of the user's runs that have a log, at most `limit` (up to 1,000). Their lines are not
    /// read.
    pub async fn runs(&self, after: Option<String>, limit: usize) -> Result<Runs> {
        if limit == 0 || limit > LIMIT_MAX {
            return Err(Error::Invalid(format!("the limit is from 1 to {LIMIT_MAX}")));
        }
        self.admit_read()?;
        let (shared, store) = (self.shared(), self.shared().store());
        shared.tracker.flush_log(store).await?;
        let mut question = shared.records.question(&self.caller).await?;
        question.part(b"agent-runs");
        let now = shared.clock.now();
        let after = match after {
            Some(cursor) => Some(Cursor::new(question.position(&cursor, now)?)),
            None => None,
        };
        let list = List::new(places::logs(&self.user)).depth(1).after(after).limit(limit);
        let listing = store.list(&list).await?;
        if listing.items.is_empty() && listing.next.is_none() {
            admit_logs(store).await?;
        }
        let runs = listing.items.iter().filter_map(|item| match item {
            Listed::Prefix(prefix) => prefix.segments().last(),
            Listed::Key(_) => None,
        });
        let runs = runs.map(|run| run.into_owned()).collect();
        let next = listing.next.map(|next| question.cursor(next.as_bytes(), now));
        Ok(Runs { runs, next })
    }

    /// One page of what a run did, in the order of time, at most `limit` lines (up to 1,000). What this
    /// process has gathered is written first; what others have not written yet is missing.
    pub async fn operations(
        &self,
        run: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Operations> {
        if limit == 0 || limit > LIMIT_MAX {
            return Err(Error::Invalid(format!("the limit is from 1 to {LIMIT_MAX}")));
        }
        if run.is_empty() {
            return Err(Error::Invalid("a run has a name".to_owned()));
        }
        self.admit_read()?;
        let (shared, store) = (self.shared(), self.shared().store());
        shared.tracker.flush_log(store).await?;
        let mut question = shared.records.question(&self.caller).await?;
        question.part(b"agent-log");
        question.part(run.as_bytes());
        let now = shared.clock.now();
        let after = match after {
            Some(cursor) => Some(Cursor::new(question.position(&cursor, now)?)),
            None => None,
        };
        let range = KeyRange::under(&places::log(&self.user, run));
        let page = store.scan(&Scan::new(range).after(after).limit(limit)).await?;
        if page.rows.is_empty() && page.next.is_none() {
            admit_logs(store).await?;
        }
        let lines = page.rows.iter().filter_map(|row| Some((&row.key, row.entry.as_ref()?)));
        let operations = lines.map(|(key, line)| {
            serde_json::from_slice(line.value.as_bytes())
                .map_err(|_| RecordsError::Damaged(format!("{key} is no line of a log")))
        });
        let operations = operations.collect::<keyward_records::Result<_>>()?;
        let next = page.next.map(|next| question.cursor(next.as_bytes(), now));
        Ok(Operations { operations, next })
    }
}
