//! Log lines for what may happen thousands of times a second: the first few of a kind are logged one by
//! one, the others are counted and logged as one line.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long refusals are counted before they are summed up.
const INTERVAL: Duration = Duration::from_secs(10);
/// How many of a kind have a line of their own in one interval.
const LINES_MAX: u64 = 3;

/// Something that was refused: what, and why. Both are fixed texts, so that there are only so many kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refusal {
    /// In the singular: `request`, `connection`.
    pub what: &'static str,
    /// The code of a problem, or a few words.
    pub why: &'static str,
}

/// Counts refusals, and says which of them are logged one by one.
#[derive(Debug, Default)]
pub(crate) struct LogSummary(Mutex<BTreeMap<Refusal, u64>>);

impl LogSummary {
    /// Counts one, and says whether it has a log line of its own.
    pub fn has_line(&self, refusal: Refusal) -> bool {
        let mut counts = self.counts();
        let count = counts.entry(refusal).or_default();
        *count = count.saturating_add(1);
        *count <= LINES_MAX
    }

    /// Ends an interval: what had no line of its own in it, and how many there were.
    fn take(&self) -> Vec<(Refusal, u64)> {
        let counts = std::mem::take(&mut *self.counts());
        let more =
            counts.into_iter().map(|(refusal, count)| (refusal, count.saturating_sub(LINES_MAX)));
        more.filter(|(_, more)| *more > 0).collect()
    }

    /// Logs what had no line of its own since the last time.
    pub fn log(&self) {
        for (Refusal { what, why }, more) in self.take() {
            match more {
                1 => tracing::warn!(more, why, "1 more {what} was refused: {why}"),
                _ => tracing::warn!(more, why, "{more} more {what}s were refused: {why}"),
            }
        }
    }

    /// Logs what has no line of its own, now and then. Never ends.
    pub async fn keep_logging(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.log();
        }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<Refusal, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERLOADED: Refusal = Refusal { what: "request", why: "overloaded" };
    const RATE_LIMITED: Refusal = Refusal { what: "request", why: "rate-limited" };

    #[test]
    fn the_first_of_a_kind_have_a_line_and_the_others_are_summed_up() {
        let summary = LogSummary::default();
        let lines = (0..1_237).filter(|_| summary.has_line(OVERLOADED)).count();
        assert_eq!(lines, 3);
        assert!(summary.has_line(RATE_LIMITED), "one kind does not hide another");
        assert_eq!(summary.take(), [(OVERLOADED, 1_234)]);
        assert!(summary.take().is_empty());
        assert!(summary.has_line(OVERLOADED), "an interval begins with lines again");
    }
}
