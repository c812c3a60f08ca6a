//! Durations and sizes, as people write them.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

use crate::bounds::TTL_DAYS_MAX;

/// Why a text is no quantity, and what to write instead.
pub(super) struct Refused {
    pub message: String,
    pub hint: &'static str,
}

const DURATION_HINT: &str = "write a number with a unit, such as \"30d\", \"12h\", \"90s\" or \"1h 30m\"; a day has 24 hours";
const SIZE_HINT: &str = "write a number of bytes, or text such as \"64 KiB\" or \"1 MiB\"";

/// A time to live, such as `30d`.
pub(super) fn ttl(text: &str) -> Result<Duration, Refused> {
    let refused = |message: String| Refused { message, hint: DURATION_HINT };
    let span: Span =
        text.parse().map_err(|_| refused(format!("{text:?} is not a length of time")))?;
    if span.get_months() != 0 || span.get_years() != 0 {
        let message = format!("{text:?} has no fixed length: months and years differ");
        return Err(Refused { message, hint: "write days, as in \"30d\" or \"365d\"" });
    }
    let length = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| refused(format!("{text:?} is too long")))?;
    let ttl = Duration::try_from(length)
        .map_err(|_| refused(format!("{text:?} is negative, so records would never live")))?;
    if ttl.is_zero() {
        return Err(Refused {
            message: "a ttl of zero would end records before they are read".to_owned(),
            hint: "leave ttl out if records shall live until they are deleted",
        });
    }
    if ttl > Duration::from_secs(TTL_DAYS_MAX * 24 * 60 * 60) {
        return Err(Refused {
            message: format!("{text:?} is longer than {TTL_DAYS_MAX} days"),
            hint: "leave ttl out if records shall live until they are deleted",
        });
    }
    Ok(ttl)
}

/// A size in bytes, such as `64 KiB`.
pub(super) fn bytes(text: &str) -> Result<usize, Refused> {
    const UNITS: [(&str, usize); 7] = [
        ("B", 1),
        ("kB", 1000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
    ];
    let refused = || Refused { message: format!("{text:?} is not a size"), hint: SIZE_HINT };
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: usize = number.parse().map_err(|_| refused())?;
    let unit = unit.trim_start();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refused)?.1;
    positive(number.checked_mul(factor).ok_or_else(refused)?)
}

/// A size that was written as a number.
pub(super) fn byte_count(number: i64) -> Result<usize, Refused> {
    let refused = || Refused { message: format!("{number} is not a size"), hint: SIZE_HINT };
    positive(usize::try_from(number).map_err(|_| refused())?)
}

fn positive(bytes: usize) -> Result<usize, Refused> {
    if bytes == 0 {
        let message = "no value has zero bytes, so nothing could be written".to_owned();
        return Err(Refused { message, hint: SIZE_HINT });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_a_unit_and_days_have_24_hours() {
        for (text, seconds) in
            [("30d", 30 * 86_400), ("1h 30m", 5_400), ("2 weeks", 14 * 86_400), ("PT90S", 90)]
        {
            assert_eq!(ttl(text).ok(), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["30", "", "0s", "-3d", "1 month", "1y", "100000d", "soon"] {
            assert!(ttl(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_a_unit_with_a_right_case() {
        for (text, size) in
            [("64 KiB", 65_536), ("1MiB", 1 << 20), ("10 kB", 10_000), ("512 B", 512)]
        {
            assert_eq!(bytes(text).ok(), Some(size), "{text}");
        }
        for text in ["64", "KiB", "64 kib", "-1 KiB", "1.5 MiB", "0 B", "99999999999999999999 B"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(byte_count(0).is_err() && byte_count(-1).is_err());
        assert_eq!(byte_count(65_536).ok(), Some(65_536));
    }
}
