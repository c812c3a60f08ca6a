//! Parts of a value.

use keyward_engine::Json;
use keyward_schema::{FieldPath, Share};

use crate::change::Record;
use crate::field::{members, object};
use crate::index::null;

/// The value with these fields only. What is no object has no fields, and becomes null.
pub(crate) fn fields(value: &Json, fields: &[FieldPath]) -> Json {
    let paths: Vec<&[String]> = fields.iter().map(FieldPath::names).collect();
    picked(value.as_str(), &paths).map_or_else(null, Json::from_stored)
}

/// What those see of a record who do not own it.
pub(crate) fn shared(mut record: Record, share: &Share) -> Record {
    record.metadata = None;
    if let Share::Fields(shared) = share {
        record.value = fields(&record.value, shared);
    }
    record
}

fn picked(text: &str, paths: &[&[String]]) -> Option<String> {
    let mut kept = Vec::new();
    for (name, value) in members(text)? {
        let inside: Vec<&[String]> = paths
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(first, _)| *first == &*name)
            .map(|(_, rest)| rest)
            .collect();
        if inside.iter().any(|path| path.is_empty()) {
            kept.push((name, value.to_owned()));
        } else if !inside.is_empty()
            && let Some(value) = picked(value, &inside)
        {
            kept.push((name, value));
        }
    }
    Some(object(kept.iter().map(|(name, value)| (&**name, value.as_str()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_is_left() {
        let value = Json::parse(r#"{"a":1.0,"b":{"c":2,"d":{"e":3}},"f":[{"a":1}]}"#).unwrap();
        let pick = |paths: &[&str]| {
            let paths: Vec<FieldPath> = paths.iter().map(|path| path.parse().unwrap()).collect();
            fields(&value, &paths).to_string()
        };
        assert_eq!(pick(&["a"]), r#"{"a":1.0}"#);
        assert_eq!(pick(&["b.d", "f"]), r#"{"b":{"d":{"e":3}},"f":[{"a":1}]}"#);
        assert_eq!(pick(&["b.c", "b"]), r#"{"b":{"c":2,"d":{"e":3}}}"#);
        assert_eq!(pick(&["a.x", "f.a", "g"]), "{}");
        assert_eq!(pick(&[]), "{}");
        assert_eq!(fields(&Json::parse("7").unwrap(), &[]).as_str(), "null");
    }
}
