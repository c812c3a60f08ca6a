//! Entries as items of the table.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use keyward_engine::{Entry, Error, ErrorKind, Json, Result, Version};
use keyward_key::Key;

use crate::layout::{self, PARTITION, Place, SORT};
use crate::number;

pub(crate) const VERSION: &str = "v";
pub(crate) const NUMBER: &str = "n";
pub(crate) const JSON: &str = "j";
pub(crate) const METADATA: &str = "m";
pub(crate) const END: &str = "e";
/// The attribute by which DynamoDB deletes expired items.
pub(crate) const TTL: &str = "t";

/// What names an item, and its state.
pub(crate) const PLACE_AND_VERSION: &str = "p, s, v";

/// How long after an entry's end DynamoDB may delete it: longer than the clocks of processes differ.
const TTL_DELAY: Duration = Duration::from_secs(5 * 60);

pub(crate) type Item = HashMap<String, AttributeValue>;

/// What an item says about an entry.
pub(crate) struct Stored<'i>(pub(crate) &'i Item);

impl Stored<'_> {
    pub(crate) fn version(&self) -> Option<&str> {
        self.text(VERSION)
    }

    /// Whether it is an entry that has not expired.
    pub(crate) fn is_present(&self, now_ms: i64) -> bool {
        self.version().is_some() && self.end_ms().is_none_or(|end| end > now_ms)
    }

    pub(crate) fn key(&self) -> Result<Key> {
        let key = match (self.bytes(PARTITION), self.bytes(SORT)) {
            (Some(partition), Some(sort)) => layout::key(partition, sort),
            _ => None,
        };
        key.ok_or_else(|| corrupt("an item of the table has no key of an entry"))
    }

    pub(crate) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name)?.as_b().ok().map(AsRef::as_ref)
    }

    /// Its value, as JSON text.
    pub(crate) fn value(&self) -> Result<Json> {
        if let Some(text) = self.text(JSON) {
            return Ok(Json::from_stored(text.to_owned()));
        }
        let number = self.0.get(NUMBER).and_then(|number| number.as_n().ok());
        let number = number.and_then(|text| number::integer(text));
        number.map(Json::from_integer).ok_or_else(|| corrupt("an entry has no value"))
    }

    pub(crate) fn entry(&self) -> Result<Entry> {
        let version = self.version().ok_or_else(|| corrupt("an entry has no version"))?;
        // The last millisecond of the calendar is not a whole one.
        let end = |ms| Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX);
        let expires = self.end_ms().map(end);
        Ok(Entry {
            value: self.value()?,
            metadata: self.text(METADATA).map(|text| Json::from_stored(text.to_owned())),
            version: Version::parse(version),
            expires,
        })
    }

    fn end_ms(&self) -> Option<i64> {
        number::integer(self.0.get(END)?.as_n().ok()?)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_s().ok().map(String::as_str)
    }
}

/// The item of an entry.
pub(crate) fn item(
    place: &Place,
    version: &str,
    value: &Json,
    metadata: Option<&Json>,
    expires: Option<Timestamp>,
) -> Item {
    let mut item = at(place);
    item.insert(VERSION.to_owned(), string(version));
    // Only a number that comes back in the same digits: `-0` is text.
    match value.as_integer().filter(|number| number.to_string() == value.as_str()) {
        Some(number) => item.insert(NUMBER.to_owned(), integer(number)),
        None => item.insert(JSON.to_owned(), string(value.as_str())),
    };
    if let Some(metadata) = metadata {
        item.insert(METADATA.to_owned(), string(metadata.as_str()));
    }
    if let Some(expires) = expires {
        item.insert(END.to_owned(), integer(expires.as_millisecond()));
        let delay = i64::try_from(TTL_DELAY.as_secs()).unwrap_or_default();
        item.insert(TTL.to_owned(), integer(expires.as_second().saturating_add(delay)));
    }
    item
}

/// The attributes that name a place.
pub(crate) fn at(place: &Place) -> Item {
    HashMap::from([
        (PARTITION.to_owned(), binary(&place.partition)),
        (SORT.to_owned(), binary(&place.sort)),
    ])
}

pub(crate) fn binary(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

pub(crate) fn string(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn integer(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(crate) fn corrupt(message: &str) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}
