//! Refused acts, summed up: a client in a loop must not fill the log.
//!
//! The first refusal of a credential, route and status is a line like any other. Those that follow
//! within a minute become one line, which says how many they were, when the first and the last of
//! them came, and shows the last. Acts that were not refused are never summed up.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::Told;
use crate::metrics::RouteName;

/// How long refusals of one kind are summed up.
const SUMMED_TIME: Duration = Duration::from_secs(60);
/// How many kinds are summed up at a time; before there are more, all are written.
const KINDS_MAX: usize = 4_096;

/// How often something was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Repeated {
    pub count: u64,
    #[serde(serialize_with = "keyward::moment::serialize")]
    pub first: Timestamp,
    #[serde(serialize_with = "keyward::moment::serialize")]
    pub last: Timestamp,
}

/// What refusals have in common that are summed up.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kind {
    tenant: String,
    credential: String,
    agent: Option<String>,
    method: &'static str,
    route: RouteName,
    status: u16,
}

impl Kind {
    fn of(told: &Told, status: u16) -> Self {
        Self {
            tenant: told.who.tenant().name().to_owned(),
            credential: told.who.credential().to_owned(),
            agent: told.who.caller().agent_id().map(str::to_owned),
            method: told.method,
            route: told.route.clone(),
            status,
        }
    }
}

/// Refusals of one kind since one that was written by itself.
#[derive(Debug)]
struct Sum {
    since: Timestamp,
    /// The last of them, with their number; none came yet.
    last: Option<(Told, Repeated)>,
}

impl Sum {
    fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.since).unsigned_abs() >= SUMMED_TIME
    }
}

/// Refusals that are being summed up.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    sums: HashMap<Kind, Sum>,
    /// Sums that are complete.
    complete: Vec<(Told, Repeated)>,
}

impl Refusals {
    /// Takes an act that is to be summed up; gives back one that is written by itself.
    pub fn take(&mut self, told: Told) -> Option<Told> {
        let Some(status @ 400..=499) = told.status else { return Some(told) };
        let kind = Kind::of(&told, status);
        let time = told.time;
        if let Some(sum) = self.sums.get_mut(&kind)
            && !sum.is_over(time)
        {
            let first = sum.last.as_ref().map_or(time, |(_, repeated)| repeated.first);
            let count = sum.last.as_ref().map_or(0, |(_, repeated)| repeated.count) + 1;
            sum.last = Some((told, Repeated { count, first, last: time }));
            return None;
        }
        if self.sums.len() >= KINDS_MAX {
            self.complete.extend(self.sums.drain().filter_map(|(_, sum)| sum.last));
        }
        let before = self.sums.insert(kind, Sum { since: time, last: None });
        self.complete.extend(before.and_then(|sum| sum.last));
        Some(told)
    }

    /// Whether anything is summed up.
    pub fn any(&self) -> bool {
        !(self.sums.is_empty() && self.complete.is_empty())
    }

    /// The sums that are complete.
    pub fn due(&mut self, now: Timestamp) -> Vec<Told> {
        let over = self.sums.extract_if(|_, sum| sum.is_over(now));
        self.complete.extend(over.filter_map(|(_, sum)| sum.last));
        self.lines(now)
    }

    /// All sums, complete or not.
    pub fn all(&mut self, now: Timestamp) -> Vec<Told> {
        self.complete.extend(self.sums.drain().filter_map(|(_, sum)| sum.last));
        self.lines(now)
    }

    /// They have the time at which they are written: whoever reads along finds them at the end.
    fn lines(&mut self, now: Timestamp) -> Vec<Told> {
        let complete = self.complete.drain(..);
        complete
            .map(|(told, repeated)| Told { time: now, repeated: Some(repeated), ..told })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn told(seconds: u64, status: u16) -> Told {
        Told { status: Some(status), ..Told::of_test(at(seconds)) }
    }

    #[test]
    fn refusals_of_a_minute_are_one_line_after_the_first() {
        let mut refusals = Refusals::default();
        assert!(refusals.take(told(0, 403)).is_some());
        for seconds in 1..=30 {
            assert!(refusals.take(told(seconds, 403)).is_none());
        }
        assert!(refusals.take(told(30, 409)).is_some(), "another status is another kind");
        assert!(refusals.due(at(59)).is_empty());
        let lines = refusals.due(at(60));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].time, at(60));
        let repeated = Repeated { count: 30, first: at(1), last: at(30) };
        assert_eq!(lines[0].repeated, Some(repeated));
        assert!(refusals.any(), "the other kind");
        assert!(refusals.due(at(90)).is_empty() && !refusals.any());
    }

    #[test]
    fn a_minute_later_the_first_is_a_line_again() {
        let mut refusals = Refusals::default();
        assert!(refusals.take(told(0, 403)).is_some());
        assert!(refusals.take(told(1, 403)).is_none());
        assert!(refusals.take(told(61, 403)).is_some());
        let lines = refusals.all(at(62));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].repeated.as_ref().map(|repeated| repeated.count), Some(1));
    }

    #[test]
    fn what_was_done_or_given_up_is_never_summed_up() {
        let mut refusals = Refusals::default();
        for _ in 0..10 {
            assert!(refusals.take(told(0, 200)).is_some());
            assert!(refusals.take(told(0, 503)).is_some());
            assert!(refusals.take(Told::of_test(at(0))).is_some());
        }
        assert!(!refusals.any());
    }
}
