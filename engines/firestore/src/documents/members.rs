//! The members of JSON objects and the elements of arrays, each as it is written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in their order. An error for anything else.
pub(super) fn members(object: &str) -> serde_json::Result<Vec<(Cow<'_, str>, &str)>> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de str)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
                members.push((name, map.next_value::<&'de RawValue>()?.get()));
            }
            Ok(members)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(object);
    let members = deserializer.deserialize_map(Members)?;
    deserializer.end()?;
    Ok(members)
}

/// The elements of an array. An error for anything else.
pub(super) fn elements(array: &str) -> serde_json::Result<Vec<&str>> {
    let elements: Vec<&RawValue> = serde_json::from_str(array)?;
    Ok(elements.into_iter().map(RawValue::get).collect())
}

/// Whether a JSON value is a number.
pub(super) fn is_number(json: &str) -> bool {
    json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// A text, if it is one that Unicode has.
pub(super) fn text(json: &str) -> serde_json::Result<Cow<'_, str>> {
    serde_json::from_str::<Name<'_>>(json).map(|Name(text)| text)
}

/// A JSON text that is borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A text as JSON.
pub(super) fn quote(text: &str, out: &mut String) {
    // A text always is JSON.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}
