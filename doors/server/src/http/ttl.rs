//! How long a record shall live, as a client says it.

use std::fmt;
use std::time::Duration;

use keyward::records::Ttl;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A number of seconds, `never`, or `keep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TtlText(Ttl);

/// What is meant; as the space says, if nothing is said.
pub(crate) fn ttl(text: Option<TtlText>) -> Ttl {
    text.map_or(Ttl::Declared, |TtlText(ttl)| ttl)
}

impl<'de> Deserialize<'de> for TtlText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl Visitor<'_> for Reading {
    type Value = TtlText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a ttl: a number of seconds from 1 on, \"never\" or \"keep\"")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<TtlText, E> {
        match seconds {
            0 => Err(E::invalid_value(Unexpected::Unsigned(0), &self)),
            seconds => Ok(TtlText(Ttl::After(Duration::from_secs(seconds)))),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TtlText, E> {
        match text {
            "never" => Ok(TtlText(Ttl::Never)),
            "keep" => Ok(TtlText(Ttl::Keep)),
            text => match text.parse() {
                Ok(seconds) => self.visit_u64(seconds),
                Err(_) => Err(E::invalid_value(Unexpected::Str(text), &self)),
            },
        }
    }
}
