//! Whether what a schema declares fits into a store.

use std::time::Duration;

use crate::problem::{Problem, Problems, Severity};
use crate::shape::Shape;
use crate::{Index, IndexKind, Part, Schema, Scope, Space, ValueKind};

/// What a store can take, as far as a schema depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// The longest key, encoded.
    pub key_bytes_max: usize,
    /// The largest value.
    pub value_bytes_max: usize,
    /// The shortest time to live; nothing, if entries cannot expire.
    pub ttl_min: Option<Duration>,
}

/// Keys that leave less than this for their variables are warned of.
const ROOM_BYTES_MIN: usize = 64;

impl Schema {
    /// What of a store's spaces does not fit into a store with these limits. Keys and index entries
    /// are counted at their shortest: every variable one byte, every number and time its fixed
    /// width. What is told here can therefore never be written; what is not told may still be too
    /// long, with long values. The problems have no place in a file; they name their space.
    pub fn check_limits(&self, store: &str, limits: &StoreLimits) -> Problems {
        let mut problems = Vec::new();
        if self.store(store).is_none() {
            problems.push(Problem::placeless(
                "unknown-store",
                Severity::Error,
                format!("there is no store {store:?}"),
                "name a store that the schema declares".to_owned(),
            ));
        }
        for space in self.spaces_of(store) {
            check_space(space, limits, &mut problems);
        }
        for tree in self.locks.iter().filter(|tree| tree.store == store) {
            let who = format!("the roots of the lock tree {}", tree.name);
            let root = Shape::of(&tree.root);
            let least = Least { bytes: root.bytes_min(), varies: root.texts_min() > 0 };
            check_key(&who, least, limits, &mut problems);
        }
        Problems::new(problems)
    }
}

fn check_space(space: &Space, limits: &StoreLimits, problems: &mut Vec<Problem>) {
    let shape = Shape::of(&space.key);
    let least = Least { bytes: shape.bytes_min(), varies: shape.texts_min() > 0 };
    check_key(&format!("the keys of the space {}", space.name), least, limits, problems);
    for index in &space.indexes {
        let who = format!("the entries of the index {} of {}", index.name, space.name);
        check_key(&who, entry(index, least), limits, problems);
    }
    if let Some(max) = space.value_bytes_max.filter(|&max| max > limits.value_bytes_max) {
        let message = format!(
            "the space {} allows values of {max} bytes, and the store takes {}",
            space.name, limits.value_bytes_max
        );
        let hint = format!("set value_bytes_max to {} or less", limits.value_bytes_max);
        problems.push(Problem::placeless("value-too-large", Severity::Error, message, hint));
    }
    match (space.lifetime, limits.ttl_min) {
        (Some(_), None) => problems.push(Problem::placeless(
            "ttl-unsupported",
            Severity::Error,
            format!("records of {} shall expire, and entries of this store cannot", space.name),
            "leave ttl out, or use another engine".to_owned(),
        )),
        (Some(lifetime), Some(min)) if lifetime.ttl < min => problems.push(Problem::placeless(
            "ttl-too-short",
            Severity::Error,
            format!(
                "records of {} live {:?}, and {min:?} is the least here",
                space.name, lifetime.ttl
            ),
            format!("set ttl to {} seconds or more", min.as_secs_f64().ceil()),
        )),
        _ => {}
    }
}

/// How short a key can be.
#[derive(Clone, Copy)]
struct Least {
    bytes: usize,
    /// Whether text of any length is part of it.
    varies: bool,
}

/// The shortest entry of an index whose records have keys like `key`.
fn entry(index: &Index, key: Least) -> Least {
    const SEPARATOR: usize = 1;
    let owner = match index.scope {
        Scope::Owner => SEPARATOR + 1,
        Scope::Shared => 0,
    };
    let (values, text) = match &index.kind {
        IndexKind::Values { parts, .. } => (
            parts.iter().map(|part| SEPARATOR + part_bytes_min(part)).sum(),
            parts.iter().any(|part| matches!(part.kind, ValueKind::Text | ValueKind::Folded)),
        ),
        IndexKind::Geohash { precision, .. } => (SEPARATOR + usize::from(*precision), false),
    };
    let before_key = "index".len() + SEPARATOR + index.name.len() + owner + values;
    if index.is_unique() {
        Least { bytes: before_key, varies: text || owner > 0 }
    } else {
        Least { bytes: before_key + SEPARATOR + key.bytes, varies: text || key.varies }
    }
}

fn part_bytes_min(part: &Part) -> usize {
    match part.kind {
        ValueKind::Text | ValueKind::Folded => 0,
        ValueKind::Integer | ValueKind::Number | ValueKind::Time | ValueKind::Bool => 1,
    }
}

fn check_key(who: &str, least: Least, limits: &StoreLimits, problems: &mut Vec<Problem>) {
    let Least { bytes, varies } = least;
    let max = limits.key_bytes_max;
    let hint = "shorten the literals and names, or use an engine that takes longer keys".to_owned();
    if bytes > max {
        let message = format!("{who} have at least {bytes} bytes, and the store takes {max}");
        problems.push(Problem::placeless("key-too-long", Severity::Error, message, hint));
    } else if varies && max - bytes < ROOM_BYTES_MIN {
        let message = format!(
            "{who} have at least {bytes} of {max} bytes, which leaves {} for longer values",
            max - bytes
        );
        problems.push(Problem::placeless("key-room", Severity::Warning, message, hint));
    }
}
