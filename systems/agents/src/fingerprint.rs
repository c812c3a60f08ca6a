//! Versions that are made of what is stored.
//!
//! Databases of documents keep what JSON means, not how it was written: the names of an object may come back in
//! another order, and `1.50` as `1.5`. So a version is a hash of the meaning: what was written and what is read later
//! have the same.

use keyward_engine::Version;
use keyward_records::field::{elements, members};

use crate::access::AccessRow;
use crate::decimal::Decimal;
use crate::entry::Body;

/// How many bytes of a hash make a version.
const VERSION_BYTES: usize = 16;

/// The version of an entry.
pub(crate) fn of_entry(body: &Body<'_>) -> Version {
    let mut hasher = Hasher::new(b"entry");
    let parts = [body.created_by_agent, Some(body.created_at), Some(body.updated_at)];
    for part in parts.into_iter().chain([body.metadata, Some(body.value)]) {
        hasher.optional(part);
    }
    hasher.version()
}

/// The version of an access row.
pub(crate) fn of_row(row: &AccessRow) -> Version {
    let mut hasher = Hasher::new(b"access");
    hasher.part(b'n', row.count.to_string().as_bytes());
    for text in [row.agent.as_deref(), row.at.as_deref(), Some(row.born.as_str())] {
        match text {
            Some(text) => hasher.part(b's', text.as_bytes()),
            None => hasher.part(b'0', b""),
        }
    }
    hasher.version()
}

struct Hasher(blake3::Hasher);

impl Hasher {
    fn new(kind: &[u8]) -> Self {
        let mut hasher = Self(blake3::Hasher::new());
        hasher.part(b'k', kind);
        hasher
    }

    /// One more part. Its length is hashed too, so that parts cannot be shifted against each other.
    fn part(&mut self, tag: u8, bytes: &[u8]) {
        self.0.update(&[tag]);
        self.0.update(&(bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn optional(&mut self, json: Option<&str>) {
        match json {
            Some(json) => self.json(json),
            None => self.part(b'0', b""),
        }
    }

    fn json(&mut self, json: &str) {
        match json.as_bytes().first() {
            Some(b'{') => {
                let mut all = members(json).unwrap_or_default();
                all.sort_by(|(one, _), (other, _)| one.cmp(other));
                self.part(b'{', &(all.len() as u64).to_be_bytes());
                for (name, value) in all {
                    self.part(b's', name.as_bytes());
                    self.json(value);
                }
            }
            Some(b'[') => {
                let all = elements(json).unwrap_or_default();
                self.part(b'[', &(all.len() as u64).to_be_bytes());
                for element in all {
                    self.json(element);
                }
            }
            Some(b'"') => match serde_json::from_str::<String>(json) {
                Ok(text) => self.part(b's', text.as_bytes()),
                // No text that JSON allows, such as half of a surrogate pair.
                Err(_) => self.part(b'?', json.as_bytes()),
            },
            Some(b'-' | b'0'..=b'9') => {
                let number = number(json);
                self.part(b'n', number.as_deref().unwrap_or(json).as_bytes());
            }
            // null, true, false.
            _ => self.part(b'w', json.as_bytes()),
        }
    }

    fn version(&self) -> Version {
        let hash = self.0.finalize();
        let hash = hash.as_bytes().get(..VERSION_BYTES).unwrap_or_default();
        Version::parse(&data_encoding::HEXLOWER.encode(hash))
    }
}

/// A number as one text, however it was written.
fn number(text: &str) -> Option<String> {
    let Decimal { is_negative, digits, power } = Decimal::parse(text)?;
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let sign = if is_negative { "-" } else { "" };
    Some(format!("{sign}{digits}e{power}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(value: &str) -> Version {
        let (created_at, updated_at) = ("\"c\"", "\"u\"");
        of_entry(&body(created_at, updated_at, value))
    }

    fn body<'j>(created_at: &'j str, updated_at: &'j str, value: &'j str) -> Body<'j> {
        let (created_by_agent, metadata) = (None, None);
        Body { created_by_agent, created_at, updated_at, metadata, value }
    }

    #[test]
    fn what_means_the_same_has_the_same_version() {
        for (one, other) in [
            ("1.50", "1.5"),
            ("100", "1e2"),
            ("0.001", "1E-3"),
            ("-0", "0.0"),
            (r#""caf\u00e9""#, "\"café\""),
            (r#"{"a":1,"b":[2.0]}"#, r#"{"b":[2],"a":1}"#),
        ] {
            assert_eq!(version(one), version(other), "{one} {other}");
        }
    }

    #[test]
    fn what_differs_has_another_version() {
        let values = [
            "1",
            "-1",
            "10",
            "\"1\"",
            "[1]",
            "[[1]]",
            "[]",
            "{}",
            "null",
            "true",
            "false",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"["a",1]"#,
            "12345678901234567890123456789012345678",
            "12345678901234567890123456789012345679",
            "\"\"",
            "1e9999999999999999999999",
        ];
        for (n, one) in values.iter().enumerate() {
            for other in &values[n + 1..] {
                assert_ne!(version(one), version(other), "{one} {other}");
            }
        }
        let (created_at, updated_at, value) = ("\"c\"", "\"u\"", "1");
        let body = body(created_at, updated_at, value);
        for other in [
            Body { created_by_agent: Some("\"a\""), ..body },
            Body { created_at: "\"d\"", ..body },
            Body { updated_at: "\"d\"", ..body },
            Body { metadata: Some("{}"), ..body },
        ] {
            assert_ne!(of_entry(&body), of_entry(&other));
        }
    }
}
