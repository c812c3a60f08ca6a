//! What failed is not tried again at once by everybody.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Commit, Entry, Expiry, Json, Put};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::dependants::name;
use crate::{Error, Result, Source};

/// Failures of one key in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    pub times: u32,
    pub message: String,
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub at: Timestamp,
    pub source: Source,
}

/// How long a key is held back after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub first: Duration,
    pub most: Duration,
}

/// The count of failures outlives the time a key is held back by this much, so that the next failure
/// is the next in the row.
const REMEMBERED: u32 = 10;
const MESSAGE_CHARS_MAX: usize = 1_000;
const DOUBLINGS_MAX: u32 = 30;

impl Backoff {
    /// Doubling from the first to the most.
    pub fn after(self, times: u32) -> Duration {
        let doubled = 1_u32 << times.saturating_sub(1).min(DOUBLINGS_MAX);
        self.first.saturating_mul(doubled).min(self.most)
    }
}

impl Failure {
    /// Where the failures of a key are counted.
    pub fn count_key(key: &Key) -> Result<Key> {
        let segments = ["system", "cache", "failed", &name(key)];
        Key::from_segments(segments).map_err(|error| Error::BadRequest(error.to_string()))
    }

    /// The key that exists while another is held back.
    pub fn hold_key(key: &Key) -> Result<Key> {
        Ok(Self::count_key(key)?.child("hold"))
    }

    pub fn read(entry: &Entry) -> Option<Self> {
        serde_json::from_slice(entry.value.as_bytes()).ok()
    }

    /// One more failure, after those there were.
    pub fn next(before: Option<Self>, message: &str, source: &Source, at: Timestamp) -> Self {
        // Another source is another matter.
        let before = before.filter(|failure| failure.source == *source);
        let times = before.map_or(0, |failure| failure.times).saturating_add(1);
        let message = message.chars().take(MESSAGE_CHARS_MAX).collect();
        Self { times, message, at, source: source.clone() }
    }

    /// The puts that remember it.
    pub fn puts(&self, key: &Key, backoff: Backoff) -> Result<[(Key, Put); 2]> {
        let value = Json::from_value(self).map_err(|error| Error::BadRequest(error.to_string()))?;
        let held = backoff.after(self.times);
        let until = |time| Put::new(value.clone()).expiring(Expiry::After(time));
        let counted = held.saturating_mul(REMEMBERED);
        Ok([(Self::count_key(key)?, until(counted)), (Self::hold_key(key)?, until(held))])
    }

    /// The same commit, also forgetting the failures of a key.
    pub fn forgotten(commit: Commit, key: &Key) -> Result<Commit> {
        Ok(commit.delete(Self::count_key(key)?).delete(Self::hold_key(key)?))
    }

    /// As the error that callers get.
    pub fn error(self, key: &Key, retry_after: Duration) -> Error {
        let Self { times, message, at, .. } = self;
        Error::Failed { key: key.clone(), message, at, times, retry_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_bound() {
        let backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(60) };
        let pauses = [1, 2, 3, 6, 7, 40, u32::MAX].map(|times| backoff.after(times).as_secs());
        assert_eq!(pauses, [1, 2, 4, 32, 60, 60, 60]);
    }

    #[test]
    fn failures_are_counted_for_one_source() {
        let (one, two) = (Source::version("1"), Source::version("2"));
        let at = Timestamp::UNIX_EPOCH;
        let first = Failure::next(None, "no", &one, at);
        let second = Failure::next(Some(first.clone()), "no", &one, at);
        assert_eq!((first.times, second.times), (1, 2));
        assert_eq!(Failure::next(Some(second), "no", &two, at).times, 1);
    }
}
