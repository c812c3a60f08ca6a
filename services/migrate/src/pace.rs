//! How fast a migration goes.

use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use keyward_engine::Clock;

/// Waits. Passed in, so that tests own the time.
pub trait Pause: Send + Sync {
    /// Comes back after this long.
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// Keeps to a number of records each second.
pub(crate) struct Pace {
    per_second: Option<NonZeroU32>,
    began: Timestamp,
    records: u64,
}

impl Pace {
    pub fn new(per_second: Option<NonZeroU32>, clock: &dyn Clock) -> Self {
        Self { per_second, began: clock.now(), records: 0 }
    }

    /// How many records to take at once: no more than are due in a second.
    pub fn page(&self, records_max: usize) -> usize {
        let due = self.per_second.and_then(|rate| usize::try_from(rate.get()).ok());
        due.map_or(records_max, |due| due.min(records_max))
    }

    /// How long to wait after so many records more.
    pub fn wait(&mut self, records: usize, clock: &dyn Clock) -> Duration {
        let Some(rate) = self.per_second else { return Duration::ZERO };
        self.records = self.records.saturating_add(u64::try_from(records).unwrap_or(u64::MAX));
        let due_ms = self.records.saturating_mul(1_000) / u64::from(rate.get());
        let past = clock.now().duration_since(self.began);
        let past = if past.is_negative() { Duration::ZERO } else { past.unsigned_abs() };
        Duration::from_millis(due_ms).saturating_sub(past)
    }
}
