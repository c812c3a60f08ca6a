//! Keys and prefixes in JSON: their text.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Key, ParseError, Prefix};

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text { what: "a key such as user:7:name", of: PhantomData })
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text { what: "a prefix such as user:7:", of: PhantomData })
    }
}

/// Reads something from its text.
struct Text<T> {
    what: &'static str,
    of: PhantomData<T>,
}

impl<T: FromStr<Err = ParseError>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|error: ParseError| {
            let (position, message) = (error.position(), error.message());
            E::custom(format_args!("is not valid at character {position}: {message}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_prefixes_are_texts() {
        let key: Key = serde_json::from_str(r#""user:a%3Ab""#).unwrap();
        assert_eq!(key, Key::from_segments(["user", "a:b"]).unwrap());
        assert_eq!(serde_json::to_string(&key).unwrap(), r#""user:a%3Ab""#);
        let prefix: Prefix = serde_json::from_str(r#""user:7""#).unwrap();
        assert_eq!(prefix, Prefix::parse("user:7").unwrap());
        assert_eq!(serde_json::from_str::<Prefix>(r#""""#).unwrap(), Prefix::all());
    }

    #[test]
    fn a_text_that_is_no_key_says_where() {
        let error = serde_json::from_str::<Key>(r#""user:%""#).unwrap_err().to_string();
        assert!(error.starts_with("is not valid at character 6"), "{error}");
        assert!(serde_json::from_str::<Key>("7").is_err());
    }
}
