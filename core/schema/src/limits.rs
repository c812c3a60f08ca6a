//! Whether what a schema declares fits into a store.

use std::time::Duration;

use crate::places::{Declared, Places};
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
    /// What of a store's spaces does not fit into a store with these limits. Keys, index entries and
    /// earlier versions are counted at their shortest: every variable one byte, every number and time
    /// its fixed width. What is told here can therefore never be written; what is not told may still be too
    /// long, with long values. Each problem points at what declares it.
    pub fn check_limits(&self, store: &str, limits: &StoreLimits) -> Problems {
        let mut check = Check { places: &self.places, limits, problems: Vec::new() };
        if self.store(store).is_none() {
            check.problems.push(Problem::placeless(
                "unknown-store",
                Severity::Error,
                format!("there is no store {store:?}"),
                "name a store that the schema declares".to_owned(),
            ));
        }
        for space in self.spaces_of(store) {
            check.space(space);
        }
        for tree in self.locks.iter().filter(|tree| tree.store == store) {
            let who = format!("the roots of the lock tree {}", tree.name);
            let root = Shape::of(&tree.root);
            let least = Least { bytes: root.bytes_min(), varies: root.texts_min() > 0 };
            check.key(&who, least, &Declared::Root(tree.name.clone()));
        }
        Problems::new(check.problems)
    }

    /// The problem that a store's URL is none that can be opened, for this reason.
    pub fn unusable_url(&self, store: &str, reason: &str) -> Problem {
        let hint = "change the url; or leave it out, and give it when the store is opened";
        let message = format!("the store {store} cannot be opened: {reason}");
        let problem = Problem::placeless("store-url", Severity::Error, message, hint.to_owned());
        problem.at(self.places.of(&Declared::Url(store.to_owned())))
    }

    /// The problem that a store's coordinator cannot be one, for this reason.
    pub fn unusable_coordinator(&self, store: &str, reason: &str, hint: &str) -> Problem {
        let problem =
            Problem::placeless("coordinator", Severity::Error, reason.to_owned(), hint.to_owned());
        let of = |declared| self.places.of(&declared);
        let key = of(Declared::Coordinator(store.to_owned()));
        problem.at(key.or_else(|| of(Declared::Url(store.to_owned()))))
    }
}

/// A check that is under way.
struct Check<'s> {
    places: &'s Places,
    limits: &'s StoreLimits,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn tell(
        &mut self,
        code: &'static str,
        severity: Severity,
        at: &Declared,
        message: String,
        hint: String,
    ) {
        let problem = Problem::placeless(code, severity, message, hint);
        self.problems.push(problem.at(self.places.of(at)));
    }

    fn space(&mut self, space: &Space) {
        let shape = Shape::of(&space.key);
        let least = Least { bytes: shape.bytes_min(), varies: shape.texts_min() > 0 };
        let said = |key| Declared::Space(space.name.clone(), key);
        self.key(&format!("the keys of the space {}", space.name), least, &said("key"));
        if space.history.is_some() {
            let who = format!("the versions that the space {} keeps", space.name);
            self.key(&who, version(space, least), &said("history"));
        }
        for index in &space.indexes {
            let who = format!("the entries of the index {} of {}", index.name, space.name);
            let at = Declared::Index(space.name.clone(), index.name.clone());
            self.key(&who, entry(index, least), &at);
        }
        let bytes_max = self.limits.value_bytes_max;
        if let Some(max) = space.value_bytes_max.filter(|&max| max > bytes_max) {
            let message = format!(
                "the space {} allows values of {max} bytes, and the store takes {bytes_max}",
                space.name
            );
            let hint = format!("set value_bytes_max to {bytes_max} or less");
            let at = said("value_bytes_max");
            self.tell("value-too-large", Severity::Error, &at, message, hint);
        }
        match (space.lifetime, self.limits.ttl_min) {
            (Some(_), None) => self.tell(
                "ttl-unsupported",
                Severity::Error,
                &said("ttl"),
                format!("records of {} shall expire, and entries of this store cannot", space.name),
                "leave ttl out, or use another engine".to_owned(),
            ),
            (Some(lifetime), Some(min)) if lifetime.ttl < min => self.tell(
                "ttl-too-short",
                Severity::Error,
                &said("ttl"),
                format!(
                    "records of {} live {:?}, and {min:?} is the least here",
                    space.name, lifetime.ttl
                ),
                format!("set ttl to {} seconds or more", min.as_secs_f64().ceil()),
            ),
            _ => {}
        }
    }

    fn key(&mut self, who: &str, least: Least, at: &Declared) {
        let Least { bytes, varies } = least;
        let max = self.limits.key_bytes_max;
        let hint = "shorten the literals and names, or use an engine that takes longer keys";
        if bytes > max {
            let message = format!("{who} have at least {bytes} bytes, and the store takes {max}");
            self.tell("key-too-long", Severity::Error, at, message, hint.to_owned());
        } else if varies && max - bytes < ROOM_BYTES_MIN {
            let message = format!(
                "{who} have at least {bytes} of {max} bytes, which leaves {} for longer values",
                max - bytes
            );
            self.tell("key-room", Severity::Warning, at, message, hint.to_owned());
        }
    }
}

/// How short a key can be.
#[derive(Clone, Copy)]
struct Least {
    bytes: usize,
    /// Whether text of any length is part of it.
    varies: bool,
}

/// The shortest key of an earlier version of a record whose key is like `key`.
fn version(space: &Space, key: Least) -> Least {
    const DIGITS: usize = 20;
    let around = "system:history:".len() + space.name.len() + ":".len() + ":".len() + DIGITS;
    Least { bytes: around + key.bytes, ..key }
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
