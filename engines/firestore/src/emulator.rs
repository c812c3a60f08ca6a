//! Where Google's emulator promises less than the service: reads beside a commit may see half of it.
//!
//! The service promises that the documents of one `batchGet` are of one moment. The emulator applies a commit document by
//! document, and only a transaction that locks what it reads waits for the rest. So where a document was changed a moment
//! ago, and not by a commit that is known to have ended, several documents are read again in such a transaction.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use keyward_engine::Result;
use keyward_http::Effect;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::document::Held;
use crate::error::garbled;

/// No commit takes longer.
const MOMENT: Duration = Duration::from_secs(2);
/// How many of this process's commits are remembered.
const ENDED_MAX: usize = 4_096;
const PAUSE: Duration = Duration::from_millis(5);

/// The times of the last commits of this process that have ended.
#[derive(Debug, Default)]
pub(crate) struct Ended(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    /// Each with its number: they are counted.
    last: VecDeque<(u64, Timestamp)>,
    count: u64,
}

#[derive(Deserialize)]
struct Begun {
    transaction: String,
}

impl Ended {
    /// A commit has ended.
    pub fn note(&self, time: Timestamp) {
        let mut times = self.lock();
        if times.last.len() == ENDED_MAX {
            times.last.pop_front();
        }
        times.count += 1;
        let number = times.count;
        times.last.push_back((number, time));
    }

    /// How many have ended: to be asked before a read that may see half of others.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// Whether what was read at a time may show half of a commit, if so many had ended before.
    pub fn doubts(&self, held: &[Option<Held>], read: Timestamp, count: u64) -> bool {
        if held.len() < 2 {
            return false;
        }
        let times = self.lock();
        let recent = |time: &Timestamp| read.duration_since(*time).unsigned_abs() < MOMENT;
        let ended = |time| times.last.iter().any(|(number, it)| *number <= count && *it == time);
        let updated = held.iter().flatten().map(|held| held.stamp.updated);
        updated.filter(recent).any(|time| !ended(time))
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Reads documents in a transaction that locks them, and ends it.
    pub async fn read_locked(&self, names: &[String], budget: Duration) -> Result<Bytes> {
        let started = Instant::now();
        loop {
            // Begun for itself: one that began with a read whose answer is lost would keep its locks.
            let options = json!({ "options": { "readWrite": {} } });
            let begun = self.read("beginTransaction", &options).await?;
            let Begun { transaction } = serde_json::from_slice(&begun).map_err(garbled)?;
            let body = json!({ "documents": names, "transaction": transaction });
            let answer = self.call("batchGet", &body, Effect::Reads).await;
            // One that fails has ended already.
            let _ =
                self.call("rollback", &json!({ "transaction": transaction }), Effect::Reads).await;
            match answer?.result {
                Ok(body) => return Ok(body),
                Err(refusal) if refusal.is_contended() && started.elapsed() < budget => {
                    sleep(PAUSE).await;
                }
                Err(refusal) => return Err(refusal.into_error("read from")),
            }
        }
    }
}
