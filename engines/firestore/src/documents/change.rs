//! What a put changes of a document: only that is written, so that fields of types that JSON does not have keep their type.

use std::borrow::Cow;

use keyward_engine::{Json, Result};

use super::ID;
use super::encode::{Encoded, Encoder, no_object};
use super::members::members;

/// The longest path of a field that Firestore takes.
const PATH_BYTES_MAX: usize = 1_500;

/// The changed fields of a map.
pub(super) struct Changes<'d>(Vec<(Cow<'d, str>, Change<'d>)>);

enum Change<'d> {
    /// The field has another value, or is new.
    Set(&'d str),
    Removed,
    /// The field is a map on both sides.
    Within(Changes<'d>),
}

impl<'d> Changes<'d> {
    pub fn between(before: &'d Json, after: &'d Json) -> Result<Self> {
        let changes = Self::of(before.as_str(), after.as_str(), 0).map_err(no_object)?;
        Ok(changes)
    }

    fn of(before: &'d str, after: &'d str, path_bytes: usize) -> serde_json::Result<Self> {
        let (old, new) = (members(before)?, members(after)?);
        let find = |all: &[(Cow<'d, str>, &'d str)], name: &str| {
            all.iter().find(|(it, _)| it == name).map(|(_, json)| *json)
        };
        let is_id = |name: &str| path_bytes == 0 && name == ID;
        let mut changes = Vec::new();
        for (name, json) in &new {
            let before = find(&old, name);
            if is_id(name) || before == Some(*json) {
                continue;
            }
            let path_bytes = path_bytes + quoted(name).len() + 1;
            let change = match before {
                Some(before) if before.starts_with('{') && json.starts_with('{') => {
                    let within = Self::of(before, json, path_bytes)?;
                    if within.is_empty() {
                        continue;
                    }
                    // Paths below that are too long to be written: the whole map is.
                    match within.path_bytes(path_bytes) > PATH_BYTES_MAX {
                        true => Change::Set(json),
                        false => Change::Within(within),
                    }
                }
                _ => Change::Set(json),
            };
            changes.push((name.clone(), change));
        }
        for (name, _) in &old {
            if !is_id(name) && find(&new, name).is_none() {
                changes.push((name.clone(), Change::Removed));
            }
        }
        Ok(Self(changes))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn path_bytes(&self, above: usize) -> usize {
        let longest = self.0.iter().map(|(name, change)| {
            let path = above + quoted(name).len() + 1;
            match change {
                Change::Within(changes) => changes.path_bytes(path),
                Change::Set(_) | Change::Removed => path,
            }
        });
        longest.max().unwrap_or(above)
    }

    /// The paths of all changed fields.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, above: &str, paths: &mut Vec<String>) {
        for (name, change) in &self.0 {
            let path = match above {
                "" => quoted(name).into_owned(),
                above => format!("{above}.{}", quoted(name)),
            };
            match change {
                Change::Within(changes) => changes.collect(&path, paths),
                Change::Set(_) | Change::Removed => paths.push(path),
            }
        }
    }

    /// The changed fields with their values; those that are removed are only in the paths.
    pub fn fields(&self) -> Result<Encoded> {
        let mut encoder = Encoder::new();
        encoder.open();
        self.encode(&mut encoder)?;
        Ok(encoder.close())
    }

    fn encode(&self, encoder: &mut Encoder) -> Result<()> {
        for (name, change) in &self.0 {
            match change {
                Change::Set(json) => encoder.member(name, json)?,
                Change::Removed => {}
                Change::Within(changes) => {
                    encoder.open_map(name)?;
                    changes.encode(encoder)?;
                    encoder.close_map();
                }
            }
        }
        Ok(())
    }
}

/// A name as it stands in a path of fields.
fn quoted(name: &str) -> Cow<'_, str> {
    let is_simple = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let first = name.bytes().next().unwrap_or(b'0');
    if !first.is_ascii_digit() && name.bytes().all(is_simple) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(before: &str, after: &str) -> (Vec<String>, String) {
        let (before, after) =
            (Json::parse(before.to_owned()).unwrap(), Json::parse(after.to_owned()).unwrap());
        let changes = Changes::between(&before, &after).unwrap();
        let fields = changes.fields().unwrap().raw().unwrap();
        (changes.paths(), fields.get().to_owned())
    }

    #[test]
    fn only_what_differs_is_written() {
        let (paths, fields) = changes(
            r#"{"at":"2026","same":{"a":1},"value":{"at":"x","n":1,"gone":2},"old":1}"#,
            r#"{"_id":"i","at":"2026","same":{"a":1},"value":{"n":2,"at":"x"},"new":[1]}"#,
        );
        assert_eq!(paths, ["value.n", "value.gone", "new", "old"]);
        assert_eq!(
            fields,
            r#"{"value":{"mapValue":{"fields":{"n":{"integerValue":"2"}}}},"new":{"arrayValue":{"values":[{"integerValue":"1"}]}}}"#
        );
        assert_eq!(changes(r#"{"a":{"b":{}}}"#, r#"{"a":{"b":{}}}"#).0, [""; 0]);
        assert_eq!(
            changes(r#"{"a":{"b":1}}"#, r#"{"a":{}}"#),
            (vec!["a.b".to_owned()], r#"{"a":{"mapValue":{"fields":{}}}}"#.to_owned())
        );
        assert_eq!(changes(r#"{"a":{"b":1}}"#, r#"{"a":7}"#).0, ["a"]);
    }

    #[test]
    fn names_are_quoted_in_paths() {
        let (paths, _) = changes("{}", r#"{"a.b":1,"1a":1,"a`\\c":1,"학":1,"_a1":1}"#);
        assert_eq!(paths, ["`a.b`", "`1a`", r"`a\`\\c`", "`학`", "_a1"]);
        let long = "x".repeat(1_400);
        let before = format!(r#"{{"a":{{"{long}":{{"y{long}":1,"z":2}}}}}}"#);
        let after = format!(r#"{{"a":{{"{long}":{{"y{long}":2,"z":2}}}}}}"#);
        assert_eq!(changes(&before, &after).0, [format!("a.{long}")]);
    }
}
