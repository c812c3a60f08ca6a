//! Times of writes that tell states of an entry apart.
//!
//! In a database of another program, an entry's version is a fingerprint of its contents and times, and times are whole
//! seconds there. Two equal states of one second would have one version, also if the entry was deleted in between. So a
//! write of an entry that was written or deleted in the same second has a time with a fraction.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use keyward_key::Key;

/// How many entries are remembered: more than a database takes in a second.
const ENTRIES_MAX: usize = 65_536;
/// For how long an entry is remembered: the fraction matters within a second, and clocks differ.
const AGE_MAX: SignedDuration = SignedDuration::from_secs(10);
/// How far ahead a time can be that the next one follows. Beyond, it says nothing about now.
const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(60);

/// When this process last wrote or deleted entries.
#[derive(Debug, Default)]
pub(crate) struct WriteTimes(Mutex<HashMap<Key, Timestamp>>);

impl WriteTimes {
    pub fn last(&self, entry: &Key) -> Option<Timestamp> {
        self.held().get(entry).copied()
    }

    /// Notes a write or a delete.
    pub fn note(&self, entry: &Key, at: Timestamp, now: Timestamp) {
        let mut held = self.held();
        if held.len() >= ENTRIES_MAX {
            held.retain(|_, at| now.duration_since(*at) < AGE_MAX);
        }
        if held.len() >= ENTRIES_MAX {
            held.clear();
        }
        let last = held.entry(entry.clone()).or_insert(at);
        *last = at.max(*last);
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Key, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a moment as other programs write it: `2026-02-05T10:00:00Z`.
pub(crate) fn whole_seconds_text(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// The time of a write whose text differs from that of every write up to the last one: whole seconds if the last one was
/// in an earlier second, else with six digits of a fraction.
pub(crate) fn time_after(last: Option<Timestamp>, now: Timestamp) -> (Timestamp, String) {
    let second = floor(now, Unit::Second);
    let follows = |last: &Timestamp| *last >= second && last.duration_since(now) <= AHEAD_MAX;
    let Some(last) = last.filter(follows) else { return (second, whole_seconds_text(second)) };
    let next = last.saturating_add(Duration::from_micros(1)).unwrap_or(Timestamp::MAX);
    let at = floor(now, Unit::Microsecond).max(floor(next, Unit::Microsecond));
    (at, format!("{at:.6}"))
}

fn floor(at: Timestamp, unit: Unit) -> Timestamp {
    let mode = jiff::RoundMode::Floor;
    at.round(jiff::TimestampRound::new().smallest(unit).mode(mode)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_in_the_second_of_the_last_one_has_a_fraction() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-02-05T10:00:00.25Z");
        for (last, text) in [
            (None, "2026-02-05T10:00:00Z"),
            (Some("2026-02-05T09:59:59.999999Z"), "2026-02-05T10:00:00Z"),
            (Some("2026-02-05T10:00:00Z"), "2026-02-05T10:00:00.250000Z"),
            (Some("2026-02-05T10:00:00.25Z"), "2026-02-05T10:00:00.250001Z"),
            (Some("2026-02-05T10:00:00.2500019Z"), "2026-02-05T10:00:00.250002Z"),
            // A clock that is a little ahead, and one that is wrong.
            (Some("2026-02-05T10:00:07Z"), "2026-02-05T10:00:07.000001Z"),
            (Some("2027-02-05T10:00:00Z"), "2026-02-05T10:00:00Z"),
        ] {
            let (time, written) = time_after(last.map(at), now);
            assert_eq!(written, text, "{last:?}");
            assert_eq!(at(&written), time, "{last:?}");
        }
    }

    #[test]
    fn the_later_of_two_times_is_remembered() {
        let times = WriteTimes::default();
        let (entry, start) = (Key::parse("a:b").unwrap(), Timestamp::UNIX_EPOCH);
        assert_eq!(times.last(&entry), None);
        let later = start + SignedDuration::from_secs(1);
        times.note(&entry, later, later);
        times.note(&entry, start, later);
        assert_eq!(times.last(&entry), Some(later));
    }
}
