//! Changes of records as lines of JSON.
//!
//! ```text
//! {"op":"put","key":"user:ada:notes:n1","value":{"title":"Keys"},"metadata":{"by":"me"},"ttl":"7d"}
//! {"op":"create","key":"user:ada:notes:n2","value":{"title":"Locks"}}
//! {"op":"merge","key":"user:ada:notes:n1","value":{"done":true},"if_match":"17"}
//! {"op":"delete","key":"user:ada:notes:n3"}
//! ```

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::BufRead;
use std::mem;

use keyward::records::{Draft, Merge, Operation, Precondition, Ttl};
use keyward::{Code, Json, Key, Limits};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::written::if_match;
use crate::batch::read_line;
use crate::failure::{Failure, Result};
use crate::line::not_an_entry;
use crate::ttl;

/// A change, and the line it came from.
#[derive(Debug, Clone)]
pub struct Numbered {
    /// The line's number, from one.
    pub line: u64,
    pub operation: Operation,
}

impl Numbered {
    /// The record it is about.
    pub fn key(&self) -> &Key {
        match &self.operation {
            Operation::Put(key, _) | Operation::Merge(key, ..) | Operation::Delete(key, _) => key,
        }
    }

    /// What must be so for it.
    pub fn expected(&self) -> &Precondition {
        match &self.operation {
            Operation::Put(_, draft) => &draft.expect,
            Operation::Merge(_, _, expect) | Operation::Delete(_, expect) => expect,
        }
    }

    /// What it counts in a commit.
    fn bytes(&self) -> usize {
        let value = match &self.operation {
            Operation::Put(_, draft) => {
                draft.value.len() + draft.metadata.as_ref().map_or(0, Json::len)
            }
            Operation::Merge(_, merge, _) => merge.patch.len(),
            Operation::Delete(..) => 0,
        };
        2 * self.key().as_bytes().len() + value
    }
}

/// How many changes are made at once.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    operations_max: usize,
    bytes_max: usize,
    line_bytes_max: usize,
    /// Whether everything is one piece, or nothing is done.
    whole: bool,
}

impl Size {
    /// Pieces that most likely fit a commit together with their index entries.
    pub fn pieces(limits: &Limits) -> Self {
        let whole = Self::whole(limits);
        let operations_max = whole.operations_max.min(100);
        Self { operations_max, bytes_max: whole.bytes_max.min(1 << 20), whole: false, ..whole }
    }

    /// Everything in one commit.
    pub fn whole(limits: &Limits) -> Self {
        // A line may hold white space and escapes that the store does not count.
        let change_bytes_max =
            limits.value_bytes_max + limits.metadata_bytes_max + 6 * limits.key_bytes_max;
        Self {
            operations_max: limits.commit_keys_max,
            bytes_max: limits.commit_bytes_max,
            line_bytes_max: change_bytes_max.saturating_mul(2),
            whole: true,
        }
    }
}

/// Reads lines to the end, and hands over pieces; stops early when one is refused by giving `false`.
/// What stands before a line that is no change is handed over first, unless everything is one piece;
/// then the line is told as a failure.
pub fn read(
    mut input: impl BufRead,
    size: Size,
    mut take: impl FnMut(Vec<Numbered>) -> bool,
) -> Result {
    let mut piece: Vec<Numbered> = Vec::new();
    let mut keys: HashSet<Key> = HashSet::new();
    let mut bytes = 0;
    let mut text = Vec::new();
    for number in 1.. {
        text.clear();
        let operation = match read_line(&mut input, size.line_bytes_max, &mut text) {
            Ok(None) => break,
            Ok(Some(_)) => match text.trim_ascii() {
                [] => continue,
                text => operation(text),
            },
            Err(failure) => Err(failure),
        };
        let next = match operation {
            Ok(operation) => Numbered { line: number, operation },
            Err(failure) => {
                if !size.whole {
                    take(piece);
                }
                return Err(failure.at(format_args!("line {number}")));
            }
        };
        let full = piece.len() >= size.operations_max || bytes + next.bytes() > size.bytes_max;
        if full && size.whole {
            let message = "these are more changes than one commit takes";
            return Err(Failure::new(Code::LimitExceeded, message)
                .at(format_args!("line {number}"))
                .hint("Nothing was done. Split them, or leave --together out."));
        }
        // A record changes once in a commit; the later line must come after the earlier one.
        let again = !size.whole && keys.contains(next.key());
        if (full || again) && !piece.is_empty() {
            keys.clear();
            bytes = 0;
            if !take(mem::take(&mut piece)) {
                return Ok(());
            }
        }
        bytes += next.bytes();
        keys.insert(next.key().clone());
        piece.push(next);
    }
    take(piece);
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Put,
    Create,
    Merge,
    Delete,
}

/// The fields of a line. A field that nobody knows is refused rather than dropped in silence.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<'l> {
    op: Op,
    #[serde(borrow)]
    key: Cow<'l, str>,
    #[serde(borrow, default)]
    value: Option<&'l RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'l RawValue>,
    #[serde(borrow, default)]
    ttl: Option<Cow<'l, str>>,
    #[serde(borrow, default)]
    if_match: Option<Cow<'l, str>>,
}

fn operation(line: &[u8]) -> Result<Operation> {
    let wire: Wire<'_> = serde_json::from_slice(line)
        .map_err(|error| Failure::invalid(not_an_entry(&error).to_string()))?;
    let key =
        Key::parse(&wire.key).map_err(|error| Failure::invalid(format!("the key {error}")))?;
    let is_put = matches!(wire.op, Op::Put | Op::Create);
    for (name, there, allowed) in [
        ("value", wire.value.is_some(), !matches!(wire.op, Op::Delete)),
        ("metadata", wire.metadata.is_some(), is_put),
        ("ttl", wire.ttl.is_some(), is_put),
        ("if_match", wire.if_match.is_some(), !matches!(wire.op, Op::Create)),
    ] {
        if there && !allowed {
            return Err(Failure::invalid(format!("{name} has no meaning with this op")));
        }
    }
    let json = |what: &str, raw: &RawValue| {
        let parsed = Json::parse(raw.get().to_owned());
        parsed.map_err(|error| Failure::invalid(format!("the {what} is {error} of it")))
    };
    let value = || match wire.value {
        Some(value) => json("value", value),
        None => Err(Failure::invalid("there is no value")),
    };
    let expect = match wire.op {
        Op::Create => Precondition::Absent,
        _ => if_match(wire.if_match.as_deref()),
    };
    Ok(match wire.op {
        Op::Delete => Operation::Delete(key, expect),
        Op::Merge => Operation::Merge(key, Merge::new(value()?), expect),
        Op::Put | Op::Create => {
            let ttl = match wire.ttl.as_deref() {
                None => Ttl::Declared,
                Some("never") => Ttl::Never,
                Some(text) => Ttl::After(
                    ttl::parse(text)
                        .map_err(|error| Failure::invalid(format!("ttl is {text:?}: {error}")))?,
                ),
            };
            let metadata = wire.metadata.map(|raw| json("metadata", raw)).transpose()?;
            Operation::Put(key, Draft { value: value()?, metadata, ttl, expect })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size =
        Size { operations_max: 2, bytes_max: 100, line_bytes_max: 200, whole: false };

    fn pieces(input: &str, size: Size) -> (Vec<Vec<u64>>, Result) {
        let mut pieces = Vec::new();
        let result = read(input.as_bytes(), size, |piece| {
            pieces.push(piece.iter().map(|one| one.line).collect());
            true
        });
        (pieces, result)
    }

    fn deletes(keys: &[&str]) -> String {
        keys.iter().map(|key| format!("{{\"op\":\"delete\",\"key\":\"{key}\"}}\n")).collect()
    }

    #[test]
    fn pieces_have_no_record_twice_and_no_more_than_they_may() {
        let (found, result) = pieces(&deletes(&["a", "b", "c", "c"]), SIZE);
        assert_eq!(found, [vec![1, 2], vec![3], vec![4]]);
        assert!(result.is_ok());
    }

    #[test]
    fn everything_at_once_is_one_piece_or_none() {
        let whole = Size { whole: true, ..SIZE };
        assert_eq!(pieces(&deletes(&["a", "b"]), whole).0, [vec![1, 2]]);
        for input in [deletes(&["a", "b", "c"]), deletes(&["a", "b%"])] {
            let (found, result) = pieces(&input, whole);
            assert!(found.is_empty() && result.is_err(), "{input}");
        }
    }

    #[test]
    fn what_stands_before_a_bad_line_is_handed_over() {
        for bad in [
            "{}",
            r#"{"op":"put","key":"a"}"#,
            r#"{"op":"drop","key":"a"}"#,
            r#"{"op":"delete","key":"a","value":1}"#,
            r#"{"op":"create","key":"a","value":1,"if_match":"3"}"#,
            r#"{"op":"merge","key":"a","value":1,"ttl":"1h"}"#,
            r#"{"op":"put","key":"a","value":1,"ttl":"soon"}"#,
            r#"{"op":"put","key":"a","value":1,"vlaue":1}"#,
        ] {
            let (found, result) = pieces(&format!("{}\n{bad}\n", deletes(&["x"])), SIZE);
            assert_eq!(found, [[1]], "{bad}");
            let mut told = Vec::new();
            result.unwrap_err().tell(&mut told, false).unwrap();
            assert!(told.starts_with(b"error: line 3: "), "{bad}");
        }
    }
}
