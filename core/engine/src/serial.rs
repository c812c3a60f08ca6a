//! Values and versions in JSON. A value is passed through as it is: it is neither parsed nor copied
//! into a tree.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{Json, Version};

/// By this name serde_json knows text that is JSON already.
const RAW: &str = "$serde_json::private::RawValue";

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW, 1)?;
        raw.serialize_field(RAW, self.as_str())?;
        raw.end()
    }
}

impl<'de> Deserialize<'de> for Json {
    /// Takes the text of the value as it stands. A deserializer that has the whole text gives it as bytes
    /// for the newtype [`Json::NEWTYPE`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(Self::NEWTYPE, Text)
    }
}

impl Json {
    /// The name of the newtype that deserializers are asked for.
    pub const NEWTYPE: &'static str = "$keyward::Json";
}

struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Json, D::Error> {
        let raw: Box<RawValue> = Deserialize::deserialize(inner)?;
        Json::parse(String::from(Box::<str>::from(raw))).map_err(told)
    }

    fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<Json, E> {
        Json::parse(text.to_vec()).map_err(told)
    }
}

fn told<E: Error>(error: crate::JsonError) -> E {
    E::custom(format_args!("is {error}"))
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Version;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a version, as text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Version, E> {
                Ok(Version::parse(text))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Held {
        value: Json,
        version: Version,
    }

    #[test]
    fn a_value_passes_through_with_every_digit() {
        let text = r#"{"value":{"n":1.10,"b":123456789012345678901234567890},"version":"17"}"#;
        let held: Held = serde_json::from_str(text).unwrap();
        assert_eq!(held.version, Version::from(17));
        assert_eq!(serde_json::to_string(&held).unwrap(), text);
    }

    #[test]
    fn a_value_that_cannot_be_stored_is_refused_with_the_reason() {
        let text = r#"{"value":{"a":1,"a":2},"version":"1"}"#;
        let Err(error) = serde_json::from_str::<Held>(text) else { panic!("it was accepted") };
        assert!(error.to_string().contains("stands twice"), "{error}");
        assert!(serde_json::from_str::<Held>(r#"{"value":1,"version":1}"#).is_err());
    }
}
