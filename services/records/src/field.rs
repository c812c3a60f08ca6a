//! Reading fields of stored JSON, and writing objects of such fields, without parsing the rest: digits
//! and the order of names stay as they were written.

use std::borrow::Cow;

use keyward_schema::FieldPath;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The JSON text of a field, if the value has it. A [`Json`](keyward_engine::Json) is valid and has no
/// white space between its tokens, so nothing is checked on the way: a page of an index looks into
/// each of its records.
pub fn find<'j>(json: &'j [u8], path: &FieldPath) -> Option<&'j [u8]> {
    let mut at = 0;
    for name in path.names() {
        at = member(json, at, name)?;
    }
    json.get(at..value_end(json, at)?)
}

/// Where the value of a member stands, in the object that begins at `at`.
fn member(json: &[u8], at: usize, name: &str) -> Option<usize> {
    let mut separator = at;
    let mut opening = b'{';
    while *json.get(separator)? == opening {
        let quote = separator + 1;
        if *json.get(quote)? != b'"' {
            return None;
        }
        let colon = string_end(json, quote)?;
        if is_name(json.get(quote..colon)?, name) {
            return Some(colon + 1);
        }
        separator = value_end(json, colon + 1)?;
        opening = b',';
    }
    None
}

/// Whether a string of JSON says `name`.
fn is_name(string: &[u8], name: &str) -> bool {
    match string {
        [b'"', text @ .., b'"'] if text == name.as_bytes() => !text.contains(&b'\\'),
        text if text.contains(&b'\\') => {
            serde_json::from_slice::<String>(text).is_ok_and(|text| text == name)
        }
        _ => false,
    }
}

/// Where the value that begins at `at` ends.
fn value_end(json: &[u8], at: usize) -> Option<usize> {
    match *json.get(at)? {
        b'"' => string_end(json, at),
        b'{' | b'[' => nested_end(json, at),
        _ => {
            let rest = json.get(at..)?;
            let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']'));
            Some(at + length.unwrap_or(rest.len()))
        }
    }
}

/// Where the string that begins at `at` ends, its quote included.
fn string_end(json: &[u8], at: usize) -> Option<usize> {
    let mut next = at + 1;
    loop {
        match *json.get(next)? {
            b'"' => return Some(next + 1),
            b'\\' => next += 2,
            _ => next += 1,
        }
    }
}

/// Where the object or array that begins at `at` ends.
fn nested_end(json: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut next = at;
    loop {
        match *json.get(next)? {
            b'"' => {
                next = string_end(json, next)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(next + 1),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        next += 1;
    }
}

/// The members of a JSON object, in order, each value as it is written; `None` if the text is no
/// object.
pub fn members(json: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
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
pub fn elements(json: &str) -> Option<Vec<&str>> {
    if !json.starts_with('[') {
        return None;
    }
    let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// Writes a JSON object from members.
pub fn object<'m>(members: impl IntoIterator<Item = (&'m str, &'m str)>) -> String {
    let mut text = String::from("{");
    for (n, (name, value)) in members.into_iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        push_quoted(&mut text, name);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// A text as JSON.
pub fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_quoted(&mut json, text);
    json
}

/// Adds a text as JSON.
pub fn push_quoted(json: &mut String, text: &str) {
    // Nearly all names, and most texts, stand in JSON as they are.
    if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        // A text always serializes.
        json.push_str(&serde_json::to_string(text).unwrap_or_default());
        return;
    }
    json.push('"');
    json.push_str(text);
    json.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

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
        for no_object in ["[1]", "{}", "7", "\"a\"", "null"] {
            assert_eq!(field(no_object, "a"), None, "{no_object}");
        }
        // A name that looks like the escape of another is not it.
        assert_eq!(field(r#"{"a\\u0062":1}"#, r"a\u0062").as_deref(), Some("1"));
        assert_eq!(field(r#"{"a\u0062":1}"#, r"a\u0062"), None);
        assert_eq!(field(r#"{"s":"}],\"","a":7}"#, "a").as_deref(), Some("7"));
    }

    /// Objects of some depth, with names that are looked for among them.
    fn value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            r#"[\\"{}\[\],:]{0,6}"#.prop_map(Value::from),
        ];
        scalar.prop_recursive(3, 24, 4, |inner| {
            let name = prop_oneof!["[abc]", any::<String>()];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(name, inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_text_is_quoted_as_json_has_it(text in r#"([a-zü"\\/\x00-\x1f\x7f]|\PC)*"#) {
            prop_assert_eq!(quoted(&text), Value::from(text).to_string());
        }

        #[test]
        fn a_field_is_what_a_parser_finds(value in value(), path in "[abc](\\.[abc]){0,2}") {
            let parsed = path.split('.').try_fold(&value, |value, name| value.get(name));
            let found = field(&value.to_string(), &path);
            prop_assert_eq!(found, parsed.map(Value::to_string));
        }

        #[test]
        fn text_that_is_no_json_is_survived(text: Vec<u8>, path in "[abc](\\.[abc])?") {
            find(&text, &path.parse().unwrap());
        }
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
