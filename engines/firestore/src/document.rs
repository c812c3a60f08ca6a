//! Entries as documents, and keys as their ids.

use std::borrow::Cow;

use jiff::Timestamp;
use keyward_engine::{Entry, Json, Put, Result};
use keyward_key::{Key, KeyRange};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::collection::ID_BYTES_MAX;
use crate::error::{corrupt, garbled};
use crate::version::{Mark, Stamp};

/// What the ids of entries begin with. No id is then one that Firestore keeps for itself (`__…__`).
const FIRST: &str = "=";
/// The first id above all of them.
const END: &str = ">";

/// The id of the document that holds an entry.
pub(crate) fn id_of(key: &Key) -> String {
    format!("{FIRST}{}", key.to_sortable_text())
}

/// The key whose entry a document of this id holds.
pub(crate) fn key_of(id: &str) -> Option<Key> {
    Key::from_sortable_text(id.strip_prefix(FIRST)?).ok()
}

/// The ids of a range: from the first to before the second. They may take in some beside the range.
pub(crate) fn ids_of(range: &KeyRange) -> (String, String) {
    let (start, end) = range.sortable_bounds();
    let mut start = format!("{FIRST}{start}");
    start.truncate(whole(&start, ID_BYTES_MAX));
    let end = match end {
        None => END.to_owned(),
        Some(end) if end.len() < ID_BYTES_MAX => format!("{FIRST}{end}"),
        // No id is that long: those that begin like it may lie before it.
        Some(end) => after_all(&format!("{FIRST}{}", &end[..whole(&end, ID_BYTES_MAX - 8)])),
    };
    (start, end)
}

/// The most bytes up to a number that are whole characters.
fn whole(text: &str, bytes_max: usize) -> usize {
    let mut bytes = bytes_max.min(text.len());
    while !text.is_char_boundary(bytes) {
        bytes -= 1;
    }
    bytes
}

/// An id above all those that begin with this one.
fn after_all(start: &str) -> String {
    let mut text = start.to_owned();
    while let Some(last) = text.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(last as u32 + 1),
        };
        if let Some(next) = next {
            text.push(next);
            break;
        }
    }
    text
}

/// A document as Firestore gives it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub fields: Option<&'a RawValue>,
    #[serde(borrow)]
    pub update_time: Cow<'a, str>,
}

/// The fields of an entry's document.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fields<'a> {
    #[serde(borrow)]
    key: Option<Text<'a>>,
    #[serde(borrow)]
    value: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    metadata: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Moment>,
    #[serde(borrow)]
    commit: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Text<'a> {
    #[serde(borrow, rename = "stringValue")]
    text: Cow<'a, str>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Moment {
    #[serde(rename = "timestampValue", with = "crate::moment")]
    at: Timestamp,
}

impl<'a> Fields<'a> {
    /// The fields of the document of an entry that is written now.
    pub fn new(id: &'a str, put: &'a Put, mark: &'a str, now: Timestamp) -> Self {
        let text = |text: &'a str| Text { text: Cow::Borrowed(text) };
        // Firestore's calendar begins in the year 1; what has ended then has ended in 1970 too.
        let end = |at: Timestamp| Moment { at: at.max(Timestamp::UNIX_EPOCH) };
        Self {
            key: Some(text(id)),
            value: Some(text(put.value.as_str())),
            metadata: put.metadata.as_ref().map(|metadata| text(metadata.as_str())),
            expires: put.expiry.map(|expiry| end(expiry.moment(now))),
            commit: Some(text(mark)),
        }
    }
}

/// An entry, expired or not, and what wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub entry: Entry,
    pub stamp: Stamp,
    pub mark: Mark,
}

impl Held {
    /// The entry in a document.
    pub fn read(id: &str, document: &Document<'_>) -> Result<Self> {
        let fields = document.fields.map_or("{}", RawValue::get);
        let fields: Fields<'_> =
            serde_json::from_str(fields).map_err(|error| corrupt(id, error))?;
        let missing = |name: &str| corrupt(id, format_args!("it has no field {name:?}"));
        let value = fields.value.ok_or_else(|| missing("value"))?;
        let mark = fields.commit.ok_or_else(|| missing("commit"))?;
        let mark = Mark::parse(&mark.text)
            .ok_or_else(|| corrupt(id, "its field \"commit\" is no mark of a commit"))?;
        let updated = document.update_time.parse().map_err(garbled)?;
        let stamp = Stamp { updated, first_end: mark.first_end };
        let json = |text: Text<'_>| Json::from_stored(text.text.into_owned());
        let entry = Entry {
            value: json(value),
            metadata: fields.metadata.map(json),
            version: stamp.version(),
            expires: fields.expires.map(|expires| expires.at),
        };
        Ok(Self { entry, stamp, mark })
    }
}

/// The end in a document of which only that was read.
pub(crate) fn end_of(id: &str, document: &Document<'_>) -> Result<Option<Timestamp>> {
    let fields = document.fields.map_or("{}", RawValue::get);
    let fields: Fields<'_> = serde_json::from_str(fields).map_err(|error| corrupt(id, error))?;
    Ok(fields.expires.map(|expires| expires.at))
}

#[cfg(test)]
mod tests {
    use keyward_key::Prefix;

    use super::*;

    #[test]
    fn no_id_is_one_that_firestore_refuses() {
        for segments in [&["__x__"][..], &["."], &[".."], &["a/b"], &["", ""], &["__", "__"]] {
            let key = Key::from_segments(segments).unwrap();
            let id = id_of(&key);
            assert_eq!(crate::collection::id_problem(&id), None, "{id}");
            assert_eq!(key_of(&id), Some(key));
        }
        assert_eq!((key_of("keyward"), key_of("=.z"), key_of("")), (None, None, None));
    }

    #[test]
    fn bounds_of_long_ranges_take_in_what_lies_between() {
        for character in ["x", "학", "\u{10ffff}", "\0"] {
            let long = Key::from_segments([character.repeat(3_000)]).unwrap();
            let (start, end) = ids_of(&KeyRange::under(&Prefix::from(&long)));
            assert!(start.len() <= ID_BYTES_MAX && end.len() <= ID_BYTES_MAX && start < end);
            // The longest id that begins like it.
            let near = Key::from_segments([character.repeat(370 / character.len())]).unwrap();
            let (_, end) = ids_of(&KeyRange::all().before(&long));
            assert!(id_of(&near) < end, "{character:?}");
            let (start, _) = ids_of(&KeyRange::all().after(&long));
            assert!(start.len() <= ID_BYTES_MAX && id_of(&near) < start);
        }
        assert_eq!(ids_of(&KeyRange::all()), ("=".to_owned(), ">".to_owned()));
    }
}
