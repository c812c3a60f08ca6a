use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The type of a pattern's variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentType {
    /// Any text that is not empty: `{name}`.
    Text,
    /// A whole number, written with twenty digits so that text order is number order: `{n:u64}`.
    U64,
    /// A moment, written `20261115T215951.000000000Z` (UTC, nanoseconds) so that text order is
    /// time order: `{at:time}`.
    Time,
}

/// The value of a pattern's variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SegmentValue {
    /// For [`SegmentType::Text`].
    Text(String),
    /// For [`SegmentType::U64`].
    U64(u64),
    /// For [`SegmentType::Time`].
    Time(Timestamp),
}

const U64_DIGITS: usize = 20;
const TIME_LENGTH: usize = "20261115T215951.000000000Z".len();

impl SegmentType {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "u64" => Some(Self::U64),
            "time" => Some(Self::Time),
            _ => None,
        }
    }

    /// The segment for a value, or why the value does not fit: what a pattern puts in the place of
    /// its variable.
    pub fn write(self, value: &SegmentValue) -> Result<String, String> {
        match (self, value) {
            (Self::Text, SegmentValue::Text(text)) if text.is_empty() => {
                Err("cannot be empty".to_owned())
            }
            (Self::Text, SegmentValue::Text(text)) => Ok(text.clone()),
            (Self::U64, SegmentValue::U64(n)) => Ok(format!("{n:0U64_DIGITS$}")),
            (Self::Time, SegmentValue::Time(at)) => {
                Self::write_time(at.to_zoned(TimeZone::UTC).datetime())
            }
            (_, value) => Err(format!("takes {self}, not {value}")),
        }
    }

    /// The segment of a [`SegmentType::Time`] for a date and a time of day in UTC, or why it does not fit. It takes
    /// all of the year 9999, which ends a day after the last [`Timestamp`].
    pub fn write_time(utc: DateTime) -> Result<String, String> {
        if !(0..=9999).contains(&utc.year()) {
            return Err(format!("must lie in the years 0000 to 9999, not {utc}Z"));
        }
        Ok(format!(
            "{:04}{:02}{:02}T{:02}{:02}{:02}.{:09}Z",
            utc.year(),
            utc.month(),
            utc.day(),
            utc.hour(),
            utc.minute(),
            utc.second(),
            utc.subsec_nanosecond()
        ))
    }

    /// The value a segment stands for, if it is exactly what [`SegmentType::write`] makes.
    pub(super) fn parse(self, segment: &str) -> Option<SegmentValue> {
        match self {
            Self::Text => (!segment.is_empty()).then(|| SegmentValue::Text(segment.to_owned())),
            Self::U64 => {
                let fixed = segment.len() == U64_DIGITS;
                let digits = segment.bytes().all(|b| b.is_ascii_digit());
                (fixed && digits).then(|| segment.parse().ok().map(SegmentValue::U64))?
            }
            Self::Time => parse_time(segment).map(SegmentValue::Time),
        }
    }

    /// Whether some segment could be a value of both types.
    pub(super) fn overlaps(self, other: Self) -> bool {
        self == other || self == Self::Text || other == Self::Text
    }

    /// A segment of this type, for examples in messages.
    pub(super) fn example(self, name: &str) -> String {
        match self {
            Self::Text => name.to_owned(),
            Self::U64 => format!("{:0U64_DIGITS$}", 7),
            Self::Time => "20260101T000000.000000000Z".to_owned(),
        }
    }
}

fn parse_time(segment: &str) -> Option<Timestamp> {
    let bytes = segment.as_bytes();
    if bytes.len() != TIME_LENGTH || bytes[8] != b'T' || bytes[15] != b'.' || bytes[25] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i32> {
        let digits = &bytes[from..to];
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| digits.iter().fold(0, |number, digit| number * 10 + i32::from(digit - b'0')))
    };
    let small = |from: usize| number(from, from + 2).and_then(|n| i8::try_from(n).ok());
    let year = i16::try_from(number(0, 4)?).ok()?;
    let utc = DateTime::new(
        year,
        small(4)?,
        small(6)?,
        small(9)?,
        small(11)?,
        small(13)?,
        number(16, 25)?,
    );
    utc.ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

impl fmt::Display for SegmentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::U64 => "a whole number (u64)",
            Self::Time => "a time",
        })
    }
}

impl fmt::Display for SegmentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::U64(n) => write!(f, "{n}"),
            Self::Time(at) => write!(f, "{at}"),
        }
    }
}

impl From<&str> for SegmentValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SegmentValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for SegmentValue {
    fn from(n: u64) -> Self {
        Self::U64(n)
    }
}

impl From<Timestamp> for SegmentValue {
    fn from(at: Timestamp) -> Self {
        Self::Time(at)
    }
}
