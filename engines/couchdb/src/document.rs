//! The document of an entry.

use jiff::Timestamp;
use keyward_engine::{Entry, Error, ErrorKind, Json, Put, Result};
use keyward_key::{Key, KeyRange};
use serde::{Deserialize, Serialize};

use crate::rev::{Held, Rev};

/// What the ids of entries begin with.
const PREFIX: &str = "keyward!";
/// What comes after all of them.
const PREFIX_END: &str = "keyward\"";
/// The number of this form of documents.
const FORM: u32 = 1;
const MARK_BYTES: usize = 16;

/// The id of a key's document.
pub(crate) fn id_of(key: &Key) -> String {
    format!("{PREFIX}{}", key.to_sortable_text())
}

/// The key of a document's id; `None` if no key has it.
pub(crate) fn key_of(id: &str) -> Option<Key> {
    Key::from_sortable_text(id.strip_prefix(PREFIX)?).ok()
}

/// The ids of the keys in a range: from the first, and below the second. Some keys beside the range may be among them.
pub(crate) fn id_bounds(range: &KeyRange) -> (String, String) {
    let (start, end) = range.sortable_bounds();
    let end = end.map_or_else(|| PREFIX_END.to_owned(), |end| format!("{PREFIX}{end}"));
    (format!("{PREFIX}{start}"), end)
}

/// Random text that no other write has.
pub(crate) fn new_mark() -> Result<String> {
    let mut bytes = [0; MARK_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::Unavailable, "the system gave no random bytes")
            .caused_by(error.to_string())
    })?;
    Ok(data_encoding::BASE64URL_NOPAD.encode(&bytes))
}

/// A document as it is sent.
#[derive(Debug, Serialize)]
pub(crate) struct Body<'a> {
    #[serde(rename = "_rev", skip_serializing_if = "Option::is_none")]
    rev: Option<&'a str>,
    #[serde(rename = "_deleted", skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyward: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
    mark: &'a str,
}

/// What a document is replaced by.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Entry {
        put: Put,
        expires: Option<Timestamp>,
    },
    /// What CouchDB keeps of a deleted document.
    Tombstone,
}

impl Content {
    pub fn put(put: Put, now: Timestamp) -> Self {
        let moment = put.expiry.map(|expiry| expiry.moment(now));
        // In whole milliseconds, as it is stored. Only the end of the calendar has parts of one.
        let expires = moment.map(|at| {
            let whole = Timestamp::from_millisecond(at.as_millisecond());
            whole.or_else(|_| Timestamp::from_second(at.as_second())).unwrap_or(at)
        });
        Self::Entry { put, expires }
    }

    pub fn body<'a>(&'a self, base: Option<&'a Rev>, mark: &'a str) -> Body<'a> {
        let rev = base.map(Rev::as_str);
        match self {
            Self::Entry { put, expires } => Body {
                rev,
                deleted: false,
                keyward: Some(FORM),
                value: Some(put.value.as_str()),
                metadata: put.metadata.as_ref().map(Json::as_str),
                expires: expires.map(Timestamp::as_millisecond),
                mark,
            },
            Self::Tombstone => Body {
                rev,
                deleted: true,
                keyward: None,
                value: None,
                metadata: None,
                expires: None,
                mark,
            },
        }
    }

    /// The version of the entry, once it is there.
    pub fn held(&self, rev: Rev) -> Held {
        let expires = match self {
            Self::Entry { expires, .. } => *expires,
            Self::Tombstone => None,
        };
        Held { rev, expires }
    }
}

/// A document as it is read.
#[derive(Debug, Deserialize)]
struct Stored {
    #[serde(rename = "_rev")]
    rev: String,
    keyward: u32,
    value: String,
    metadata: Option<String>,
    expires: Option<i64>,
}

/// Reads the document of an entry.
pub(crate) fn entry(id: &str, document: &str) -> Result<(Held, Entry)> {
    let corrupt = |reason: String| {
        let message = format!("the CouchDB document {id:?} is not an entry of Keyward: {reason}");
        Error::new(ErrorKind::Corrupt, message).advise(
            "Another program wrote it, or a newer Keyward: ids that begin with \"keyward!\" belong to the store. Move the document away, or restore it from a backup.",
        )
    };
    let stored: Stored =
        serde_json::from_str(document).map_err(|error| corrupt(error.to_string()))?;
    if stored.keyward != FORM {
        return Err(corrupt(format!("its form is {}, not {FORM}", stored.keyward)));
    }
    let rev = Rev::parse(&stored.rev);
    let rev =
        rev.ok_or_else(|| corrupt(format!("the _rev {:?} is of no known form", stored.rev)))?;
    let expires = stored.expires.map(Timestamp::from_millisecond).transpose();
    let expires = expires.map_err(|error| corrupt(error.to_string()))?;
    let held = Held { rev, expires };
    let entry = Entry {
        value: Json::from_stored(stored.value),
        metadata: stored.metadata.map(Json::from_stored),
        version: held.version(),
        expires,
    };
    Ok((held, entry))
}

#[cfg(test)]
mod tests {
    use keyward_key::Prefix;

    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn ids_begin_with_the_prefix_and_give_the_key_back() {
        for (text, id) in [
            ("user:7", "keyward!user!7"),
            ("_design:x", "keyward!_design!x"),
            ("a/b", "keyward!a.bb"),
        ] {
            assert_eq!(id_of(&key(text)), id);
            assert_eq!(key_of(id), Some(key(text)));
        }
        for foreign in ["keyward", "keyward!", "_design/data_store", "keyward!a b", "user:n:a2V5"] {
            assert_eq!(key_of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn bounds_stay_among_the_entries() {
        assert_eq!(id_bounds(&KeyRange::all()), ("keyward!".to_owned(), "keyward\"".to_owned()));
        let (start, end) = id_bounds(&KeyRange::under(&Prefix::parse("user:7").unwrap()));
        let child = id_of(&key("user:7:a"));
        assert!(start <= child && child < end && end < id_of(&key("user:8")));
    }

    #[test]
    fn only_whole_documents_are_entries() {
        let rev = "1-0123456789abcdef0123456789abcdef";
        let document = |fields: &str| format!(r#"{{"_id":"keyward!a","_rev":"{rev}"{fields}}}"#);
        let whole = r#","keyward":1,"value":"1.00","expires":5,"mark":"m""#;
        let (held, read) = entry("keyward!a", &document(whole)).unwrap();
        assert_eq!((read.value.as_str(), read.version), ("1.00", held.version()));
        assert_eq!(read.expires, Some(Timestamp::from_millisecond(5).unwrap()));
        for fields in [
            "",
            r#","value":"1""#,
            r#","keyward":1"#,
            r#","keyward":1,"value":1"#,
            r#","keyward":2,"value":"1""#,
            r#","keyward":1,"value":"1","expires":"never""#,
            r#","keyward":1,"value":"1","expires":9223372036854775807"#,
        ] {
            let error = entry("keyward!a", &document(fields)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.message().contains("keyward!a"), "{error}");
        }
    }

    #[test]
    fn marks_differ() {
        assert_ne!(new_mark().unwrap(), new_mark().unwrap());
        assert_eq!(new_mark().unwrap().len(), 22);
    }
}
