//! Times in values: one rule for filters and for indexes of times.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::Pieces;

/// The moment that a text names, in UTC, if it is a time in the years 0000 to 9999 (in UTC): an RFC 3339 time; a date and
/// a time of day without an offset, which are in UTC (`2026-01-05T08:00`); or a date alone, which is its midnight in
/// UTC (`2026-01-05`).
///
/// Filters compare such texts as moments, and indexes of times have entries for them and for nothing else, in the
/// same order. A moment is a date and a time of day and no timestamp, because the last timestamp is a day before the
/// end of the year 9999, and `9999-12-31` is how many say "never".
///
/// ```
/// use keyward_records::moment;
///
/// assert_eq!(moment("2026-01-05"), moment("2026-01-05T01:00:00+01:00"));
/// assert_eq!(moment("20260105"), None);
/// ```
pub fn moment(text: &str) -> Option<DateTime> {
    // Most texts are no times, and need not be parsed to know.
    if !text.starts_with(|first: char| first.is_ascii_digit() || first == '+') || text.len() < DATE
    {
        return None;
    }
    let utc = with_offset(text).or_else(|| civil(text))?;
    (0..=9999).contains(&utc.year()).then_some(utc)
}

/// The length of a date such as 2026-01-05.
const DATE: usize = 10;

/// A time with an offset, in UTC.
fn with_offset(text: &str) -> Option<DateTime> {
    let pieces = Pieces::parse(text).ok()?;
    let offset = pieces.offset()?.to_numeric_offset();
    let local = pieces.date().to_datetime(pieces.time()?);
    local.checked_sub(SignedDuration::from_secs(offset.seconds().into())).ok()
}

/// A time without an offset, which is in UTC.
fn civil(text: &str) -> Option<DateTime> {
    let [_, _, _, _, b'-', _, _, b'-', _, _, time @ ..] = text.as_bytes() else { return None };
    match time {
        [] => Some(text.parse::<Date>().ok()?.to_datetime(Time::midnight())),
        // The parser would pass over an offset or the name of a zone that the text has.
        [b'T' | b't' | b' ', clock @ ..]
            if clock.iter().all(|byte| byte.is_ascii_digit() || b":.,".contains(byte)) =>
        {
            text.parse().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_moment_however_it_is_written() {
        let at = moment("2026-01-05T08:00:00Z").unwrap();
        for same in [
            "2026-01-05T08:00:00.000Z",
            "2026-01-05t08:00:00z",
            "2026-01-05 08:00:00+00:00",
            "2026-01-05T13:30:00+05:30",
            "2026-01-05T08:00:00",
            "2026-01-05T08:00",
            "2026-01-05 08:00:00.0",
        ] {
            assert_eq!(moment(same), Some(at), "{same}");
        }
        assert_eq!(moment("2026-01-05"), moment("2026-01-04T22:00:00-02:00"));
    }

    #[test]
    fn the_years_0000_and_9999_have_moments_from_their_first_to_their_last() {
        let ordered = [
            "0000-01-01",
            "0000-01-01T00:00:00.000000001Z",
            "9999-12-30T22:00:00.999999999Z",
            "9999-12-31",
            "9999-12-31T23:59:59+01:00",
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999999999Z",
        ];
        let moments = ordered.map(|text| moment(text).unwrap_or_else(|| panic!("{text}")));
        assert!(moments.is_sorted_by(|one, next| one < next), "{moments:?}");
        assert_eq!(moment("9999-12-31"), moment("9999-12-31T01:00:00+01:00"));
    }

    #[test]
    fn a_text_that_is_no_time_has_none() {
        for none in [
            "",
            "2026",
            "2026-01",
            "20260105",
            "2026-02-30",
            "2026-01-05x",
            "2026-01-05T",
            "2026-01-05T25:00",
            "2026-01-05T08:00[Europe/Berlin]",
            "2026-01-05T08:00+99:00",
            "2026-01-05 at noon",
            "0000-01-01T00:00:00+05:00",
            "9999-12-31T23:59:59-01:00",
            "1234567890",
            "+49 30 1234567",
        ] {
            assert_eq!(moment(none), None, "{none}");
        }
    }
}
