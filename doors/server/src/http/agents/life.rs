//! How long an entry shall live, as a client says it.

use std::fmt;
use std::time::Duration;

use keyward::agents::Life;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::problem::{Problem, Result};

/// The longest life: a hundred years.
pub(crate) const SECONDS_MAX: u64 = 100 * 366 * 24 * 60 * 60;

/// A number of seconds, or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifeText {
    Seconds(u64),
    Never,
}

/// What is meant; what the namespace says, if nothing is said.
pub(crate) fn life(ttl: Option<LifeText>, sliding: bool) -> Result<Option<Life>> {
    match (ttl, sliding) {
        (None, false) => Ok(None),
        (Some(LifeText::Never), false) => Ok(Some(Life::Never)),
        (Some(LifeText::Seconds(seconds)), false) => {
            Ok(Some(Life::After(Duration::from_secs(seconds))))
        }
        (Some(LifeText::Seconds(seconds)), true) => {
            Ok(Some(Life::Sliding(Duration::from_secs(seconds))))
        }
        (None | Some(LifeText::Never), true) => {
            Err(Problem::invalid("only an entry that ends can live on by being read")
                .hint("Say in ttl for how many seconds it shall live, or leave out sliding."))
        }
    }
}

/// How the description tells of a [`LifeText`] that may be left out.
pub(super) fn life_schema() -> Schema {
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1_u64))
        .maximum(Some(SECONDS_MAX));
    let never = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["never"]));
    let nothing = ObjectBuilder::new().schema_type(Type::Null);
    Schema::OneOf(
        OneOfBuilder::new()
            .item(seconds)
            .item(never)
            .item(nothing)
            .description(Some("For how many seconds it shall live, or `never` for no end."))
            .build(),
    )
}

impl<'de> Deserialize<'de> for LifeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl Visitor<'_> for Reading {
    type Value = LifeText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a ttl: a number of seconds from 1 to {SECONDS_MAX}, or \"never\"")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<LifeText, E> {
        match seconds {
            1..=SECONDS_MAX => Ok(LifeText::Seconds(seconds)),
            _ => Err(E::invalid_value(Unexpected::Unsigned(seconds), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<LifeText, E> {
        match text {
            "never" => Ok(LifeText::Never),
            text => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}
