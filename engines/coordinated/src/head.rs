//! The head: the coordinator's row under a key itself. It says that the key exists, and where its value is. Its
//! version, metadata and expiry are those that callers see, so it is written only when the key changes.

use bytes::Bytes;
use jiff::Timestamp;
use keyward_engine::{Error, ErrorKind, Json, Result, moment_text};
use keyward_key::Key;

use crate::meaning::canonical;

/// Where the value of a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Head {
    /// In the pending row, or else in the value store: a value with this hash.
    Stored(Hash),
    /// In the head itself. Entries that expire are kept like this, since two clocks never end one entry at the same
    /// moment: only the coordinator's decides.
    Inline(Json),
    /// In the head itself, and nowhere else: bookkeeping that has a key of the caller's. It never reaches the value
    /// store.
    Kept(Json),
    /// In the value store, where another program put it. Nobody has read it through this engine yet. A listing showed
    /// it at this moment; heads of older versions do not say.
    Adopted(Option<Timestamp>),
}

/// The hash of a value, as hexadecimal digits: the same for all texts of one meaning.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Hash(String);

impl Hash {
    /// The hash of a value.
    pub fn of(value: &Json) -> Self {
        Self::of_bytes(&canonical(value.as_bytes()))
    }

    /// Whether this is the hash of a value. Older versions took the hash of the text.
    pub fn is_of(&self, value: &Json) -> bool {
        *self == Self::of_bytes(value.as_bytes()) || *self == Self::of(value)
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }
}

const STORED: &[u8] = br#"{"hash":""#;
const STORED_END: &[u8] = br#""}"#;
const INLINE: &[u8] = br#"{"value":"#;
const INLINE_END: &[u8] = b"}";
const KEPT: &[u8] = br#"{"kept":"#;
const KEPT_END: &[u8] = b"}";
const ADOPTED: &[u8] = br#"{"adopted":""#;
const ADOPTED_END: &[u8] = br#""}"#;
/// An adopted head of an older version, without the moment.
const ADOPTED_ONCE: &str = r#"{"adopted":true}"#;

impl Head {
    /// How many bytes longer a head is than the value in it, at most.
    pub const WRAPPING_BYTES: usize = INLINE.len() + INLINE_END.len();

    /// The head as it is stored.
    pub fn to_json(&self) -> Json {
        Json::from_stored(match self {
            Self::Stored(Hash(hex)) => [STORED, hex.as_bytes(), STORED_END].concat(),
            Self::Inline(value) => [INLINE, value.as_bytes(), INLINE_END].concat(),
            Self::Kept(value) => [KEPT, value.as_bytes(), KEPT_END].concat(),
            Self::Adopted(Some(at)) => [ADOPTED, moment_text(*at).as_bytes(), ADOPTED_END].concat(),
            Self::Adopted(None) => ADOPTED_ONCE.into(),
        })
    }

    /// Reads a stored head. The value in it is not parsed.
    pub fn read(key: &Key, stored: &Json) -> Result<Self> {
        let bytes = stored.to_bytes();
        if let Some(value) = between(&bytes, INLINE, INLINE_END) {
            return Ok(Self::Inline(Json::from_stored(value)));
        }
        if let Some(hex) = between(&bytes, STORED, STORED_END) {
            return Ok(Self::Stored(Hash(String::from_utf8_lossy(&hex).into_owned())));
        }
        if let Some(value) = between(&bytes, KEPT, KEPT_END) {
            return Ok(Self::Kept(Json::from_stored(value)));
        }
        if stored.as_str() == ADOPTED_ONCE {
            return Ok(Self::Adopted(None));
        }
        if let Some(text) = between(&bytes, ADOPTED, ADOPTED_END)
            && let Ok(at) = String::from_utf8_lossy(&text).parse()
        {
            return Ok(Self::Adopted(Some(at)));
        }
        let message = format!("the coordinator's row of {key} is not one that Keyward writes");
        Err(Error::new(ErrorKind::Corrupt, message).advise(
            "Check that the coordinator is used by no other store, and that its keep option has not changed.",
        ))
    }
}

fn between(bytes: &Bytes, start: &[u8], end: &[u8]) -> Option<Bytes> {
    let fits = bytes.len() >= start.len() + end.len();
    (fits && bytes.starts_with(start) && bytes.ends_with(end))
        .then(|| bytes.slice(start.len()..bytes.len() - end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_as_they_were_written() {
        let value = Json::parse(r#"{"n":1.00,"hash":"x"}"#).unwrap();
        let key = Key::parse("a").unwrap();
        let at = "2026-11-18T10:12:03.5Z".parse().unwrap();
        for head in [
            Head::Stored(Hash::of(&value)),
            Head::Inline(value.clone()),
            Head::Kept(value),
            Head::Adopted(Some(at)),
            Head::Adopted(None),
        ] {
            let stored = head.to_json();
            assert_eq!(Json::parse(stored.to_bytes()).unwrap(), stored, "it is JSON");
            assert_eq!(Head::read(&key, &stored).unwrap(), head);
        }
    }

    #[test]
    fn a_hash_is_of_all_texts_of_a_value_and_one_of_an_older_version_of_its_text() {
        let json = |text: &str| Json::parse(text.to_owned()).unwrap();
        let (value, other) = (json(r#"{"b":1,"a":2}"#), json(r#"{"a":2,"b":1}"#));
        assert!(Hash::of(&value).is_of(&other) && Hash::of(&other).is_of(&value));
        assert!(!Hash::of(&value).is_of(&json(r#"{"a":1,"b":2}"#)));
        let older = Hash(blake3::hash(value.as_bytes()).to_hex().to_string());
        assert!(older.is_of(&value) && !older.is_of(&other));
    }

    #[test]
    fn a_row_of_somebody_else_is_refused() {
        for text in ["1", "null", r#"{"hash":7}"#, r#"{"name":"Ada"}"#, r#"{"adopted":"soon"}"#] {
            let stored = Json::parse(text).unwrap();
            let error = Head::read(&Key::parse("user:7").unwrap(), &stored).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("user:7"), "{error}");
        }
    }
}
