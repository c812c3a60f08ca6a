//! How fast a migration goes, and how much it does at once.

use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use keyward_engine::Clock;

use crate::ledger::BEAT;
use crate::migrator::RECORDS_PER_PAGE;

/// Waits. Passed in, so that tests own the time.
pub trait Pause: Send + Sync {
    /// Comes back after this long.
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// How many records the first page of a phase has.
const FIRST_PAGE: usize = 16;
/// How much longer than the last one a page may be.
const GROWTH_MAX: usize = 4;
/// A page that takes longer is followed by a shorter one.
const SLOW: Duration = Duration::from_secs(3);
/// A page that takes less time is followed by a longer one, which is expected to take at most [`BEAT`].
const QUICK: Duration = Duration::from_secs(1);

/// Keeps to a number of records each second, and to pages that end before a run counts as dead: a sign of
/// life is written after each.
pub(crate) struct Pace {
    per_second: Option<NonZeroU32>,
    began: Timestamp,
    records: u64,
    /// How many records the next page has at most.
    page: usize,
    /// When the page began.
    page_began: Timestamp,
}

impl Pace {
    pub fn new(per_second: Option<NonZeroU32>, clock: &dyn Clock) -> Self {
        let began = clock.now();
        Self { per_second, began, records: 0, page: FIRST_PAGE, page_began: began }
    }

    /// How many records to take at once: no more than are due in a second, and fewer where they take long.
    pub fn page(&self, records_max: usize) -> usize {
        let due = self.per_second.and_then(|rate| usize::try_from(rate.get()).ok());
        due.map_or(records_max, |due| due.min(records_max)).min(self.page)
    }

    /// A page begins, of other work than the last one.
    pub fn begin_phase(&mut self, clock: &dyn Clock) {
        self.page = FIRST_PAGE;
        self.begin_page(clock);
    }

    /// A page begins, which is as long as the last one suggests.
    pub fn begin_page(&mut self, clock: &dyn Clock) {
        self.page_began = clock.now();
    }

    /// A page of so many records ends.
    pub fn end_page(&mut self, records: usize, clock: &dyn Clock) {
        let took = past(self.page_began, clock);
        if took > SLOW {
            self.page = (self.page / 2).max(1);
        } else if took < QUICK {
            let pages_in_beat = BEAT.as_millis() / took.as_millis().max(1);
            let pages_in_beat = usize::try_from(pages_in_beat).unwrap_or(usize::MAX);
            let fitting = records.max(1).saturating_mul(pages_in_beat);
            let longer = self.page.saturating_mul(GROWTH_MAX).min(RECORDS_PER_PAGE);
            self.page = longer.min(fitting).max(self.page);
        }
    }

    /// How long to wait after so many records more.
    pub fn wait(&mut self, records: usize, clock: &dyn Clock) -> Duration {
        let Some(rate) = self.per_second else { return Duration::ZERO };
        self.records = self.records.saturating_add(u64::try_from(records).unwrap_or(u64::MAX));
        let due_ms = self.records.saturating_mul(1_000) / u64::from(rate.get());
        Duration::from_millis(due_ms).saturating_sub(past(self.began, clock))
    }
}

/// The time since a moment; none by a clock that was set back.
pub(crate) fn past(since: Timestamp, clock: &dyn Clock) -> Duration {
    let past = clock.now().duration_since(since);
    if past.is_negative() { Duration::ZERO } else { past.unsigned_abs() }
}
