//! How single settings are written: times, rates, counts, names of algorithms.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use keyward_server::{Rate, TokenAlgorithm};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ttl;

/// A length of time, as a person writes it: `90s`, `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let span = ttl::parse(text)?;
        // What is added to the time it is now must stay a time.
        match span <= Duration::from_secs(100 * 366 * 24 * 60 * 60) {
            true => Ok(Self(span)),
            false => Err("that is longer than a hundred years".to_owned()),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
        let whole = units.into_iter().find(|(_, unit)| millis.is_multiple_of(*unit));
        let (unit, size) = whole.unwrap_or(("ms", 1));
        write!(f, "{}{unit}", millis / size)
    }
}

/// How often somebody may ask: `1000/2000` is a thousand times a second and two thousand at once,
/// `none` is without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace(pub Option<Rate>);

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let number = |text: &str| text.parse().ok().filter(|number: &u32| *number > 0);
        let (per_second, burst) = text.split_once('/').unwrap_or((text, text));
        let rate = number(per_second).zip(number(burst));
        let rate = rate.map(|(per_second, burst)| Rate { per_second, burst });
        rate.map(|rate| Self(Some(rate))).ok_or_else(|| {
            "write requests a second, or those and how many at once (1000/2000), or none".to_owned()
        })
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Rate { per_second, burst }) => write!(f, "{per_second}/{burst}"),
            None => f.write_str("none"),
        }
    }
}

/// The name of an algorithm, as tokens have it: `RS256`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlgorithmName(pub TokenAlgorithm);

impl FromStr for AlgorithmName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = TokenAlgorithm::ALL.into_iter().find(|one| one.name() == text);
        found.map(Self).ok_or_else(|| {
            let names = TokenAlgorithm::ALL.map(TokenAlgorithm::name).join(", ");
            format!("tokens are signed by one of {names}, not by {text:?}")
        })
    }
}

impl fmt::Display for AlgorithmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Values that stand in a config file as text.
macro_rules! as_text {
    ($($name:ident),+) => {
        $(impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        })+
    };
}

as_text!(Span, Pace, AlgorithmName);

/// A number of things that are held at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Count(pub usize);

impl Count {
    const MAX: usize = 1 << 30;
}

impl TryFrom<usize> for Count {
    type Error = String;

    fn try_from(count: usize) -> Result<Self, String> {
        match count {
            1..=Self::MAX => Ok(Self(count)),
            _ => Err(format!("{count} is not from 1 to {}", Self::MAX)),
        }
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = text.parse::<usize>();
        count.map_err(|_| format!("{text:?} is not from 1 to {}", Self::MAX))?.try_into()
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        usize::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_paces_are_written_as_they_are_read() {
        for text in ["90d", "36h", "90m", "10s", "250ms"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["1000/2000", "5/5", "none"] {
            assert_eq!(text.parse::<Pace>().unwrap().to_string(), text);
        }
        assert_eq!("5".parse::<Pace>().unwrap().to_string(), "5/5");
        for text in ["", "0", "1/0", "-1", "1/2/3", "many", "4294967296"] {
            assert!(text.parse::<Pace>().is_err(), "{text}");
        }
        assert!("100000000000d".parse::<Span>().is_err());
        assert!("40000d".parse::<Span>().is_err());
    }
}
