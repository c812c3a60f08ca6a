//! An entry as one line of JSON: what scan and export write, and import reads.
//!
//! ```text
//! {"key":"user:7:name","value":"Ada","version":"17","metadata":{"by":"me"},"expires":"2030-01-01T00:00:00.000000Z"}
//! ```
//!
//! Values and metadata stand in it byte for byte as they are stored, so numbers keep their digits.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use keyward::{Entry, Expiry, Json, Key, Put, moment_text};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Which fields a line has besides the key and the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fields {
    /// What another store can take over: metadata and expiry, if there are any.
    Portable,
    /// The version too.
    Versioned,
    /// All of them, with `null` for what there is not.
    All,
}

/// Appends an entry as JSON, without a line's end.
pub fn write(line: &mut Vec<u8>, key: &Key, entry: &Entry, fields: Fields) {
    line.extend_from_slice(b"{\"key\":");
    write_text(line, &key.to_string());
    line.extend_from_slice(b",\"value\":");
    line.extend_from_slice(entry.value.as_bytes());
    if fields != Fields::Portable {
        line.extend_from_slice(b",\"version\":");
        write_text(line, &entry.version.to_string());
    }
    if let Some(metadata) = &entry.metadata {
        line.extend_from_slice(b",\"metadata\":");
        line.extend_from_slice(metadata.as_bytes());
    } else if fields == Fields::All {
        line.extend_from_slice(b",\"metadata\":null");
    }
    if let Some(expires) = entry.expires {
        line.extend_from_slice(b",\"expires\":");
        write_text(line, &moment_text(expires));
    } else if fields == Fields::All {
        line.extend_from_slice(b",\"expires\":null");
    }
    line.push(b'}');
}

/// Appends text as a JSON string.
pub fn write_text(line: &mut Vec<u8>, text: &str) {
    // Text always has a JSON form, and a vector takes all of it.
    let _ = serde_json::to_writer(line, text);
}

/// What a line says is to be stored.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// The key.
    pub key: Key,
    /// What to set it to; an expiry is the moment that the line names.
    pub put: Put,
}

impl Line {
    /// Whether the entry has ended by `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        matches!(self.put.expiry, Some(Expiry::At(end)) if end <= now)
    }
}

/// Why a line is not an entry.
#[derive(Debug, PartialEq, Eq)]
pub struct LineError(String);

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fields of a line. A field that nobody knows is refused rather than dropped in silence.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<'l> {
    #[serde(borrow)]
    key: Cow<'l, str>,
    #[serde(borrow)]
    value: &'l RawValue,
    #[serde(borrow, default)]
    metadata: Option<&'l RawValue>,
    #[serde(borrow, default)]
    expires: Option<Cow<'l, str>>,
    /// What scan writes. Versions belong to one store, so reading leaves it alone.
    #[serde(default, rename = "version")]
    _version: Option<serde::de::IgnoredAny>,
}

/// Reads one line.
pub fn read(line: &[u8]) -> Result<Line, LineError> {
    let wire: Wire<'_> = serde_json::from_slice(line).map_err(|error| not_an_entry(&error))?;
    let key = Key::parse(&wire.key).map_err(|error| LineError(format!("the key {error}")))?;
    let json = |what: &str, raw: &RawValue| {
        let parsed = Json::parse(raw.get().to_owned());
        parsed.map_err(|error| LineError(format!("the {what} is {error} of it")))
    };
    let mut put = Put::new(json("value", wire.value)?);
    if let Some(metadata) = wire.metadata {
        put = put.with_metadata(json("metadata", metadata)?);
    }
    if let Some(expires) = wire.expires {
        let end: Timestamp = expires.parse().map_err(|_| {
            LineError(format!(
                "expires is {expires:?}, not a time such as \"2030-01-01T00:00:00Z\""
            ))
        })?;
        put = put.expiring(Expiry::At(end));
    }
    Ok(Line { key, put })
}

/// serde counts lines of its own, which would only confuse beside ours.
pub fn not_an_entry(error: &serde_json::Error) -> LineError {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&place) {
        Some(message) => LineError(format!("{message}, at column {}", error.column())),
        None => LineError(message),
    }
}

#[cfg(test)]
mod tests {
    use keyward::Version;

    use super::*;

    fn entry(value: &str) -> Entry {
        Entry {
            value: Json::parse(value.to_owned()).unwrap(),
            metadata: None,
            version: Version::from(17),
            expires: None,
        }
    }

    fn written(entry: &Entry, fields: Fields) -> String {
        let mut line = Vec::new();
        write(&mut line, &Key::parse("a%3Ab:\"c\"").unwrap(), entry, fields);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn values_stand_byte_for_byte_in_a_line() {
        let plain = entry(r#"{"n":1.000000000000000000000001E+5}"#);
        assert_eq!(
            written(&plain, Fields::Portable),
            r#"{"key":"a%3Ab:\"c\"","value":{"n":1.000000000000000000000001E+5}}"#
        );
        assert_eq!(
            written(&plain, Fields::All),
            r#"{"key":"a%3Ab:\"c\"","value":{"n":1.000000000000000000000001E+5},"version":"17","metadata":null,"expires":null}"#
        );
        let full = Entry {
            metadata: Some(Json::parse(r#"{"by":"me"}"#).unwrap()),
            expires: Some("2030-01-01T00:00:00.5Z".parse().unwrap()),
            ..plain
        };
        assert!(written(&full, Fields::Versioned).ends_with(
            r#","version":"17","metadata":{"by":"me"},"expires":"2030-01-01T00:00:00.500000Z"}"#
        ));
    }

    #[test]
    fn what_was_written_is_read_back() {
        for fields in [Fields::Portable, Fields::Versioned, Fields::All] {
            let full = Entry {
                metadata: Some(Json::parse(r#"{"by":"me"}"#).unwrap()),
                expires: Some("2030-01-01T00:00:00.5Z".parse().unwrap()),
                ..entry("[null,1e400]")
            };
            let line = read(written(&full, fields).as_bytes()).unwrap();
            assert_eq!(line.key, Key::parse("a%3Ab:\"c\"").unwrap());
            assert_eq!(line.put.value, full.value);
            assert_eq!(line.put.metadata, full.metadata);
            assert_eq!(line.put.expiry, full.expires.map(Expiry::At));
        }
        let null = read(written(&entry("null"), Fields::All).as_bytes()).unwrap();
        assert_eq!(null.put, Put::new(Json::parse("null").unwrap()));
    }

    #[test]
    fn what_is_no_entry_is_refused_with_a_reason() {
        for (line, reason) in [
            ("", "EOF"),
            ("hello", "expected value, at column 1"),
            (r#"{"key":"a"}"#, "missing field `value`"),
            (r#"{"value":1}"#, "missing field `key`"),
            (r#"{"key":"a","value":1} x"#, "trailing characters"),
            (r#"{"key":"a","value":1,"ttl":5}"#, "unknown field `ttl`"),
            (r#"{"key":"a","key":"b","value":1}"#, "duplicate field"),
            (r#"{"key":"a%","value":1}"#, "character 2"),
            (r#"{"key":"a","value":{"b":1,"b":2}}"#, "stands twice"),
            (r#"{"key":"a","value":1,"expires":"soon"}"#, "\"soon\""),
            (r#"{"key":"a","value":1,"expires":7}"#, "expected a string"),
        ] {
            let LineError(told) = read(line.as_bytes()).unwrap_err();
            assert!(told.contains(reason), "{line}: {told}");
            assert!(!told.contains("line 1"), "{told}");
        }
        assert!(read(b"{\"key\":\"a\",\"value\":\"\xff\"}").is_err());
    }
}
