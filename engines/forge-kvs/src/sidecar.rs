//! What Forge has no place for: the version of an entry, its metadata, its exact end. It is stored beside the value,
//! under a key of its own, in the same transaction. An app that overwrites the value does not know of it, so it
//! names the value that it belongs to.

use jiff::Timestamp;
use keyward_engine::{Entry, Error, ErrorKind, Json, Result, Version};
use serde::{Deserialize, Serialize};

use crate::value;

/// The sidecar of an entry, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sidecar {
    /// The entry's version.
    pub version: String,
    /// The fingerprint of the value.
    pub value: String,
    /// The metadata as a text: it comes back byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    /// The end of the entry, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
}

impl Sidecar {
    pub fn read(name: &str, stored: &str) -> Result<Self> {
        serde_json::from_str(stored).map_err(|error| {
            let message = format!("the sidecar of {name} is not one that Keyward writes");
            Error::new(ErrorKind::Corrupt, message).caused_by(error)
        })
    }

    /// Whether it belongs to this value.
    pub fn is_of(&self, stored: &str) -> bool {
        self.value == value::fingerprint(stored)
    }

    /// The entry of the value that it belongs to.
    pub fn entry(self, name: &str, stored: &str) -> Result<Entry> {
        let expires = self.expires.map(|end| self::end(name, end)).transpose()?;
        Ok(Entry {
            value: value::read(stored),
            metadata: self.metadata.map(Json::from_stored),
            version: Version::parse(&self.version),
            expires,
        })
    }
}

/// An end as it is stored: milliseconds. The last moment of the calendar is no whole one; what is later than it is it.
fn end(name: &str, milliseconds: i64) -> Result<Timestamp> {
    if milliseconds >= Timestamp::MAX.as_millisecond() {
        return Ok(Timestamp::MAX);
    }
    Timestamp::from_millisecond(milliseconds).map_err(|error| {
        let message = format!("the sidecar of {name} has an end that is no time");
        Error::new(ErrorKind::Corrupt, message).caused_by(error)
    })
}
