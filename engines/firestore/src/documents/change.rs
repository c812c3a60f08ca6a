//! What a put changes of a document: only that is written, so that fields of types that JSON does not have keep their type.

use std::borrow::Cow;
use std::collections::HashMap;

use keyward_engine::{Json, Result};

use super::ID;
use super::encode::{Encoded, Encoder, VECTOR_TYPE, no_object};
use super::members::{is_number, members};

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
        let old_by_name = by_name(&old);
        let is_id = |name: &str| path_bytes == 0 && name == ID;
        let mut changes = Vec::new();
        for (name, json) in &new {
            let before = old_by_name.get(name.as_ref()).copied();
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
                    let is_too_long = within.path_bytes(path_bytes) > PATH_BYTES_MAX;
                    match is_too_long || is_one_value(before)? {
                        true => Change::Set(json),
                        false => Change::Within(within),
                    }
                }
                _ => Change::Set(json),
            };
            changes.push((name.clone(), change));
        }
        let new_by_name = by_name(&new);
        for (name, _) in &old {
            if !is_id(name) && !new_by_name.contains_key(name.as_ref()) {
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

/// Members by their names.
fn by_name<'m, 'd>(members: &'m [(Cow<'d, str>, &'d str)]) -> HashMap<&'m str, &'d str> {
    let mut all = HashMap::with_capacity(members.len());
    for (name, json) in members {
        all.entry(name.as_ref()).or_insert(*json);
    }
    all
}

/// Whether an object may be how a value of Firestore is shown that is no map: a point, a vector, or a type that came
/// after this was written. A path into it would replace it by a map with only the member that is changed, so it is
/// written whole. A map that looks like it loses nothing by that but the types that JSON does not have.
fn is_one_value(object: &str) -> serde_json::Result<bool> {
    let members = members(object)?;
    let get = |name: &str| members.iter().find(|(it, _)| it == name).map(|(_, json)| *json);
    Ok(match members.as_slice() {
        [(kind, _)] => kind.ends_with("Value"),
        [_, _] => {
            let is_point =
                [get("latitude"), get("longitude")].iter().all(|it| it.is_some_and(is_number));
            is_point || get(VECTOR_TYPE).is_some()
        }
        _ => false,
    })
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
    fn what_is_no_map_is_written_whole() {
        for (before, after) in [
            (r#"{"latitude":1.5,"longitude":-2.0}"#, r#"{"latitude":1.25,"longitude":-2.0}"#),
            (r#"{"longitude":0.0,"latitude":1.5}"#, r#"{"latitude":1.5}"#),
            (r#"{"newValue":{"a":1,"b":2}}"#, r#"{"newValue":{"a":1,"b":3}}"#),
        ] {
            let of = |value: &str| format!(r#"{{"value":{{"point":{value},"n":1}}}}"#);
            let (paths, fields) = changes(&of(before), &of(after));
            assert_eq!(paths, ["value.point"], "{before}");
            let whole = changes("{}", &of(after)).1.replace(r#","n":{"integerValue":"1"}"#, "");
            assert_eq!(fields, whole, "{before}");
        }
        // The same in another order is no change.
        let point = r#"{"p":{"latitude":1.5,"longitude":-2.0}}"#;
        let turned = r#"{"p":{"longitude":-2.0, "latitude":1.5}}"#;
        assert_eq!(changes(point, turned).0, [""; 0]);
        // These are maps.
        for (before, after, path) in [
            (r#"{"latitude":1.5,"name":"x"}"#, r#"{"latitude":2.5,"name":"x"}"#, "v.latitude"),
            (
                r#"{"latitude":"NaN","longitude":1.0}"#,
                r#"{"latitude":"NaN","longitude":2.0}"#,
                "v.longitude",
            ),
            (r#"{"value":{"at":1}}"#, r#"{"value":{"at":2}}"#, "v.value.at"),
        ] {
            let of = |value: &str| format!(r#"{{"v":{value}}}"#);
            assert_eq!(changes(&of(before), &of(after)).0, [path], "{before}");
        }
    }

    #[test]
    fn many_members_take_no_longer_each_than_few() {
        const MEMBERS: usize = 60_000;
        let object = |value: &str| {
            let members = (0..MEMBERS).map(|n| format!(r#""name{n:05}{value}":{value}"#));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        };
        let started = std::time::Instant::now();
        assert_eq!(changes(&object("1"), &object("2")).0.len(), 2 * MEMBERS);
        // It takes a moment; billions of comparisons take a minute.
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
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
