//! What is kept of a job: what it is doing, and how it ended.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Entry, Expiry, Json, Put};
use keyward_key::{Key, KeyRange, Prefix};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::enqueue::json;
use crate::moment::Moment;
use crate::row::{JobTag, Row, State};
use crate::{Error, Result};

/// A job, as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The queue it is worked off from.
    pub queue: String,
    /// When it was submitted, by the clock of who did.
    pub submitted: Timestamp,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// What it is doing, or how it ended.
    pub status: Status,
}

/// What a job is doing, or how it ended. The three are told apart by a tag, never by what they hold:
/// a result that is a number is a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is under way.
    Activity(Activity),
    /// It is done; this came of it.
    Result(Json),
    /// It failed, or was stopped; this is why.
    Trace(Trace),
}

impl Status {
    /// Whether nothing more will happen.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Activity(_))
    }

    /// About how many bytes it has where it is shown.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Activity(Activity { name, detail, .. }) => {
                name.len() + detail.as_ref().map_or(0, String::len)
            }
            Self::Result(result) => result.len(),
            Self::Trace(trace) => trace.kind.len() + trace.message.len(),
        }
    }

    /// The status with its tag, as JSON: `{"activity":{…}}`, `{"result":…}` or `{"trace":{…}}`.
    pub fn to_json(&self) -> Result<Json> {
        Stored::of(self).and_then(|stored| json(&stored))
    }
}

/// What a job is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Activity {
    /// In one word: `scheduling` while it waits for a worker, `running` until the worker says
    /// something else.
    pub name: String,
    /// What there is to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Which attempt is under way, or would be next, counted from 1.
    #[serde(default)]
    pub attempt: u32,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// So much is done.
    pub done: u64,
    /// Of so much, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Why a job came to no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// `failed`, `cancelled` or `dropped`.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// How many attempts were made.
    pub attempts: u32,
}

impl Trace {
    pub(crate) fn failed(row: &Row, reason: &str) -> Self {
        Self::new("failed", reason, row.retry_count)
    }

    pub(crate) fn dropped(message: &str) -> Self {
        Self::new("dropped", message, 0)
    }

    pub(crate) fn cancelled(message: &str, attempts: u32) -> Self {
        Self::new("cancelled", message, attempts)
    }

    fn new(kind: &str, message: &str, attempts: u32) -> Self {
        Self { kind: kind.to_owned(), message: crate::row::shortened(message), attempts }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stored {
    Activity(Activity),
    Result(Box<RawValue>),
    Trace(Trace),
}

impl Stored {
    fn of(status: &Status) -> Result<Self> {
        Ok(match status {
            Status::Activity(activity) => Self::Activity(activity.clone()),
            Status::Result(result) => Self::Result(
                RawValue::from_string(result.as_str().to_owned())
                    .map_err(|error| Error::BadMessage(error.to_string()))?,
            ),
            Status::Trace(trace) => Self::Trace(trace.clone()),
        })
    }
}

/// The record at `job:{id}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub queue: String,
    status: Stored,
    submitted_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finished_at: Option<Moment>,
    pub retention_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// What tells the content of this job from another's.
    pub digest: String,
    /// The attempt that the activity belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
}

impl Record {
    fn new(queue: &str, tag: &JobTag, status: &Status) -> Result<Self> {
        Ok(Self {
            queue: queue.to_owned(),
            status: Stored::of(status)?,
            submitted_at: tag.submitted_at,
            finished_at: None,
            retention_ms: tag.retention_ms,
            timeout_ms: tag.timeout_ms,
            digest: tag.digest.clone(),
            nonce: None,
        })
    }

    pub fn decode(key: &Key, entry: &Entry) -> Result<Self> {
        serde_json::from_str(entry.value.as_str())
            .map_err(|error| Error::Damaged { key: key.to_string(), reason: error.to_string() })
    }

    pub fn is_final(&self) -> bool {
        !matches!(self.status, Stored::Activity(_))
    }

    /// What a row says of its job.
    pub fn tag(&self) -> JobTag {
        JobTag {
            submitted_at: self.submitted_at,
            retention_ms: self.retention_ms,
            timeout_ms: self.timeout_ms,
            digest: self.digest.clone(),
        }
    }

    /// The job, with what its row says of it.
    pub fn job(self, id: &str, row: Option<&Row>) -> Job {
        let status = match self.status {
            Stored::Result(result) => Status::Result(Json::from_stored(result.get().to_owned())),
            Stored::Trace(trace) => Status::Trace(trace),
            Stored::Activity(told) => derived(told, self.nonce.as_deref(), row),
        };
        Job {
            id: id.to_owned(),
            queue: self.queue,
            submitted: self.submitted_at.time(),
            finished: self.finished_at.map(Moment::time),
            status,
        }
    }
}

/// What a job is doing follows from its row; what it said last counts only for the attempt that said
/// it.
fn derived(told: Activity, by: Option<&str>, row: Option<&Row>) -> Status {
    let Some(row) = row else {
        return Status::Trace(Trace::dropped("the job's message is no longer in its queue"));
    };
    let attempt = row.next_attempt();
    let named = |name: &str| Activity { name: name.to_owned(), attempt, ..Activity::default() };
    Status::Activity(match (row.state, &row.attempt) {
        (State::Claimed, Some(current)) if by == Some(&*current.nonce) => {
            Activity { attempt, ..told }
        }
        (State::Claimed, _) => named("running"),
        (State::Ready | State::Delayed, _) => {
            Activity { detail: row.error_message.clone(), ..named("scheduling") }
        }
    })
}

/// The key of a job.
pub(crate) fn key(id: &str) -> Result<Key> {
    Key::from_segments(["job", id]).map_err(|error| Error::BadMessage(error.to_string()))
}

/// The keys of all jobs.
pub(crate) fn range() -> KeyRange {
    KeyRange::under(&Prefix::from_segments(["job"]))
}

/// A job that was just submitted, or put back.
pub(crate) fn submitted(queue: &str, tag: &JobTag) -> Result<Put> {
    let waiting = Activity { name: "scheduling".to_owned(), attempt: 1, ..Activity::default() };
    Ok(Put::new(json(&Record::new(queue, tag, &Status::Activity(waiting))?)?))
}

/// A job whose handler says what it is doing.
pub(crate) fn underway(queue: &str, tag: &JobTag, activity: &Activity, nonce: &str) -> Result<Put> {
    let mut record = Record::new(queue, tag, &Status::Activity(activity.clone()))?;
    record.nonce = Some(nonce.to_owned());
    Ok(Put::new(json(&record)?))
}

/// A job that has ended, and is kept for its retention.
pub(crate) fn finished(
    queue: &str,
    tag: &JobTag,
    now: Moment,
    end: Result<Json, Trace>,
) -> Result<Put> {
    let status = end.map_or_else(Status::Trace, Status::Result);
    let mut record = Record::new(queue, tag, &status)?;
    record.finished_at = Some(now);
    let retention = Duration::from_millis(tag.retention_ms.max(1));
    Ok(Put::new(json(&record)?).expiring(Expiry::After(retention)))
}
