//! Firestore's values as JSON.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ID;
use super::members::{members, quote, text};

#[derive(Deserialize)]
struct Map<'a> {
    #[serde(borrow)]
    fields: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Array<'a> {
    #[serde(borrow, default)]
    values: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Point<'a> {
    #[serde(borrow)]
    latitude: Option<&'a RawValue>,
    #[serde(borrow)]
    longitude: Option<&'a RawValue>,
}

/// Appends the fields of a document as a JSON object, without the one that repeats its id.
pub(super) fn decode(fields: &str, out: &mut String) -> serde_json::Result<()> {
    object(fields, out, |name| name != ID)
}

fn object(
    fields: &str,
    out: &mut String,
    is_shown: impl Fn(&str) -> bool,
) -> serde_json::Result<()> {
    out.push('{');
    let mut follows = false;
    for (name, typed) in members(fields)? {
        if !is_shown(&name) {
            continue;
        }
        if std::mem::replace(&mut follows, true) {
            out.push(',');
        }
        quote(&name, out);
        out.push(':');
        value(typed, out)?;
    }
    out.push('}');
    Ok(())
}

fn value(typed: &str, out: &mut String) -> serde_json::Result<()> {
    let members = members(typed)?;
    let [(kind, json)] = members.as_slice() else {
        // A type that came after this was written: as Firestore's own JSON has it.
        out.push_str(typed);
        return Ok(());
    };
    match kind.as_ref() {
        "nullValue" => out.push_str("null"),
        "booleanValue" => out.push_str(json),
        "integerValue" => out.push_str(json.trim_matches('"')),
        "doubleValue" => double(json, out),
        "stringValue" | "timestampValue" | "bytesValue" | "referenceValue" => {
            quote(&text(json)?, out)
        }
        "geoPointValue" => {
            let Point { latitude, longitude } = serde_json::from_str(json)?;
            out.push_str(r#"{"latitude":"#);
            double(latitude.map_or("0", RawValue::get), out);
            out.push_str(r#","longitude":"#);
            double(longitude.map_or("0", RawValue::get), out);
            out.push('}');
        }
        "mapValue" => {
            let Map { fields } = serde_json::from_str(json)?;
            object(fields.map_or("{}", RawValue::get), out, |_| true)?;
        }
        "arrayValue" => {
            let Array { values } = serde_json::from_str(json)?;
            out.push('[');
            for (n, typed) in values.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                value(typed.get(), out)?;
            }
            out.push(']');
        }
        _ => out.push_str(typed),
    }
    Ok(())
}

/// The shortest decimal that is this double. What is no number in JSON is its name as a text.
fn double(json: &str, out: &mut String) {
    match json.parse::<f64>() {
        Ok(double) if double.is_finite() => out.push_str(&format!("{double:?}")),
        _ => quote(json.trim_matches('"'), out),
    }
}

/// A field that is a text.
pub(super) fn text_field(fields: &str, name: &str) -> Option<String> {
    let fields = members(fields).ok()?;
    let (_, typed) = fields.iter().find(|(it, _)| it == name)?;
    match members(typed).ok()?.as_slice() {
        [(Cow::Borrowed("stringValue"), json)] => Some(text(json).ok()?.into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_shown_as_json() {
        for (typed, expected) in [
            (r#"{"nullValue":null}"#, "null"),
            (r#"{"booleanValue":false}"#, "false"),
            (r#"{"integerValue":"-7"}"#, "-7"),
            (r#"{"doubleValue":100}"#, "100.0"),
            (r#"{"doubleValue":1e+23}"#, "1e23"),
            (r#"{"doubleValue":0.1}"#, "0.1"),
            (r#"{"doubleValue":"NaN"}"#, "\"NaN\""),
            (r#"{"doubleValue":"-Infinity"}"#, "\"-Infinity\""),
            (r#"{"stringValue":"a\/\u003c\u00e9\n"}"#, r#""a/<é\n""#),
            (r#"{"timestampValue":"2026-01-01T00:00:00.5Z"}"#, "\"2026-01-01T00:00:00.5Z\""),
            (r#"{"bytesValue":"AAEC"}"#, "\"AAEC\""),
            (r#"{"referenceValue":"projects/p"}"#, "\"projects/p\""),
            (r#"{"geoPointValue":{"latitude":1.5}}"#, r#"{"latitude":1.5,"longitude":0.0}"#),
            (
                r#"{"geoPointValue":{"latitude":1e-130,"longitude":-7}}"#,
                r#"{"latitude":1e-130,"longitude":-7.0}"#,
            ),
            (r#"{"mapValue":{}}"#, "{}"),
            (r#"{"arrayValue":{}}"#, "[]"),
            (
                r#"{ "arrayValue": { "values": [ {"integerValue":"1"}, {"mapValue":{"fields":{"_id":{"nullValue":null}}}} ] } }"#,
                r#"[1,{"_id":null}]"#,
            ),
        ] {
            let mut out = String::new();
            decode(&format!(r#"{{"_id":{{"stringValue":"i"}},"v":{typed}}}"#), &mut out).unwrap();
            assert_eq!(out, format!(r#"{{"v":{expected}}}"#), "{typed}");
        }
    }
}
