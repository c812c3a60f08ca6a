//! Declared edits of values, which leave everything else as it is written.

use std::fmt;

use keyward_engine::Json;
use keyward_schema::FieldPath;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One edit of a JSON object. Doing it twice is doing it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Set a field, whatever it was; objects on the way to it are made.
    Set(FieldPath, Json),
    /// Set a field that is not there.
    SetDefault(FieldPath, Json),
    /// Give a field another name. Where there is no such field, nothing happens; where there are
    /// both, that is refused.
    Rename(FieldPath, FieldPath),
    /// Remove a field.
    Remove(FieldPath),
}

impl Edit {
    /// What a value becomes, or why it cannot.
    pub fn apply(&self, value: &Json) -> Result<Json, String> {
        let mut object = Object::read(value.as_str()).ok_or("the value is no object")?;
        match self {
            Self::Set(field, new) => object.set(field.names(), &raw(new.as_str())?)?,
            Self::SetDefault(field, new) => {
                if object.get(field.names()).is_none() {
                    object.set(field.names(), &raw(new.as_str())?)?;
                }
            }
            Self::Rename(old, new) => {
                let Some(moved) = object.get(old.names()) else { return Ok(value.clone()) };
                if object.get(new.names()).is_some() {
                    return Err(format!("it has both {old} and {new}"));
                }
                object.remove(old.names())?;
                object.set(new.names(), &moved)?;
            }
            Self::Remove(field) => object.remove(field.names())?,
        }
        Json::from_value(&object).map_err(|error| error.to_string())
    }

    /// What a value becomes by several edits, one after the other.
    pub fn apply_all(edits: &[Self], value: &Json) -> Result<Json, String> {
        edits.iter().try_fold(value.clone(), |value, edit| edit.apply(&value))
    }
}

/// The same words mean the same edit.
impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(field, value) => write!(f, "set {field}={value}"),
            Self::SetDefault(field, value) => write!(f, "set-default {field}={value}"),
            Self::Rename(old, new) => write!(f, "rename {old}={new}"),
            Self::Remove(field) => write!(f, "remove {field}"),
        }
    }
}

/// A field of a value, as it is written; `None` where it is missing or null.
pub(crate) fn field(value: &Json, field: &FieldPath) -> Option<Box<RawValue>> {
    let found = Object::read(value.as_str())?.get(field.names())?;
    (found.get() != "null").then_some(found)
}

fn raw(text: &str) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text.to_owned()).map_err(|error| error.to_string())
}

/// The members of an object, in order.
struct Object(Vec<(String, Box<RawValue>)>);

impl Object {
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn get(&self, path: &[String]) -> Option<Box<RawValue>> {
        let (first, rest) = path.split_first()?;
        let (_, value) = self.0.iter().find(|(name, _)| name == first)?;
        if rest.is_empty() { Some(value.clone()) } else { Self::read(value.get())?.get(rest) }
    }

    fn set(&mut self, path: &[String], new: &RawValue) -> Result<(), String> {
        let Some((first, rest)) = path.split_first() else { return Ok(()) };
        let at = self.0.iter().position(|(name, _)| name == first);
        let value = if rest.is_empty() {
            new.to_owned()
        } else {
            let mut inner = match at {
                Some(at) => {
                    let inner = Self::read(self.0[at].1.get());
                    inner.ok_or_else(|| format!("the field {first} is no object"))?
                }
                None => Self(Vec::new()),
            };
            inner.set(rest, new)?;
            raw(&serde_json::to_string(&inner).map_err(|error| error.to_string())?)?
        };
        match at {
            Some(at) => self.0[at].1 = value,
            None => self.0.push((first.clone(), value)),
        }
        Ok(())
    }

    fn remove(&mut self, path: &[String]) -> Result<(), String> {
        let Some((first, rest)) = path.split_first() else { return Ok(()) };
        let Some(at) = self.0.iter().position(|(name, _)| name == first) else { return Ok(()) };
        if rest.is_empty() {
            self.0.remove(at);
            return Ok(());
        }
        let Some(mut inner) = Self::read(self.0[at].1.get()) else { return Ok(()) };
        inner.remove(rest)?;
        let text = serde_json::to_string(&inner).map_err(|error| error.to_string())?;
        self.0[at].1 = raw(&text)?;
        Ok(())
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(edit: Edit, value: &str) -> Result<String, String> {
        let once = edit.apply(&Json::parse(value.to_owned()).unwrap())?;
        assert_eq!(edit.apply(&once), Ok(once.clone()), "{edit} is done twice");
        Ok(once.to_string())
    }

    fn path(text: &str) -> FieldPath {
        text.parse().unwrap()
    }

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn an_edit_leaves_everything_else_as_it_is_written() {
        let value = r#"{"b":1.000,"a":{"x":null,"y":12345678901234567890},"c":"\u0041"}"#;
        let set = edited(Edit::Set(path("a.z"), json("{\"q\":null}")), value).unwrap();
        assert_eq!(
            set,
            r#"{"b":1.000,"a":{"x":null,"y":12345678901234567890,"z":{"q":null}},"c":"\u0041"}"#
        );
        let made = edited(Edit::Set(path("d.e"), json("2")), r#"{"b":1}"#).unwrap();
        assert_eq!(made, r#"{"b":1,"d":{"e":2}}"#);
        let removed = edited(Edit::Remove(path("a.y")), value).unwrap();
        assert_eq!(removed, r#"{"b":1.000,"a":{"x":null},"c":"\u0041"}"#);
        let renamed = edited(Edit::Rename(path("b"), path("n.b")), r#"{"b":1.0,"z":2}"#).unwrap();
        assert_eq!(renamed, r#"{"z":2,"n":{"b":1.0}}"#);
    }

    #[test]
    fn a_default_is_only_for_what_is_missing() {
        let default = Edit::SetDefault(path("n"), json("5"));
        assert_eq!(edited(default.clone(), r#"{"n":null}"#).unwrap(), r#"{"n":null}"#);
        assert_eq!(edited(default, "{}").unwrap(), r#"{"n":5}"#);
    }

    #[test]
    fn what_would_lose_something_is_refused() {
        let rename = Edit::Rename(path("a"), path("b"));
        assert!(rename.apply(&json(r#"{"a":1,"b":2}"#)).is_err());
        assert!(Edit::Set(path("a.b"), json("1")).apply(&json(r#"{"a":7}"#)).is_err());
        assert!(rename.apply(&json("[1]")).is_err());
    }
}
