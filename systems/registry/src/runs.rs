//! What runs did.

use jiff::Timestamp;
use keyward_engine::{Commit, Cursor, Entry, Expiry, Json, Order, Put, Scan, Version, moment_text};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::{Error, Page, Problem, Registry, Result};

/// One run of a registry, as its history has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id: later runs have larger ones.
    pub id: String,
    /// Who wanted it.
    pub trigger: Trigger,
    /// When it began.
    pub started_at: String,
    /// When it ended. A run that is `running` and has no end was killed, if none is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// How it ended.
    pub status: RunStatus,
    /// The commit it looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit that the registry was at before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_commit: Option<String>,
    /// How many files are policies at that commit; if only changes were looked at, how many changed.
    pub scanned: u64,
    /// Policies added.
    pub added: u64,
    /// Policies updated.
    pub updated: u64,
    /// Policies deleted.
    pub deleted: u64,
    /// Whether the whole tree was compared, or only what changed since the last run.
    pub whole: bool,
    /// How many blobs were read from git.
    pub blobs_read: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// How many files and policies were left alone, and whether the run itself failed.
    pub error_count: u64,
    /// The first of them.
    pub errors: Vec<Problem>,
}

impl Run {
    /// How many problems are kept with a run.
    pub const ERRORS_MAX: usize = 100;
    /// How much of each reason.
    const REASON_CHARS_MAX: usize = 500;

    pub(crate) fn new(id: String, trigger: Trigger, now: Timestamp) -> Self {
        Self {
            id,
            trigger,
            started_at: moment_text(now),
            ended_at: None,
            status: RunStatus::Running,
            commit: None,
            previous_commit: None,
            scanned: 0,
            added: 0,
            updated: 0,
            deleted: 0,
            whole: false,
            blobs_read: 0,
            duration_ms: 0,
            error_count: 0,
            errors: Vec::new(),
        }
    }

    /// Ends the run now, with these problems, of which the first are kept.
    pub(crate) fn end(&mut self, now: Timestamp, mut problems: Vec<Problem>) {
        self.ended_at = Some(moment_text(now));
        let began = self.started_at.parse::<Timestamp>().unwrap_or(now);
        self.duration_ms = u64::try_from(now.duration_since(began).as_millis()).unwrap_or(0);
        self.error_count = problems.len() as u64;
        problems.truncate(Self::ERRORS_MAX);
        for problem in &mut problems {
            for text in [&mut problem.path, &mut problem.reason] {
                if let Some((end, _)) = text.char_indices().nth(Self::REASON_CHARS_MAX) {
                    text.truncate(end);
                    text.push('…');
                }
            }
        }
        self.errors = problems;
    }

    fn decode(key: &Key, entry: &Entry) -> Result<Self> {
        serde_json::from_slice(entry.value.as_bytes()).map_err(|error| Error::damaged(key, error))
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It has not ended, or was killed.
    Running,
    /// The registry is as the repository.
    Success,
    /// The registry is as the repository but for what is named in its errors.
    Partial,
    /// It was given up; the registry stays at its last commit.
    Failed,
}

impl RunStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Success => "success",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }
}

/// Who wanted a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// Somebody asked for it.
    Hand,
    /// It was time.
    Schedule,
    /// Something was pushed.
    Webhook,
}

impl Trigger {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hand => "hand",
            Self::Schedule => "schedule",
            Self::Webhook => "webhook",
        }
    }
}

impl Registry {
    /// One page of what runs did, newest first. `after` is the id of the last run of the page before.
    pub async fn runs(&self, after: Option<&str>, limit: usize) -> Result<Page<Run>> {
        let places = &self.inner.places;
        let after = after
            .map(|id| {
                places.run(id).ok_or_else(|| Error::Invalid(format!("{id:?} is no run's id")))
            })
            .transpose()?;
        let scan = Scan::new(places.runs())
            .order(Order::Descending)
            .limit(limit.clamp(1, Self::PAGE_MAX))
            .after(after.as_ref().map(Cursor::after_key));
        let page = self.inner.store.scan(&scan).await?;
        let mut items = Vec::with_capacity(page.rows.len());
        for row in &page.rows {
            if let Some(entry) = &row.entry {
                items.push(Run::decode(&row.key, entry)?);
            }
        }
        let next = page.next.and(items.last()).map(|run| run.id.clone());
        Ok(Page { items, next })
    }

    /// What one run did.
    pub async fn run(&self, id: &str) -> Result<Option<Run>> {
        let Some(key) = self.inner.places.run(id) else { return Ok(None) };
        let entry = self.inner.store.get(&key).await?;
        entry.map(|entry| Run::decode(&key, &entry)).transpose()
    }

    /// What is kept of a run, and at which version.
    pub(crate) async fn stored_run(&self, id: &str) -> Result<(Key, Option<(Run, Version)>)> {
        let key = self.inner.places.run(id);
        let key = key.ok_or_else(|| Error::Invalid(format!("{id:?} is no run's id")))?;
        let run = match self.inner.store.get(&key).await? {
            Some(entry) => Some((Run::decode(&key, &entry)?, entry.version)),
            None => None,
        };
        Ok((key, run))
    }

    /// Writes what a run did, for as long as that is kept.
    pub(crate) fn put_run(&self, commit: Commit, run: &Run) -> Result<Commit> {
        let key = self.inner.places.run(&run.id);
        let key = key.ok_or_else(|| Error::Invalid(format!("{:?} is no run's id", run.id)))?;
        let value = Json::from_value(run).map_err(|error| Error::damaged(&key, error))?;
        let kept = Expiry::After(self.settings().runs_kept);
        Ok(commit.put(key, Put::new(value).expiring(kept)))
    }
}
