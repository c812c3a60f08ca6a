//! DynamoDB's JSON, in which each value says its type: `{"S":"text"}`, `{"N":"1.50"}`, `{"M":{…}}`.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The item as plain JSON. Digits, escapes and the order of names stay as they were written. Sets become
/// arrays, and bytes the base64 text that stands for them.
pub(super) fn plain(item: &str) -> Result<String, String> {
    let mut text = String::with_capacity(item.len());
    let mut reader = serde_json::Deserializer::from_str(item);
    let read = Members(&mut text).deserialize(&mut reader).and_then(|()| reader.end());
    read.map_err(|error| format!("it is not DynamoDB's JSON: {error}"))?;
    Ok(text)
}

/// The members of an item or of an `M`: names, and values with types.
struct Members<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object whose members have types")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut before = '{';
        while let Some(name) = map.next_key::<&RawValue>()? {
            self.0.push(before);
            self.0.push_str(name.get());
            self.0.push(':');
            map.next_value_seed(Typed(self.0))?;
            before = ',';
        }
        if before == '{' {
            self.0.push('{');
        }
        self.0.push('}');
        Ok(())
    }
}

/// A value with its type.
struct Typed<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for Typed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Typed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"a value with its type, such as {"S":"text"}"#)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some(kind) = map.next_key::<&RawValue>()? else {
            return Err(A::Error::custom("a value has no type"));
        };
        let text = self.0;
        match kind.get() {
            r#""S""# | r#""B""# => {
                text.push_str(of(map.next_value()?, |json| json.starts_with('"'))?)
            }
            r#""N""# => text.push_str(number(map.next_value()?)?),
            r#""BOOL""# => {
                text.push_str(of(map.next_value()?, |json| matches!(json, "true" | "false"))?);
            }
            r#""NULL""# => {
                of::<A::Error>(map.next_value()?, |json| json == "true")?;
                text.push_str("null");
            }
            r#""M""# => map.next_value_seed(Members(text))?,
            r#""L""# => map.next_value_seed(Elements { text, each: Each::Typed })?,
            r#""SS""# | r#""BS""# => map.next_value_seed(Elements { text, each: Each::Text })?,
            r#""NS""# => map.next_value_seed(Elements { text, each: Each::Number })?,
            other => return Err(A::Error::custom(format!("{other} is not a type of DynamoDB's"))),
        }
        match map.next_key::<&RawValue>()? {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("a value has two types")),
        }
    }
}

/// What the elements of an array are.
#[derive(Clone, Copy)]
enum Each {
    Typed,
    Text,
    Number,
}

struct Elements<'t> {
    text: &'t mut String,
    each: Each,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<(), S::Error> {
        let Self { text, each } = self;
        text.push('[');
        let empty = text.len();
        loop {
            let before = text.len();
            if before > empty {
                text.push(',');
            }
            let more = match each {
                Each::Typed => elements.next_element_seed(Typed(text))?.is_some(),
                Each::Text | Each::Number => match elements.next_element::<&RawValue>()? {
                    Some(json) if matches!(each, Each::Number) => {
                        text.push_str(number(json)?);
                        true
                    }
                    Some(json) => {
                        text.push_str(of(json, |json| json.starts_with('"'))?);
                        true
                    }
                    None => false,
                },
            };
            if !more {
                text.truncate(before);
                text.push(']');
                return Ok(());
            }
        }
    }
}

/// The JSON, if it is what its type says.
fn of<E: serde::de::Error>(json: &RawValue, fits: impl Fn(&str) -> bool) -> Result<&str, E> {
    let json = json.get();
    match fits(json) {
        true => Ok(json),
        false => Err(E::custom(format!("{} does not have the type that it says", short(json)))),
    }
}

/// The number that stands in a text.
fn number<E: serde::de::Error>(json: &RawValue) -> Result<&str, E> {
    let text = json.get();
    let digits = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let is_number = |digits: &&str| {
        digits.starts_with(|first: char| first == '-' || first.is_ascii_digit())
            && serde_json::from_str::<&RawValue>(digits).is_ok()
    };
    digits.filter(is_number).ok_or_else(|| {
        E::custom(format!(r#"{} is not a number, which is written as {{"N":"1.5"}}"#, short(text)))
    })
}

/// The beginning of a text, for messages.
fn short(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
