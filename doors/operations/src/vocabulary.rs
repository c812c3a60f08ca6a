//! The words that all requests share: times to live, preconditions, pages, locks.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use keyward::locks::Ticket;
use keyward::{Expiry, Tier, Version, records};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::entries::Precondition;
use crate::problem::{Problem, Result};

/// The most items on a page.
pub const PAGE_MAX: usize = 1_000;
/// How many items a page has by default.
pub const PAGE_DEFAULT: usize = 100;
/// The most versions that a precondition names.
const VERSIONS_MAX: usize = 64;

/// A time to live in whole seconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(Duration);

impl From<Seconds> for Expiry {
    fn from(Seconds(time): Seconds) -> Self {
        Self::After(time)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            0 => Err(D::Error::custom("must be at least 1 second; leave it out for no expiry")),
            seconds => Ok(Self(Duration::from_secs(seconds))),
        }
    }
}

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1 })
    }
}

/// The time to live of a record: whole seconds, `never`, or `keep` for the one that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl(records::Ttl);

impl From<Ttl> for records::Ttl {
    fn from(Ttl(ttl): Ttl) -> Self {
        ttl
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = Ttl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seconds from 1, \"never\" or \"keep\"")
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Ttl, E> {
                match seconds {
                    0 => Err(E::invalid_value(Unexpected::Unsigned(0), &self)),
                    seconds => Ok(Ttl(records::Ttl::After(Duration::from_secs(seconds)))),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Ttl, E> {
                match text {
                    "never" => Ok(Ttl(records::Ttl::Never)),
                    "keep" => Ok(Ttl(records::Ttl::Keep)),
                    text => match text.parse() {
                        Ok(seconds) => self.visit_u64(seconds),
                        Err(_) => Err(E::invalid_value(Unexpected::Str(text), &self)),
                    },
                }
            }
        }

        deserializer.deserialize_any(Reading)
    }
}

impl JsonSchema for Ttl {
    fn schema_name() -> Cow<'static, str> {
        "Ttl".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "enum": ["never", "keep"] },
        ] })
    }
}

/// What a response about records is worth. With `atomic` and `recoverable`, no record that matches is missing
/// and none is wrong; with `advisory`, both can happen for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    /// Records and their indexes change together.
    Atomic,
    /// Indexes follow by a protocol that recovers from crashes.
    Recoverable,
    /// The last writer wins, and indexes are best effort.
    Advisory,
}

impl From<Tier> for Guarantee {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Atomic => Self::Atomic,
            Tier::Recoverable => Self::Recoverable,
            Tier::Advisory => Self::Advisory,
        }
    }
}

/// How many items a page has at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit(pub usize);

impl Default for PageLimit {
    fn default() -> Self {
        Self(PAGE_DEFAULT)
    }
}

impl<'de> Deserialize<'de> for PageLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            limit @ 1..=1_000 => Ok(Self(limit as usize)),
            limit => Err(D::Error::custom(format_args!("must be 1 to {PAGE_MAX}, not {limit}"))),
        }
    }
}

impl JsonSchema for PageLimit {
    fn schema_name() -> Cow<'static, str> {
        "PageLimit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT })
    }
}

/// The versions that something may have for a change to be made; `*` is any version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfVersion {
    /// There must be something, in whatever version.
    Any,
    /// It must have one of these versions.
    OneOf(Vec<Version>),
}

impl IfVersion {
    fn of(text: &str) -> Self {
        match text {
            "*" => Self::Any,
            version => Self::OneOf(vec![Version::parse(version)]),
        }
    }
}

impl<'de> Deserialize<'de> for IfVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Versions;

        impl<'de> Visitor<'de> for Versions {
            type Value = IfVersion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a version, or * for any")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<IfVersion, E> {
                Ok(IfVersion::of(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<IfVersion, A::Error> {
                let mut versions = Vec::new();
                while let Some(text) = texts.next_element::<Cow<'_, str>>()? {
                    if versions.len() == VERSIONS_MAX {
                        let told = format_args!("must name at most {VERSIONS_MAX} versions");
                        return Err(A::Error::custom(told));
                    }
                    versions.push(Version::parse(&text));
                }
                Ok(IfVersion::OneOf(versions))
            }
        }

        deserializer.deserialize_any(Versions)
    }
}

impl JsonSchema for IfVersion {
    fn schema_name() -> Cow<'static, str> {
        "IfVersion".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "example": "17" })
    }
}

/// The precondition of a change.
pub fn precondition(if_version: Option<IfVersion>, if_absent: bool) -> Result<Precondition> {
    match (if_version, if_absent) {
        (None, false) => Ok(Precondition::None),
        (None, true) => Ok(Precondition::Absent),
        (Some(IfVersion::Any), false) => Ok(Precondition::Present),
        (Some(IfVersion::OneOf(versions)), false) => Ok(Precondition::OneOf(versions)),
        (Some(_), true) => Err(Problem::invalid("if_version and if_absent exclude each other")),
    }
}

/// The ticket of a lock that a change is made under: opaque text.
#[derive(Debug, Clone)]
pub struct LockTicket(pub Ticket);

impl<'de> Deserialize<'de> for LockTicket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        let json = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        let ticket = json.and_then(|json| serde_json::from_slice(&json).ok());
        ticket.map(Self).ok_or_else(|| {
            D::Error::custom(
                "is not a ticket; send the whole ticket that the lock was granted with",
            )
        })
    }
}

impl JsonSchema for LockTicket {
    fn schema_name() -> Cow<'static, str> {
        "LockTicket".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}
