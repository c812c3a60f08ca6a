//! JSON as DynamoDB's attributes, and back.
//!
//! Every JSON value has one form as attributes, the one that other programs give it: objects are maps, arrays lists,
//! null is NULL. Back from attributes, sets are shown as arrays and binary values as base64 text: JSON has nothing
//! nearer. What is shown so cannot be made of the JSON again, so a [`Foreign`] keeps it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use data_encoding::BASE64;
use keyward_engine::{Error, ErrorKind, Json, Result};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::item::{Item, corrupt};
use crate::number;

/// How deep maps and lists nest in an attribute.
const DEPTH_MAX: usize = 31;

/// The members of an object, in their order, each as its JSON text.
pub(super) type Members<'j> = Vec<(String, &'j str)>;

/// The members of an object; none if the text is no object.
pub(super) fn members(json: &str) -> Option<Members<'_>> {
    struct Object;

    impl<'j> Visitor<'j> for Object {
        type Value = Members<'j>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<Members<'j>, A::Error> {
            let mut members = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                members.push((name, value.get()));
            }
            Ok(members)
        }
    }

    serde_json::Deserializer::from_str(json).deserialize_map(Object).ok()
}

/// A JSON value as an attribute.
pub(super) fn attribute(name: &str, json: &str) -> Result<AttributeValue> {
    nested(json, 0).map_err(|Refusal(reason)| {
        let message = format!("DynamoDB cannot hold the field {name:?} exactly: {reason}");
        Error::new(ErrorKind::Invalid, message)
    })
}

/// Why a value cannot be held.
struct Refusal(String);

fn refused(reason: impl Into<String>) -> Refusal {
    Refusal(reason.into())
}

fn nested(json: &str, depth: usize) -> Result<AttributeValue, Refusal> {
    let json = json.trim();
    let unreadable = || refused("it is no JSON");
    match json.as_bytes().first() {
        Some(b'{' | b'[') if depth == DEPTH_MAX => {
            Err(refused(format!("it is nested more than {DEPTH_MAX} levels deep")))
        }
        Some(b'{') => {
            let mut map = HashMap::new();
            for (name, value) in members(json).ok_or_else(unreadable_text)? {
                if name.is_empty() {
                    return Err(refused("it has an empty name, which DynamoDB does not allow"));
                }
                map.insert(name, nested(value, depth + 1)?);
            }
            Ok(AttributeValue::M(map))
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> =
                serde_json::from_str(json).map_err(|_| unreadable_text())?;
            let elements = elements.iter().map(|element| nested(element.get(), depth + 1));
            Ok(AttributeValue::L(elements.collect::<Result<_, _>>()?))
        }
        Some(b'"') => {
            let text = serde_json::from_str(json).map_err(|_| unreadable_text())?;
            Ok(AttributeValue::S(text))
        }
        Some(b't') => Ok(AttributeValue::Bool(true)),
        Some(b'f') => Ok(AttributeValue::Bool(false)),
        Some(b'n') => Ok(AttributeValue::Null(true)),
        Some(_) => match number::refusal(json) {
            Some(reason) => Err(refused(reason)),
            None => Ok(AttributeValue::N(json.to_owned())),
        },
        None => Err(unreadable()),
    }
}

/// Valid JSON that is no text in Unicode, such as half of a surrogate pair.
fn unreadable_text() -> Refusal {
    refused("it has a text that is not Unicode, such as half of a surrogate pair")
}

/// The fields of an item as an object, with the names in order, and what of it JSON cannot express.
pub(super) fn fields(item: &Item, without: &str) -> Result<(Json, Foreign)> {
    let mut foreign = Foreign::default();
    let mut text = String::from("{");
    let sorted: BTreeMap<&String, &AttributeValue> = item.iter().collect();
    for (name, value) in sorted.into_iter().filter(|(name, _)| *name != without) {
        if text.len() > 1 {
            text.push(',');
        }
        push_text(&mut text, name);
        text.push(':');
        if push(&mut text, value)? {
            foreign.0.insert(name.clone(), value.clone());
        }
    }
    text.push('}');
    Ok((Json::from_stored(text), foreign))
}

/// Writes an attribute as JSON. True if something in it is shown as what it is not.
fn push(out: &mut String, value: &AttributeValue) -> Result<bool> {
    match value {
        AttributeValue::S(text) => push_text(out, text),
        AttributeValue::N(number) => push_number(out, number)?,
        AttributeValue::Bool(true) => out.push_str("true"),
        AttributeValue::Bool(false) => out.push_str("false"),
        AttributeValue::Null(_) => out.push_str("null"),
        AttributeValue::L(elements) => {
            let mut is_foreign = false;
            push_all(out, elements, |out, element| {
                is_foreign |= push(out, element)?;
                Ok(())
            })?;
            return Ok(is_foreign);
        }
        AttributeValue::M(map) => {
            let mut is_foreign = false;
            out.push('{');
            let sorted: BTreeMap<&String, &AttributeValue> = map.iter().collect();
            for (n, (name, value)) in sorted.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                push_text(out, name);
                out.push(':');
                is_foreign |= push(out, value)?;
            }
            out.push('}');
            return Ok(is_foreign);
        }
        AttributeValue::B(bytes) => {
            push_text(out, &BASE64.encode(bytes.as_ref()));
            return Ok(true);
        }
        AttributeValue::Ss(texts) => {
            push_all(out, texts, |out, text| {
                push_text(out, text);
                Ok(())
            })?;
            return Ok(true);
        }
        AttributeValue::Ns(numbers) => {
            push_all(out, numbers, |out, number| push_number(out, number))?;
            return Ok(true);
        }
        AttributeValue::Bs(all) => {
            push_all(out, all, |out, bytes| {
                push_text(out, &BASE64.encode(bytes.as_ref()));
                Ok(())
            })?;
            return Ok(true);
        }
        _ => return Err(corrupt("an attribute has a type that this release does not know")),
    }
    Ok(false)
}

fn push_all<T>(
    out: &mut String,
    all: &[T],
    mut push: impl FnMut(&mut String, &T) -> Result<()>,
) -> Result<()> {
    out.push('[');
    for (n, one) in all.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        push(out, one)?;
    }
    out.push(']');
    Ok(())
}

fn push_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

fn push_number(out: &mut String, number: &str) -> Result<()> {
    if Json::parse(number.to_owned()).is_err() {
        return Err(corrupt(&format!("the attribute {number:?} is no number")));
    }
    out.push_str(number);
    Ok(())
}

/// Attributes that JSON shows as something else, by name: to compare with, and to leave as they are. Between a read
/// and a write they travel as text, in DynamoDB's own JSON form.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Foreign(pub(super) HashMap<String, AttributeValue>);

impl Foreign {
    pub(super) fn to_text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let sorted: BTreeMap<&String, &AttributeValue> = self.0.iter().collect();
        let typed = sorted.into_iter().map(|(name, value)| (name.clone(), typed(value)));
        serde_json::Value::Object(typed.collect()).to_string()
    }

    pub(super) fn of_text(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let unreadable =
            || Error::new(ErrorKind::Invalid, "the revision of the document is none of DynamoDB's");
        let map: HashMap<String, serde_json::Value> =
            serde_json::from_str(text).map_err(|_| unreadable())?;
        let read = map.into_iter().map(|(name, value)| Some((name, untyped(&value)?)));
        read.collect::<Option<_>>().map(Self).ok_or_else(unreadable)
    }
}

/// An attribute in DynamoDB's own JSON form, such as `{"SS":["a"]}`.
fn typed(value: &AttributeValue) -> serde_json::Value {
    use serde_json::{Value, json};
    let base64 = |bytes: &Blob| BASE64.encode(bytes.as_ref());
    match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::Bool(flag) => json!({ "BOOL": flag }),
        AttributeValue::L(all) => json!({ "L": all.iter().map(typed).collect::<Vec<_>>() }),
        AttributeValue::M(map) => {
            let map = map.iter().map(|(name, value)| (name.clone(), typed(value)));
            json!({ "M": Value::Object(map.collect()) })
        }
        AttributeValue::B(bytes) => json!({ "B": base64(bytes) }),
        AttributeValue::Ss(texts) => json!({ "SS": texts }),
        AttributeValue::Ns(numbers) => json!({ "NS": numbers }),
        AttributeValue::Bs(all) => json!({ "BS": all.iter().map(base64).collect::<Vec<_>>() }),
        _ => json!({ "NULL": true }),
    }
}

fn untyped(value: &serde_json::Value) -> Option<AttributeValue> {
    let (kind, value) = value.as_object()?.iter().next()?;
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let bytes =
        |value: &serde_json::Value| BASE64.decode(value.as_str()?.as_bytes()).ok().map(Blob::new);
    Some(match kind.as_str() {
        "S" => AttributeValue::S(text(value)?),
        "N" => AttributeValue::N(text(value)?),
        "BOOL" => AttributeValue::Bool(value.as_bool()?),
        "NULL" => AttributeValue::Null(true),
        "L" => AttributeValue::L(value.as_array()?.iter().map(untyped).collect::<Option<_>>()?),
        "M" => {
            let map = value
                .as_object()?
                .iter()
                .map(|(name, value)| Some((name.clone(), untyped(value)?)));
            AttributeValue::M(map.collect::<Option<_>>()?)
        }
        "B" => AttributeValue::B(bytes(value)?),
        "SS" => AttributeValue::Ss(value.as_array()?.iter().map(text).collect::<Option<_>>()?),
        "NS" => AttributeValue::Ns(value.as_array()?.iter().map(text).collect::<Option<_>>()?),
        "BS" => AttributeValue::Bs(value.as_array()?.iter().map(bytes).collect::<Option<_>>()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(json: &str) -> Result<String> {
        let item = Item::from([("value".to_owned(), attribute("value", json)?)]);
        let (fields, foreign) = fields(&item, "_id")?;
        assert_eq!(foreign, Foreign::default());
        let fields = members(fields.as_str()).unwrap();
        Ok(fields[0].1.to_owned())
    }

    #[test]
    fn json_comes_back_as_it_was() {
        for json in [
            "null",
            "true",
            "false",
            "0",
            "-1.5",
            "12345678901234567890123456789012345678",
            "\"\"",
            r#""a\"\\\n학😀""#,
            "[]",
            "{}",
            r#"[1,"a",null,[],{"b":[true]}]"#,
        ] {
            assert_eq!(there_and_back(json).unwrap(), json);
        }
        assert_eq!(there_and_back("\"\\u0041\"").unwrap(), "\"A\"");
    }

    #[test]
    fn what_cannot_be_held_is_refused() {
        let deep = format!("{}1{}", "[".repeat(32), "]".repeat(32));
        for json in [
            "123456789012345678901234567890123456789",
            "[1e126]",
            r#"{"a":{"b":1e-131}}"#,
            r#""\ud800""#,
            r#"{"":1}"#,
            &deep,
        ] {
            let error = attribute("value", json).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{json}: {error}");
            assert!(error.message().contains("\"value\""), "{error}");
        }
        let fits = format!("{}1{}", "[".repeat(31), "]".repeat(31));
        assert!(attribute("value", &fits).is_ok());
    }

    #[test]
    fn what_json_lacks_is_shown_and_kept() {
        let blob = |text: &str| Blob::new(text.as_bytes());
        let item = Item::from([
            ("_id".to_owned(), AttributeValue::S("x".to_owned())),
            ("plain".to_owned(), AttributeValue::N("1".to_owned())),
            ("set".to_owned(), AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()])),
            ("numbers".to_owned(), AttributeValue::Ns(vec!["1.5".to_owned()])),
            ("bytes".to_owned(), AttributeValue::B(blob("hi"))),
            ("many".to_owned(), AttributeValue::Bs(vec![blob("hi")])),
            (
                "nested".to_owned(),
                AttributeValue::M(HashMap::from([
                    (
                        "in".to_owned(),
                        AttributeValue::L(vec![
                            AttributeValue::B(blob("hi")),
                            AttributeValue::Null(true),
                        ]),
                    ),
                    ("flag".to_owned(), AttributeValue::Bool(false)),
                ])),
            ),
        ]);
        let (fields, foreign) = fields(&item, "_id").unwrap();
        assert_eq!(
            fields.as_str(),
            r#"{"bytes":"aGk=","many":["aGk="],"nested":{"flag":false,"in":["aGk=",null]},"numbers":[1.5],"plain":1,"set":["a","b"]}"#
        );
        let mut names: Vec<_> = foreign.0.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["bytes", "many", "nested", "numbers", "set"]);
        assert_eq!(Foreign::of_text(&foreign.to_text()).unwrap(), foreign);
        assert_eq!(Foreign::of_text("").unwrap(), Foreign::default());
        assert!(Foreign::of_text("1-abc").is_err());
    }
}
