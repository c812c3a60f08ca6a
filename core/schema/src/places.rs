//! Where a schema file says what only a store can judge.

use std::collections::BTreeMap;

use crate::problem::Place;

/// A declaration whose place is remembered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Declared {
    /// A key of a space: `key`, `ttl`, `value_bytes_max`.
    Space(String, &'static str),
    /// An index of a space.
    Index(String, String),
    /// The root of a lock tree.
    Root(String),
    /// The URL of a store.
    Url(String),
    /// The coordinator of a store.
    Coordinator(String),
}

/// The places of declarations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(BTreeMap<Declared, Place>);

impl Places {
    pub fn insert(&mut self, declared: Declared, place: Place) {
        self.0.insert(declared, place);
    }

    /// Where something is declared; nowhere, if it stands for what is left out.
    pub fn of(&self, declared: &Declared) -> Option<&Place> {
        self.0.get(declared)
    }
}
