//! What a migration is to do.

use std::collections::BTreeMap;
use std::fmt;

use keyward_schema::Index;
use serde::{Deserialize, Serialize};

/// What a migration is to do: written down in the store, so that whoever runs the same again goes on
/// where it stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Definition {
    /// Make an index, while others write.
    AddIndex {
        /// The space.
        space: String,
        /// The index.
        index: Index,
    },
    /// Make an index of the entries that another program keeps in its place, each with a bare id.
    AdoptIndex {
        /// The space.
        space: String,
        /// The index.
        index: Index,
        /// Whether entries that do not fit their records are moved below `system:set-aside`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        set_aside: bool,
    },
    /// Remove an index's entries, and forget it.
    DropIndex {
        /// The space.
        space: String,
        /// The index's name.
        index: String,
    },
    /// Remove an index's entries, and make it anew.
    RebuildIndex {
        /// The space.
        space: String,
        /// The index, as it shall be.
        index: Index,
    },
    /// Give every record of a space's former pattern the key that its pattern says now.
    Rekey {
        /// The space.
        space: String,
        /// The former pattern.
        from: String,
        /// The pattern now.
        to: String,
        /// Where the value of each variable of the new key comes from; from the variable with the
        /// same name, if nothing is said.
        sources: BTreeMap<String, Source>,
    },
    /// Change the values of a space's records.
    Transform {
        /// The space.
        space: String,
        /// How, in words: the same words mean the same change.
        change: String,
    },
}

/// Where the value of a variable of a new key comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// From this variable of the old key.
    Variable(String),
    /// From this field of the value.
    Field(String),
}

impl From<&keyward_schema::Source> for Source {
    fn from(source: &keyward_schema::Source) -> Self {
        match source {
            keyward_schema::Source::Variable(name) => Self::Variable(name.clone()),
            keyward_schema::Source::Field(name) => Self::Field(name.clone()),
        }
    }
}

impl Definition {
    /// The short name of what is done.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::AddIndex { .. } => "add-index",
            Self::AdoptIndex { .. } => "adopt-index",
            Self::DropIndex { .. } => "drop-index",
            Self::RebuildIndex { .. } => "rebuild-index",
            Self::Rekey { .. } => "rekey",
            Self::Transform { .. } => "transform",
        }
    }

    /// The space it is about.
    pub fn space(&self) -> &str {
        match self {
            Self::AddIndex { space, .. }
            | Self::AdoptIndex { space, .. }
            | Self::DropIndex { space, .. }
            | Self::RebuildIndex { space, .. }
            | Self::Rekey { space, .. }
            | Self::Transform { space, .. } => space,
        }
    }

    /// The name of the index it is about.
    pub fn index(&self) -> Option<&str> {
        match self {
            Self::AddIndex { index, .. }
            | Self::AdoptIndex { index, .. }
            | Self::RebuildIndex { index, .. } => Some(&index.name),
            Self::DropIndex { index, .. } => Some(index),
            Self::Rekey { .. } | Self::Transform { .. } => None,
        }
    }

    /// Whether both come to the same: a rebuild that has removed the old entries is an index to add.
    pub(crate) fn is_same_work(&self, other: &Self) -> bool {
        match (self.made(), other.made()) {
            (Some(one), Some(other)) => one == other,
            _ => self == other,
        }
    }

    fn made(&self) -> Option<(&str, &Index)> {
        match self {
            Self::AddIndex { space, index }
            | Self::AdoptIndex { space, index, .. }
            | Self::RebuildIndex { space, index } => Some((space, index)),
            _ => None,
        }
    }

    /// The same; if it adopts an index, entries that do not fit are moved aside.
    #[must_use]
    pub fn setting_aside(self) -> Self {
        match self {
            Self::AdoptIndex { space, index, .. } => {
                Self::AdoptIndex { space, index, set_aside: true }
            }
            other => other,
        }
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddIndex { space, index } => write!(f, "add the index {} to {space}", index.name),
            Self::AdoptIndex { space, index, .. } => {
                write!(f, "adopt the index {} of {space}", index.name)
            }
            Self::DropIndex { space, index } => write!(f, "drop the index {index} of {space}"),
            Self::RebuildIndex { space, index } => {
                write!(f, "rebuild the index {} of {space}", index.name)
            }
            Self::Rekey { space, from, to, .. } => write!(f, "move {space} from {from} to {to}"),
            Self::Transform { space, change } => {
                write!(f, "change the values of {space}: {change}")
            }
        }
    }
}
