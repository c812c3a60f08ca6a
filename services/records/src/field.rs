//! Reading fields of stored JSON without parsing the rest of it.

use std::borrow::Cow;

use jiter::Jiter;
use keyward_schema::FieldPath;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The JSON text of a field, if the value has it.
pub(crate) fn find<'j>(json: &'j [u8], path: &FieldPath) -> Option<&'j [u8]> {
    let mut jiter = Jiter::new(json);
    let (last, outer) = path.names().split_last()?;
    for name in outer {
        seek(&mut jiter, name)?;
    }
    seek(&mut jiter, last)?;
    jiter.peek().ok()?;
    let start = jiter.current_index();
    jiter.next_skip().ok()?;
    Some(jiter.slice_to_current(start))
}

/// Goes to the value of a member of the object that comes next.
fn seek(jiter: &mut Jiter<'_>, name: &str) -> Option<()> {
    let mut found = jiter.next_object().ok()?.map(|member| member == name);
    while let Some(is_it) = found {
        if is_it {
            return Some(());
        }
        jiter.next_skip().ok()?;
        found = jiter.next_key().ok()?.map(|member| member == name);
    }
    None
}

/// The members of a JSON object, in order, each value as it is written; `None` if the text is no
/// object.
pub(crate) fn members(json: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    if !json.starts_with('{') {
        return None;
    }
    serde_json::from_str::<Members<'_>>(json).ok().map(|members| members.0)
}

struct Members<'j>(Vec<(Cow<'j, str>, &'j str)>);

/// A name, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'j>(#[serde(borrow)] Cow<'j, str>);

impl<'de: 'j, 'j> Deserialize<'de> for Members<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &RawValue>()? {
                    members.push((name, value.get()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// The elements of a JSON array, each as it is written; `None` if the text is no array.
pub(crate) fn elements(json: &str) -> Option<Vec<&str>> {
    if !json.starts_with('[') {
        return None;
    }
    let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// Writes a JSON object from members.
pub(crate) fn object<'m>(members: impl IntoIterator<Item = (&'m str, &'m str)>) -> String {
    let mut text = String::from("{");
    for (n, (name, value)) in members.into_iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        text.push_str(&quoted(name));
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(json: &str, path: &str) -> Option<String> {
        let found = find(json.as_bytes(), &path.parse().unwrap())?;
        Some(String::from_utf8(found.to_vec()).unwrap())
    }

    #[test]
    fn a_field_is_found_at_any_depth_as_it_was_written() {
        let json =
            r#"{"a":{"x":[1,{"b":2}],"b":12345678901234567890.0},"b":"\u0041","\u0062c":null}"#;
        assert_eq!(field(json, "a.b").unwrap(), "12345678901234567890.0");
        assert_eq!(field(json, "b").unwrap(), r#""\u0041""#);
        assert_eq!(field(json, "bc").unwrap(), "null");
        assert_eq!(field(json, "a.x").unwrap(), r#"[1,{"b":2}]"#);
        for missing in ["c", "a.c", "b.c", "a.x.b", "a.b.c"] {
            assert_eq!(field(json, missing), None, "{missing}");
        }
        assert_eq!(field("[1]", "a"), None);
        assert_eq!(field("{}", "a"), None);
    }

    #[test]
    fn members_keep_their_order_and_digits() {
        let json = r#"{"b":1.000,"a":{"c":"\n"},"q\"":[]}"#;
        let found = members(json).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(name, v)| (&**name, *v)).collect();
        assert_eq!(found, [("b", "1.000"), ("a", r#"{"c":"\n"}"#), ("q\"", "[]")]);
        assert_eq!(object(found), json);
        assert!(members("[]").is_none());
        assert_eq!(elements("[1,[2],\"a,b\"]").unwrap(), ["1", "[2]", "\"a,b\""]);
    }
}
