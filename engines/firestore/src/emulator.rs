//! Where Google's emulator promises less than the service: reads beside a commit may see half of it.
//!
//! The service promises that the documents of one `batchGet` are of one moment. The emulator applies a commit document by
//! document, and only a transaction that locks what it reads waits for the rest. So where a document was changed a moment
//! ago, and not by a commit that is known to have ended, several documents are read again in such a transaction.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::document::Held;

/// No commit takes longer.
const MOMENT: Duration = Duration::from_secs(2);
/// How many of this process's commits are remembered.
const ENDED_MAX: usize = 4_096;

/// The times of the last commits of this process that have ended.
#[derive(Debug, Default)]
pub(crate) struct Ended(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    /// Each with its number: they are counted.
    last: VecDeque<(u64, Timestamp)>,
    count: u64,
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
