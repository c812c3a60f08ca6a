//! Values as they are stored, those of other programs included.

use jiff::Timestamp;
use keyward_engine::{Json, Version};

/// A value as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub value: Json,
    /// Whether it was text without the quotes of JSON.
    pub is_text: bool,
}

/// Reads a value. What is not JSON that can be stored comes as a JSON string, so that no value of another program
/// keeps those beside it from being read: text as it is, anything else as a `data:` URL.
pub(crate) fn read(bytes: Vec<u8>) -> Read {
    match String::from_utf8(bytes) {
        Ok(text) => read_text(text),
        Err(error) => Read { value: string(&data_url(error.as_bytes())), is_text: false },
    }
}

/// Reads a value that is text.
pub(crate) fn read_text(text: String) -> Read {
    match Json::parse(text.clone()) {
        Ok(value) => Read { value, is_text: false },
        Err(_) => Read { value: string(&text), is_text: true },
    }
}

/// The text of a JSON string that is read again as that string: one that is no JSON itself.
pub(crate) fn plain_text(value: &Json) -> Option<String> {
    let text: String = serde_json::from_slice(value.as_bytes()).ok()?;
    let Read { value: again, is_text } = read_text(text.clone());
    (is_text && again == *value).then_some(text)
}

fn string(text: &str) -> Json {
    Json::from_stored(serde_json::Value::from(text).to_string())
}

fn data_url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut url = "data:application/octet-stream;base64,".to_owned();
    for three in bytes.chunks(3) {
        let at = |n: usize| u32::from(three.get(n).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n)) as usize & 63];
            url.push(if n <= three.len() { char::from(digit) } else { '=' });
        }
    }
    url
}

/// The version of an entry: a fingerprint of everything in it.
pub(crate) fn version(value: &Json, metadata: Option<&Json>, ends: Option<Timestamp>) -> Version {
    let mut hash = blake3::Hasher::new();
    hash.update(&(value.len() as u64).to_be_bytes()).update(value.as_bytes());
    hash.update(metadata.map_or(&[][..], Json::as_bytes)).update(b"\0");
    hash.update(&ends.map_or(-1, Timestamp::as_second).to_be_bytes());
    // Half of it tells more entries apart than a namespace can hold.
    Version::parse(&hash.finalize().to_hex()[..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_as_it_is() {
        for text in ["null", "1.50", r#"{"b":1,"a":"\u00e9"}"#] {
            assert_eq!(read(text.into()).value.as_str(), text);
        }
        assert_eq!(read(b"{ \"a\": 1 }\n".to_vec()).value.as_str(), r#"{"a":1}"#);
    }

    #[test]
    fn text_that_is_not_json_is_a_string() {
        for text in ["3f786850e387550fdab836ed7e6dc881de23001b", "", "{\"a\":", "# 학칙\n\"x\""] {
            let Read { value: json, is_text } = read(text.into());
            assert!(is_text);
            assert_eq!(plain_text(&json).as_deref(), Some(text));
            let back: String = serde_json::from_slice(json.as_bytes()).unwrap();
            assert_eq!(back, text);
            assert_eq!(Json::parse(json.to_bytes()).unwrap(), json, "it is JSON");
        }
    }

    #[test]
    fn what_is_no_text_is_a_data_url() {
        let start = "\"data:application/octet-stream;base64,";
        for (bytes, digits) in [
            (&[0xff][..], "/w=="),
            (&[0xff, 0], "/wA="),
            (&[0xff, 0, 1], "/wAB"),
            (&[0x89, b'P', b'N', b'G'], "iVBORw=="),
        ] {
            let read = read(bytes.to_vec());
            assert_eq!(read.value.as_str(), format!("{start}{digits}\""));
            assert!(!read.is_text);
        }
    }

    #[test]
    fn a_string_that_would_be_read_as_something_else_is_not_written_plainly() {
        for text in [r#""12""#, r#""null""#, r#""{}""#, r#""\u0061b""#, "1", "[]"] {
            assert_eq!(plain_text(&Json::parse(text.to_owned()).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn another_entry_has_another_version() {
        let json = |text: &str| Json::parse(text.to_owned()).unwrap();
        let end = Timestamp::from_second(5).unwrap();
        let all = [
            version(&json("1"), None, None),
            version(&json("2"), None, None),
            version(&json("1"), Some(&json("{}")), None),
            version(&json("1"), None, Some(end)),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(all[n + 1..].iter().all(|other| other != one));
        }
        assert_eq!(all[0], version(&json("1"), None, None));
    }
}
