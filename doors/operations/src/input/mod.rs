//! The fields of a request, and how they are read into its type.
//!
//! A field of a path or a query is text, and read as the type of the field says; a member of a JSON object
//! is JSON; a whole body is passed on unparsed. Errors name the field and what it must be.

mod wrong;

use std::borrow::Cow;
use std::fmt;

use keyward::Json;
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

pub use self::wrong::Wrong;
use crate::problem::{Problem, Result};

/// The fields of a request.
#[derive(Debug, Default)]
pub struct Input<'i> {
    fields: Vec<(Cow<'i, str>, Part<'i>)>,
}

/// A field as a door found it.
#[derive(Debug, Clone)]
pub enum Part<'i> {
    /// Text whose type the field knows: of a path, a query, a header.
    Text(Cow<'i, str>),
    /// Several texts.
    Texts(Vec<String>),
    /// JSON.
    Json(&'i RawValue),
    /// Unparsed JSON: a whole body.
    Whole(&'i [u8]),
    /// A flag that is set.
    Flag,
}

impl<'i> Input<'i> {
    /// Adds a field.
    pub fn push(&mut self, name: impl Into<Cow<'i, str>>, part: Part<'i>) {
        self.fields.push((name.into(), part));
    }

    /// Adds the members of a JSON object.
    pub fn push_members(&mut self, object: &'i [u8]) -> Result<()> {
        let members: Members<'i> = serde_json::from_slice(object).map_err(|error| {
            let is_object = object.trim_ascii_start().first() == Some(&b'{');
            Problem::invalid(match is_object {
                true => format!("the body is not valid JSON: {}", placed(&error)),
                false => "the body must be a JSON object".to_owned(),
            })
        })?;
        self.fields.extend(members.0.into_iter().map(|(name, raw)| (name, Part::Json(raw))));
        Ok(())
    }

    /// Takes a field out of the others.
    pub fn take(&mut self, name: &str) -> Option<Part<'i>> {
        let at = self.fields.iter().position(|(field, _)| field == name)?;
        Some(self.fields.swap_remove(at).1)
    }

    /// Reads the request. A field that it does not have is refused, and so is one that is given twice.
    pub fn read<T: Deserialize<'i>>(self) -> Result<T> {
        T::deserialize(self).map_err(|Wrong { message, .. }| Problem::invalid(message))
    }

    /// Everything that is asked for, the same whenever the same is asked for.
    pub(crate) fn fingerprint(&self) -> Vec<Vec<u8>> {
        let mut parts: Vec<Vec<u8>> = Vec::with_capacity(self.fields.len());
        for (name, part) in &self.fields {
            let mut text = format!("{name}=").into_bytes();
            match part {
                Part::Text(value) => text.extend_from_slice(value.as_bytes()),
                Part::Texts(values) => text.extend_from_slice(values.join("\n").as_bytes()),
                Part::Json(raw) => text.extend_from_slice(raw.get().as_bytes()),
                Part::Whole(body) => text.extend_from_slice(body),
                Part::Flag => {}
            }
            parts.push(text);
        }
        parts.sort_unstable();
        parts
    }
}

/// The members of a JSON object, in their order.
struct Members<'i>(Vec<(Cow<'i, str>, &'i RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// The name of a member, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'i>(#[serde(borrow)] Cow<'i, str>);

/// Where in a body something is wrong, as people count.
fn placed(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(message) => format!("{message} (line {}, column {})", error.line(), error.column()),
        None => text,
    }
}

impl<'de> Deserializer<'de> for Input<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_map(Fields { rest: self.fields.into_iter(), next: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        for (at, (name, _)) in self.fields.iter().enumerate() {
            if !fields.contains(&&**name) {
                return Err(Wrong::unknown_field(name, fields));
            }
            if self.fields[..at].iter().any(|(other, _)| other == name) {
                return Err(Wrong::named(format!("{name} is given twice")));
            }
        }
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

struct Fields<'i> {
    rest: std::vec::IntoIter<(Cow<'i, str>, Part<'i>)>,
    next: Option<(Cow<'i, str>, Part<'i>)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        self.next = self.rest.next();
        let Some((name, _)) = &self.next else { return Ok(None) };
        let name: StrDeserializer<'_, Wrong> = (&**name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        match self.next.take() {
            Some((name, part)) => seed.deserialize(part).map_err(|wrong| wrong.of(&name)),
            None => Err(Wrong::custom("has a value without a name")),
        }
    }
}

/// Reads text as the type of its field says.
macro_rules! from_text {
    ($($method:ident $visit:ident $kind:ty),+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            match &self {
                Part::Text(text) => match text.parse::<$kind>() {
                    Ok(value) => visitor.$visit(value),
                    Err(_) => Err(Wrong::invalid_type(Unexpected::Str(text), &visitor)),
                },
                _ => self.deserialize_any(visitor),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Part<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Self::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Self::Texts(texts) => visitor.visit_seq(SeqDeserializer::new(texts.into_iter())),
            Self::Flag => visitor.visit_bool(true),
            Self::Json(raw) => {
                let mut json = serde_json::Deserializer::from_str(raw.get());
                json.deserialize_any(visitor).map_err(|error| Wrong::of_json(&error))
            }
            Self::Whole(body) => {
                let mut json = serde_json::Deserializer::from_slice(body);
                let read = json.deserialize_any(visitor).map_err(|error| Wrong::of_json(&error))?;
                json.end().map_err(|error| Wrong::of_json(&error))?;
                Ok(read)
            }
        }
    }

    from_text!(
        deserialize_bool visit_bool bool,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_f64 visit_f64 f64
    );

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Json(raw) if raw.get() == "null" => visitor.visit_none(),
            part => visitor.visit_some(part),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self {
            Self::Whole(body) if name == Json::NEWTYPE => visitor.visit_bytes(body),
            // In a query, JSON is written as it is.
            Self::Text(text) if name == Json::NEWTYPE => visitor.visit_bytes(text.as_bytes()),
            Self::Json(raw) => {
                let mut json = serde_json::Deserializer::from_str(raw.get());
                let read = json.deserialize_newtype_struct(name, visitor);
                read.map_err(|error| Wrong::of_json(&error))
            }
            part => visitor.visit_newtype_struct(part),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            // In a query, a list is written with commas.
            Self::Text(text) => {
                let texts = text.split(',').filter(|text| !text.is_empty());
                let parts = texts.map(|text| Part::Text(Cow::Owned(text.to_owned())));
                visitor.visit_seq(SeqDeserializer::new(parts))
            }
            part => part.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self {
            Self::Json(raw) => {
                let mut json = serde_json::Deserializer::from_str(raw.get());
                let read = json.deserialize_struct(name, fields, visitor);
                read.map_err(|error| Wrong::of_json(&error))
            }
            part => part.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self {
            Self::Json(raw) => {
                let mut json = serde_json::Deserializer::from_str(raw.get());
                let read = json.deserialize_enum(name, variants, visitor);
                read.map_err(|error| Wrong::of_json(&error))
            }
            Self::Text(text) => visitor.visit_enum(Word(text)),
            part => part.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u128 f32 char str string bytes byte_buf unit unit_struct tuple tuple_struct map
        identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Wrong> for Part<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The word of an enumeration.
struct Word<'i>(Cow<'i, str>);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = Wrong;
    type Variant = Unit;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Unit), Wrong> {
        let word: StrDeserializer<'_, Wrong> = (&*self.0).into_deserializer();
        Ok((seed.deserialize(word)?, Unit))
    }
}

/// A word has nothing but itself.
struct Unit;

impl<'de> VariantAccess<'de> for Unit {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Wrong> {
        Err(Wrong::custom("must be an object, not a word"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Wrong> {
        Err(Wrong::custom("must be an object, not a word"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Wrong> {
        Err(Wrong::custom("must be an object, not a word"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Rule {
        Replace,
        Append,
    }

    #[derive(Debug, Deserialize)]
    struct Request {
        key: keyward::Key,
        value: Option<Json>,
        limit: Option<u64>,
        #[serde(default)]
        descending: bool,
        rule: Option<Rule>,
        #[serde(default)]
        fields: Vec<String>,
    }

    fn texts<'i>(fields: &[(&'static str, &'static str)]) -> Input<'i> {
        let mut input = Input::default();
        for (name, text) in fields {
            input.push(*name, Part::Text(Cow::Borrowed(*text)));
        }
        input
    }

    fn refused(input: Input<'_>) -> String {
        input.read::<Request>().unwrap_err().detail().to_owned()
    }

    #[test]
    fn text_is_read_as_its_field_says() {
        let given = [
            ("key", "a:b"),
            ("limit", "7"),
            ("descending", "true"),
            ("rule", "append"),
            ("fields", "a,b"),
        ];
        let request: Request = texts(&given).read().unwrap();
        assert_eq!((request.key.to_string().as_str(), request.limit), ("a:b", Some(7)));
        assert!(request.descending);
        assert_eq!((request.rule, request.fields.len()), (Some(Rule::Append), 2));
    }

    #[test]
    fn a_whole_body_and_members_of_one_are_values_as_they_stand() {
        let body = br#"{ "n": 1.10 }"#;
        let mut input = texts(&[("key", "a")]);
        input.push("value", Part::Whole(body));
        let request: Request = input.read().unwrap();
        assert_eq!(request.value.unwrap().as_str(), r#"{"n":1.10}"#);
        let request: Request = texts(&[("key", "a"), ("value", "[1.0]")]).read().unwrap();
        assert_eq!(request.value.unwrap().as_str(), "[1.0]");
        let object = br#"{"key":"a","value":[1e400],"limit":5,"rule":"replace","fields":["x"]}"#;
        let mut input = Input::default();
        input.push_members(object).unwrap();
        let request: Request = input.read().unwrap();
        assert_eq!(request.value.unwrap().as_str(), "[1e400]");
        assert_eq!((request.limit, request.rule), (Some(5), Some(Rule::Replace)));
    }

    #[test]
    fn what_is_wrong_is_said_in_plain_words() {
        let key = ("key", "a");
        for (given, told) in [
            (vec![key, ("limit", "x")], r#"limit must be a whole number, not "x""#),
            (vec![key, ("descending", "yes")], r#"descending must be true or false, not "yes""#),
            (vec![key, ("rule", "x")], r#"rule must be one of replace, append, not "x""#),
            (vec![("limit", "1")], "key is missing"),
            (vec![key, key], "key is given twice"),
        ] {
            assert_eq!(refused(texts(&given)), told);
        }
        let unknown = refused(texts(&[key, ("limits", "1")]));
        assert!(unknown.starts_with("there is no parameter called \"limits\""), "{unknown}");
        assert!(refused(texts(&[("key", "a%")])).starts_with("key is not valid at character"));
        let mut input = Input::default();
        input.push_members(br#"{"key":"a","limit":"7"}"#).unwrap();
        assert_eq!(refused(input), r#"limit must be a whole number, not string "7""#);
        let mut input = Input::default();
        let list = input.push_members(b"[1]").unwrap_err();
        assert_eq!(list.detail(), "the body must be a JSON object");
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_order_of_fields() {
        let (one, other) = ([("a", "1"), ("b", "2")], [("b", "2"), ("a", "1")]);
        assert_eq!(texts(&one).fingerprint(), texts(&other).fingerprint());
        assert_ne!(texts(&one).fingerprint(), texts(&[("a", "12")]).fingerprint());
    }
}
