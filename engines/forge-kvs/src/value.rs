//! Values as Forge stores them. A text that is what JavaScript would write is stored as it is, and an app reads it.
//! Any other (`1.0`, forty digits, `null`) is stored as `{"#keyward:json":"…"}` with the text in it, so that nothing
//! is rounded; an app can see that, and parse the text itself.

use keyward_engine::{Error, ErrorKind, Json, Result};

use crate::javascript::{Names, quoted, string, written};

/// A value in Forge, in bytes of its JSON.
pub(crate) const VALUE_BYTES_MAX: usize = 240 << 10;
/// How deep a value may nest in Forge.
const DEPTH_MAX: usize = 31;

/// How much of a row is there for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub bytes: usize,
    pub depth: usize,
}

impl Room {
    /// All of a row.
    pub const WHOLE: Self = Self { bytes: VALUE_BYTES_MAX, depth: DEPTH_MAX };
    /// An attribute of an entity, beside the others.
    pub const ATTRIBUTE: Self = Self { bytes: 220 << 10, depth: DEPTH_MAX - 1 };
}

const WRAPPED: &str = r##"{"#keyward:json":"##;
const WRAPPED_END: &str = "}";

/// The JSON to store for a value.
pub(crate) fn stored(value: &Json, room: Room) -> Result<String> {
    let text = value.as_str();
    let written = written(text, Names::Insertion);
    let is_plain = written.is_exact
        && written.text == text
        && written.depth <= room.depth
        // Forge takes every JSON value but this one.
        && text != "null"
        && unwrapped(text).is_none();
    if is_plain {
        return Ok(written.text);
    }
    let wrapped = format!("{WRAPPED}{}{WRAPPED_END}", quoted(text));
    if wrapped.len() > room.bytes {
        let message = format!(
            "the value is not what JavaScript would write, and as a text it has {} bytes; \
             Forge has room for {}",
            wrapped.len(),
            room.bytes
        );
        return Err(Error::new(ErrorKind::LimitExceeded, message)
            .advise("Write numbers and texts as JSON.stringify does, or make the value smaller."));
    }
    Ok(wrapped)
}

/// The value that a stored JSON stands for.
pub(crate) fn read(stored: &str) -> Json {
    let text = written(stored, Names::Insertion).text;
    match unwrapped(&text) {
        Some(wrapped) => wrapped,
        None => Json::from_stored(text),
    }
}

/// The value in a wrapping, if the text is one.
fn unwrapped(text: &str) -> Option<Json> {
    let quoted = text.strip_prefix(WRAPPED)?.strip_suffix(WRAPPED_END)?;
    Json::parse(string(quoted)?).ok()
}

/// What is the same for two stored JSON texts of one value, and never for those of two.
pub(crate) fn fingerprint(stored: &str) -> String {
    let hash = blake3::hash(written(stored, Names::Sorted).text.as_bytes());
    hash.to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn values_that_an_app_writes_are_stored_as_they_are() {
        for text in [r#"{"title":"학칙","n":1.5}"#, "7", r#""x""#, "[null]", "true"] {
            assert_eq!(stored(&json(text), Room::WHOLE).unwrap(), text);
            assert_eq!(read(text).as_str(), text);
        }
    }

    #[test]
    fn other_values_are_stored_as_texts_and_come_back_byte_for_byte() {
        let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
        let edge = format!("{}1{}", "[".repeat(32), "]".repeat(32));
        for text in [
            "null",
            "1.0",
            "12345678901234567890",
            r#"{"b":1,"1":2}"#,
            r#""\/\u00e9""#,
            &deep,
            &edge,
            r##"{"#keyward:json":"1"}"##,
        ] {
            let stored = stored(&json(text), Room::WHOLE).unwrap();
            assert!(stored.starts_with(WRAPPED), "{stored}");
            assert_eq!(read(&stored).as_str(), text);
        }
    }

    #[test]
    fn a_wrapping_that_is_none_is_a_value_like_any_other() {
        for text in [
            r##"{"#keyward:json":1}"##,
            r##"{"#keyward:json":"no json"}"##,
            r##"{"#keyward:json":"1","more":2}"##,
        ] {
            assert_eq!(stored(&json(text), Room::WHOLE).unwrap(), text);
            assert_eq!(read(text).as_str(), text);
        }
    }

    #[test]
    fn a_value_that_does_not_fit_as_a_text_is_refused() {
        let fits = json(&format!("[1.0,\"{}\"]", "x".repeat(VALUE_BYTES_MAX - 40)));
        assert!(stored(&fits, Room::WHOLE).unwrap().len() <= VALUE_BYTES_MAX);
        let large = json(&format!("[1.0,\"{}\"]", "x".repeat(VALUE_BYTES_MAX - 20)));
        assert_eq!(stored(&large, Room::WHOLE).unwrap_err().kind(), ErrorKind::LimitExceeded);
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_order_of_names() {
        assert_eq!(fingerprint(r#"{"a":1,"b":[2]}"#), fingerprint(r#"{ "b": [2.0], "a": 1 }"#));
        assert_ne!(fingerprint(r#"{"a":1}"#), fingerprint(r#"{"a":2}"#));
    }
}
