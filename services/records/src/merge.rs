//! Merging a part into a value.

use std::borrow::Cow;
use std::collections::HashSet;

use keyward_engine::Json;
use keyward_schema::FieldPath;

use crate::field::{elements, find, members, object};
use crate::{Error, Result};

/// A part to merge into a value: by default as JSON Merge Patch (RFC 7396) says, where objects are
/// merged, null removes a member, and everything else replaces what was there.
///
/// ```
/// use keyward_engine::Json;
/// use keyward_records::{Arrays, Merge};
///
/// let old = Json::parse(r#"{"n":1,"tags":["a"],"by":"ada"}"#)?;
/// let merge = Merge::new(Json::parse(r#"{"n":null,"tags":["a","b"],"by":"bob"}"#)?)
///     .arrays(Arrays::Union)
///     .preserve("by".parse()?);
/// assert_eq!(merge.apply(Some(&old))?.as_str(), r#"{"tags":["a","b"],"by":"ada"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// The part.
    pub patch: Json,
    /// What becomes of an array that meets an array.
    pub arrays: Arrays,
    /// Fields that stay as they are if they are there.
    pub preserve: Vec<FieldPath>,
}

/// What becomes of an array that meets an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Arrays {
    /// The new one takes the place of the old one.
    #[default]
    Replace,
    /// The new elements follow the old ones.
    Append,
    /// The new elements that are not there yet follow the old ones. Elements are the same when
    /// their text is.
    Union,
}

impl Merge {
    /// A JSON Merge Patch.
    pub fn new(patch: Json) -> Self {
        Self { patch, arrays: Arrays::Replace, preserve: Vec::new() }
    }

    /// The same with another rule for arrays.
    #[must_use]
    pub fn arrays(mut self, arrays: Arrays) -> Self {
        self.arrays = arrays;
        self
    }

    /// The same with one more field that stays as it is.
    #[must_use]
    pub fn preserve(mut self, field: FieldPath) -> Self {
        self.preserve.push(field);
        self
    }

    /// What the value becomes; a missing one counts as nothing at all.
    pub fn apply(&self, old: Option<&Json>) -> Result<Json> {
        let is_there =
            |old: &&Json| self.preserve.iter().any(|p| find(old.as_bytes(), p).is_some());
        // What would drop a field that is to stay is left undone.
        if members(self.patch.as_str()).is_none()
            && let Some(old) = old.filter(is_there)
        {
            return Ok(old.clone());
        }
        let kept: Vec<&[String]> = self.preserve.iter().map(FieldPath::names).collect();
        let merged = self.value(old.map(Json::as_str), self.patch.as_str(), &kept);
        Json::parse(merged.into_owned()).map_err(|error| Error::BadChange(error.to_string()))
    }

    fn value<'t>(&self, old: Option<&'t str>, new: &'t str, kept: &[&[String]]) -> Cow<'t, str> {
        let Some(patch) = members(new) else {
            return match (self.arrays, old.and_then(elements), elements(new)) {
                (Arrays::Append, Some(old), Some(new)) => Cow::Owned(array(old.iter().chain(&new))),
                (Arrays::Union, Some(old), Some(new)) => {
                    let mut known: HashSet<&str> = old.iter().copied().collect();
                    let added = new.iter().filter(|element| known.insert(element));
                    Cow::Owned(array(old.iter().chain(added)))
                }
                _ => Cow::Borrowed(new),
            };
        };
        let old_members = old.and_then(members).unwrap_or_default();
        let mut merged: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::with_capacity(old_members.len());
        for (name, value) in &old_members {
            let change = patch.iter().find(|(changed, _)| changed == name).map(|(_, new)| *new);
            let inside = below(kept, name);
            let stays = inside.iter().any(|path| path.is_empty());
            match change {
                None => merged.push((name.clone(), Cow::Borrowed(value))),
                Some(_) if stays => merged.push((name.clone(), Cow::Borrowed(value))),
                // What would drop a field that is to stay is left undone.
                Some(new) if !inside.is_empty() && !new.starts_with('{') => {
                    merged.push((name.clone(), Cow::Borrowed(value)));
                }
                Some("null") => {}
                Some(new) => merged.push((name.clone(), self.value(Some(value), new, &inside))),
            }
        }
        for (name, new) in &patch {
            let known = old_members.iter().any(|(old, _)| old == name);
            if !known && *new != "null" {
                merged.push((name.clone(), self.value(None, new, &[])));
            }
        }
        Cow::Owned(object(merged.iter().map(|(name, value)| (&**name, &**value))))
    }
}

/// The rest of the paths that lead into a member.
fn below<'p>(paths: &[&'p [String]], name: &str) -> Vec<&'p [String]> {
    let into = paths.iter().filter_map(|path| path.split_first());
    into.filter(|(first, _)| *first == name).map(|(_, rest)| rest).collect()
}

fn array<'e>(elements: impl Iterator<Item = &'e &'e str>) -> String {
    let elements: Vec<&str> = elements.copied().collect();
    format!("[{}]", elements.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(old: &str, merge: Merge) -> String {
        let old = Json::parse(old.to_owned()).unwrap();
        merge.apply(Some(&old)).unwrap().to_string()
    }

    fn patch(text: &str) -> Merge {
        Merge::new(Json::parse(text.to_owned()).unwrap())
    }

    /// It takes minutes if every element is compared with every other one.
    #[test]
    fn a_union_of_long_arrays_takes_no_longer_than_reading_them() {
        let numbers = |range: std::ops::Range<usize>| {
            let numbers: Vec<String> = range.map(|n| n.to_string()).collect();
            format!("[{}]", numbers.join(","))
        };
        let union = patch(&numbers(50_000..200_000)).arrays(Arrays::Union);
        assert_eq!(merged(&numbers(0..100_000), union), numbers(0..200_000));
    }

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn the_examples_of_the_standard_hold() {
        for (old, change, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merged(old, patch(change)), result, "{old} + {change}");
        }
    }

    #[test]
    fn arrays_are_appended_or_united_on_request() {
        let old = r#"{"t":[1,2],"u":{"v":["a"]}}"#;
        let change = r#"{"t":[2,3,3],"u":{"v":["a"]}}"#;
        assert_eq!(
            merged(old, patch(change).arrays(Arrays::Append)),
            r#"{"t":[1,2,2,3,3],"u":{"v":["a","a"]}}"#
        );
        assert_eq!(
            merged(old, patch(change).arrays(Arrays::Union)),
            r#"{"t":[1,2,3],"u":{"v":["a"]}}"#
        );
    }

    #[test]
    fn preserved_fields_stay_if_they_are_there() {
        let keep = |text: &str| text.parse::<FieldPath>().unwrap();
        let old = r#"{"a":1,"b":{"c":2,"d":3}}"#;
        let change = r#"{"a":9,"b":{"c":9,"d":9},"e":9}"#;
        let merge = patch(change).preserve(keep("a")).preserve(keep("b.c")).preserve(keep("e"));
        assert_eq!(merged(old, merge), r#"{"a":1,"b":{"c":2,"d":9},"e":9}"#);
        let merge = patch(r#"{"a":null}"#).preserve(keep("a"));
        assert_eq!(merged(old, merge), old);
    }

    #[test]
    fn preserved_fields_stay_whatever_the_patch_is() {
        let keep = |text: &str| text.parse::<FieldPath>().unwrap();
        for change in ["5", "null", "[]"] {
            let merge = patch(change).preserve(keep("a.b")).preserve(keep("c"));
            assert_eq!(merged(r#"{"a":{"b":1}}"#, merge.clone()), r#"{"a":{"b":1}}"#, "{change}");
            assert_eq!(merged(r#"{"a":1}"#, merge.clone()), change);
            assert_eq!(merged("7", merge), change);
        }
    }

    #[test]
    fn digits_survive() {
        let old = r#"{"n":12345678901234567890123456789,"m":1.10}"#;
        assert_eq!(
            merged(old, patch(r#"{"k":0.100}"#)),
            r#"{"n":12345678901234567890123456789,"m":1.10,"k":0.100}"#
        );
    }
}
