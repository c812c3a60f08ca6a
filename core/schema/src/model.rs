//! What a schema says, as types that cannot say anything else.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use keyward_key::Pattern;
use serde::{Deserialize, Serialize};

use crate::ValueSchema;
use crate::places::Places;

/// Everything that one schema file declares. Made by [`Schema::load`](crate::Schema::load) and
/// [`Schema::parse`](crate::Schema::parse), which refuse what does not fit together.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The stores, by name.
    pub stores: Vec<StoreDeclaration>,
    /// The spaces, in the order of the file.
    pub spaces: Vec<Space>,
    /// The lock trees, in the order of the file.
    pub locks: Vec<LockTree>,
    /// Where in the file it says what a store may refuse.
    pub(crate) places: Places,
    /// The text of the file.
    pub(crate) text: Arc<str>,
}

impl Schema {
    /// The space with this name.
    pub fn space(&self, name: &str) -> Option<&Space> {
        self.spaces.iter().find(|space| space.name == name)
    }

    /// The store with this name.
    pub fn store(&self, name: &str) -> Option<&StoreDeclaration> {
        self.stores.iter().find(|store| store.name == name)
    }

    /// The spaces that live in a store.
    pub fn spaces_of<'s>(&'s self, store: &'s str) -> impl Iterator<Item = &'s Space> {
        self.spaces.iter().filter(move |space| space.store == store)
    }
}

/// A store: a name for one keyspace on one engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreDeclaration {
    /// Its name.
    pub name: String,
    /// Where it is, as a URL; it may be left to those who open the schema.
    pub url: Option<String>,
    /// The URL of the store that keeps the promises which this one's engine cannot, such as locks and versions.
    pub coordinator: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// A space: one key pattern of a store, and what is true of everything that is kept there.
#[derive(Debug, Clone)]
pub struct Space {
    /// Its name.
    pub name: String,
    /// The store it lives in.
    pub store: String,
    /// The shape of its keys.
    pub key: Pattern,
    /// Who owns its records.
    pub ownership: Ownership,
    /// What values look like; anything, if nothing is said.
    pub value: Option<ValueSchema>,
    /// How long records live when nothing else is said.
    pub lifetime: Option<Lifetime>,
    /// The largest value, in bytes.
    pub value_bytes_max: Option<usize>,
    /// How many versions of each record are kept, the current one included.
    pub history: Option<NonZeroUsize>,
    /// Who may read, besides the owner rule; everybody, if empty.
    pub read_roles: Vec<String>,
    /// Who may write, besides the owner rule; everybody, if empty.
    pub write_roles: Vec<String>,
    /// Its secondary indexes.
    pub indexes: Vec<Index>,
    /// How it is read, as its users say: for the documentation, and for the lint that looks for
    /// indexes that are missing.
    pub queries: Vec<DeclaredQuery>,
    /// What it is for.
    pub description: Option<String>,
}

impl Space {
    /// The index with this name.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }
}

/// Who owns the records of a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// The user in the key: nobody else sees or changes them.
    User {
        /// The pattern's variable that holds the user's id. Always the first variable, so that what
        /// a user owns is one range of keys.
        owner: String,
    },
    /// Nobody in particular.
    Shared,
    /// The user in the key changes them; others find them through shared indexes, and see the fields
    /// that are shared.
    Hybrid {
        /// The pattern's variable that holds the user's id; always the first.
        owner: String,
        /// What others see.
        share: Share,
    },
}

impl Ownership {
    /// The variable that holds the owner, if there is one.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::User { owner } | Self::Hybrid { owner, .. } => Some(owner),
            Self::Shared => None,
        }
    }
}

/// What of a hybrid space's records those see who do not own them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// The whole value.
    Everything,
    /// These fields.
    Fields(Vec<FieldPath>),
}

impl Share {
    /// Whether others see a field.
    pub fn includes(&self, field: &FieldPath) -> bool {
        match self {
            Self::Everything => true,
            Self::Fields(shared) => {
                shared.iter().any(|shared| field.names().starts_with(shared.names()))
            }
        }
    }
}

/// How long records live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// From the last write, and with `sliding` from the last read.
    pub ttl: Duration,
    /// Whether reading a record that is past half of its life begins its life anew.
    pub sliding: bool,
}

/// A secondary index. Entries live at `index:{name}:{values…}:{primary key…}`, unique ones at
/// `index:{name}:{values…}` with the primary key as their value. With [`Scope::Owner`] the owner
/// stands before the values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Its name: one of a kind in its store.
    pub name: String,
    /// Whether each owner has entries apart.
    pub scope: Scope,
    /// What is indexed.
    pub kind: IndexKind,
}

impl Index {
    /// Whether no two records may have the same entry.
    pub fn is_unique(&self) -> bool {
        matches!(self.kind, IndexKind::Values { unique: true, .. })
    }

    /// The fields it is over.
    pub fn fields(&self) -> Vec<&FieldPath> {
        match &self.kind {
            IndexKind::Values { parts, .. } => parts.iter().map(|part| &part.field).collect(),
            IndexKind::Geohash { lat, lon, .. } => vec![lat, lon],
        }
    }
}

/// Whose entries stand together in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Each owner's apart: a query sees one owner's records, and unique means unique for the owner.
    Owner,
    /// Everybody's together: a query of a hybrid space sees everybody's records, and unique means
    /// unique in the store.
    Shared,
}

/// What an index holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum IndexKind {
    /// The values of fields, in order. A record that lacks one of the fields (or has null there) has
    /// no entry.
    Values {
        /// The fields, at least one.
        parts: Vec<Part>,
        /// Whether no two records may have the same values.
        unique: bool,
    },
    /// The geohash of a place.
    Geohash {
        /// The field with the latitude in degrees.
        lat: FieldPath,
        /// The field with the longitude in degrees.
        lon: FieldPath,
        /// How many characters entries have: 1 to 12.
        precision: u8,
    },
}

/// One field of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The field.
    pub field: FieldPath,
    /// What its values are, which decides their order.
    pub kind: ValueKind,
    /// Whether the field holds an array, each element of which is indexed. At most one part of an
    /// index does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multi: bool,
}

/// What the values of an indexed field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// Text, in the order of its bytes.
    Text,
    /// Text in lower case, for names and addresses whose case does not matter.
    Folded,
    /// Whole numbers of 64 bits.
    Integer,
    /// Numbers, as precise as a double is.
    Number,
    /// Moments, as RFC 3339 text.
    Time,
    /// `false` before `true`.
    Bool,
}

/// A field of a JSON object, or of objects inside it: `address.city`. Names with a dot cannot be
/// said.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// How deep a path may go.
    pub const DEPTH_MAX: usize = 16;

    /// The names, from the outermost in.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// A text that names no field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no field: write names with dots between them, at most {max} deep, as in address.city", max = FieldPath::DEPTH_MAX)]
pub struct FieldPathError(String);

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(text: &str) -> Result<Self, FieldPathError> {
        let names: Vec<String> = text.split('.').map(str::to_owned).collect();
        if names.len() > Self::DEPTH_MAX || names.iter().any(String::is_empty) {
            return Err(FieldPathError(text.to_owned()));
        }
        Ok(Self(names))
    }
}

impl TryFrom<String> for FieldPath {
    type Error = FieldPathError;

    fn try_from(text: String) -> Result<Self, FieldPathError> {
        text.parse()
    }
}

impl From<FieldPath> for String {
    fn from(path: FieldPath) -> Self {
        path.to_string()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// A question that the users of a space ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredQuery {
    /// What it is called.
    pub name: String,
    /// The fields or key variables it is about, in order.
    pub by: Vec<FieldPath>,
    /// Whether it asks for one owner's records or for everybody's.
    pub scope: Scope,
}

/// The paths that can be locked below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockTree {
    /// Its name.
    pub name: String,
    /// The store it lives in.
    pub store: String,
    /// The shape of its roots: `{page}`.
    pub root: Pattern,
    /// First segments that are no roots of this tree, although the shape fits them.
    pub not_roots: Vec<String>,
    /// The paths below a root, coarse ones before the finer ones inside them: `policies`,
    /// `policies:{source}[:{language}]`. Each one's parent is the root or another path.
    pub paths: Vec<Pattern>,
    /// Words that stand for the first word of a path, in names of what lies below it: with `policy`
    /// for `policies`, the path `policies:7` is called `policy:7`.
    pub aliases: BTreeMap<String, String>,
}
