//! Lengths of time, as people write them: `90d`, `10m`, `1h 30m`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use serde::{Deserialize, Deserializer, Serializer, de};

/// Longer than any setting needs, and short enough that no sum of moments overflows.
const DAYS_MAX: u64 = 36_500;

pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let hint = "write a number with a unit, such as \"90d\", \"12h\" or \"60s\"";
    let span: Span = text.parse().map_err(|_| format!("{text:?} is no length of time: {hint}"))?;
    if span.get_months() != 0 || span.get_years() != 0 {
        return Err(format!("{text:?} has no fixed length: write days, as in \"90d\""));
    }
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours());
    let length = length.ok().and_then(|length| Duration::try_from(length).ok());
    match length {
        Some(length) if length > Duration::from_secs(DAYS_MAX * 86_400) => {
            Err(format!("{text:?} is longer than {DAYS_MAX} days"))
        }
        Some(length) => Ok(length),
        None => Err(format!("{text:?} is no length of time: {hint}")),
    }
}

pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let millis = time.as_millis();
    let (count, unit) = match millis {
        _ if millis.is_multiple_of(86_400_000) && millis > 0 => (millis / 86_400_000, "d"),
        _ if millis.is_multiple_of(1_000) => (millis / 1_000, "s"),
        _ => (millis, "ms"),
    };
    serializer.collect_str(&format_args!("{count}{unit}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_unit_and_days_have_24_hours() {
        for (text, seconds) in [("90d", 90 * 86_400), ("1h 30m", 5_400), ("60s", 60), ("0s", 0)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["90", "", "-3d", "1 month", "100000d", "soon"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
