//! What changes between two schemas, and what that means for a store that has data.

mod key;
mod space;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::url::without_secrets;
use crate::{LockTree, Schema, StoreDeclaration};

/// The changes from one schema to another. Descriptions and declared queries mean nothing to a
/// store and are left out. `Display` is for terminals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The changes: stores, then spaces, then locks, each in the order of the new schema, what is
    /// gone last.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What it is a change of: `space notes`.
    pub subject: String,
    /// What changes.
    pub message: String,
    /// What that means.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What a change means for a store that has data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing: what is stored fits the new schema.
    Compatible,
    /// What is stored fits after a migration.
    NeedsMigration {
        /// Which.
        migration: Migration,
    },
    /// What is stored does not fit, and no migration makes it fit by itself.
    Incompatible {
        /// Why not.
        why: String,
    },
    /// The schemas do not say whether what is stored fits.
    CannotTell {
        /// What to find out.
        why: String,
    },
}

/// Something that is done to a store so that it fits a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Migration {
    /// Write the entries of a new index.
    AddIndex {
        /// The space.
        space: String,
        /// The index.
        index: String,
    },
    /// Delete the entries of an index that is gone.
    DropIndex {
        /// The space.
        space: String,
        /// The index.
        index: String,
    },
    /// Delete the entries of an index and write them anew.
    RebuildIndex {
        /// The space.
        space: String,
        /// The index.
        index: String,
    },
    /// Write every record under a new key.
    Rekey {
        /// The space.
        space: String,
        /// The old pattern.
        from: String,
        /// The new pattern.
        to: String,
        /// Where the value of each variable of the new pattern comes from.
        sources: BTreeMap<String, Source>,
    },
    /// Write every record under a key that differs in one literal segment.
    RenameSegment {
        /// The space.
        space: String,
        /// The old literal.
        from: String,
        /// The new literal.
        to: String,
    },
    /// Look at every value, and change those that do not fit the space's new schema.
    TransformValues {
        /// The space.
        space: String,
    },
    /// Copy a store to another place. Passwords are left out of both.
    CopyStore {
        /// The store.
        store: String,
        /// Where it was.
        from: String,
        /// Where it shall be.
        to: String,
    },
}

/// Where the value of a key's variable comes from when records are written under new keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// From this variable of the old key.
    Variable(String),
    /// From this field of the value.
    Field(String),
}

impl Diff {
    /// Whether a store that fits the old schema certainly fits the new one.
    pub fn is_compatible(&self) -> bool {
        self.changes.iter().all(|change| change.verdict == Verdict::Compatible)
    }

    /// The migrations that are needed, each once.
    pub fn migrations(&self) -> Vec<&Migration> {
        let mut migrations: Vec<&Migration> = Vec::new();
        for change in &self.changes {
            if let Verdict::NeedsMigration { migration } = &change.verdict
                && !migrations.contains(&migration)
            {
                migrations.push(migration);
            }
        }
        migrations
    }
}

/// Compares two schemas.
pub fn diff(old: &Schema, new: &Schema) -> Diff {
    let mut changes = Vec::new();
    stores(old, new, &mut changes);
    space::compare_all(old, new, &mut changes);
    locks(old, new, &mut changes);
    Diff { changes }
}

impl Change {
    fn new(subject: impl Into<String>, message: impl Into<String>, verdict: Verdict) -> Self {
        Self { subject: subject.into(), message: message.into(), verdict }
    }
}

fn stores(old: &Schema, new: &Schema, changes: &mut Vec<Change>) {
    for store in &new.stores {
        let subject = format!("store {}", store.name);
        match old.store(&store.name) {
            None => changes.push(Change::new(subject, "new", Verdict::Compatible)),
            Some(before) => {
                changes.extend(coordinator(subject.clone(), before, store));
                changes.extend(place(subject, before, store));
            }
        }
    }
    for store in old.stores.iter().filter(|store| new.store(&store.name).is_none()) {
        let why = "what it holds stays where it is, and nothing knows it any more".to_owned();
        let verdict = Verdict::Incompatible { why };
        changes.push(Change::new(format!("store {}", store.name), "gone", verdict));
    }
}

fn place(subject: String, old: &StoreDeclaration, new: &StoreDeclaration) -> Option<Change> {
    if old.url == new.url {
        return None;
    }
    let shown = |url: &Option<String>| {
        url.as_deref().map_or("nowhere said".to_owned(), |url| without_secrets(url).into_owned())
    };
    let (from, to) = (shown(&old.url), shown(&new.url));
    let message = format!("at {to}, before {from}");
    let verdict = if old.url.is_some() && new.url.is_some() {
        let migration = Migration::CopyStore { store: new.name.clone(), from, to };
        Verdict::NeedsMigration { migration }
    } else {
        let why = "one of the schemas leaves the place to those who open the store: make sure that \
                   it is the same";
        Verdict::CannotTell { why: why.to_owned() }
    };
    Some(Change::new(subject, message, verdict))
}

fn coordinator(subject: String, old: &StoreDeclaration, new: &StoreDeclaration) -> Option<Change> {
    if old.coordinator == new.coordinator {
        return None;
    }
    let shown = |url: &Option<String>| {
        url.as_deref().map_or("none".to_owned(), |url| without_secrets(url).into_owned())
    };
    let message = format!(
        "the coordinator is {}, before {}",
        shown(&new.coordinator),
        shown(&old.coordinator)
    );
    // An empty coordinator takes over the values that are there, and nothing else.
    let why = "versions, entries that expire, locks, queues and indexes are in the old coordinator: stop all \
               processes, and copy it to the new place first";
    let verdict = match (&old.coordinator, &new.coordinator) {
        (Some(_), _) => Verdict::Incompatible { why: why.to_owned() },
        (None, _) => Verdict::Compatible,
    };
    Some(Change::new(subject, message, verdict))
}

fn locks(old: &Schema, new: &Schema, changes: &mut Vec<Change>) {
    let find = |schema: &Schema, name: &str| -> Option<LockTree> {
        schema.locks.iter().find(|tree| tree.name == name).cloned()
    };
    for tree in &new.locks {
        let subject = format!("lock tree {}", tree.name);
        let Some(before) = find(old, &tree.name) else {
            changes.push(Change::new(subject, "new", Verdict::Compatible));
            continue;
        };
        if (&before.store, &before.root) != (&tree.store, &tree.root) {
            let message = format!(
                "roots {} in {}, before {} in {}",
                tree.root, tree.store, before.root, before.store
            );
            let why = "processes with the old schema and with the new one do not keep each other \
                       out: stop the old ones first";
            let verdict = Verdict::Incompatible { why: why.to_owned() };
            changes.push(Change::new(subject.clone(), message, verdict));
        }
        for path in tree.paths.iter().filter(|path| !before.paths.contains(path)) {
            let message = format!("{path} can be locked");
            changes.push(Change::new(subject.clone(), message, Verdict::Compatible));
        }
        for path in before.paths.iter().filter(|path| !tree.paths.contains(path)) {
            let message = format!("{path} can be locked no more");
            changes.push(Change::new(subject.clone(), message, Verdict::Compatible));
        }
        if before.aliases != tree.aliases {
            let message = "other aliases: the same paths have other names";
            changes.push(Change::new(subject.clone(), message, Verdict::Compatible));
        }
    }
    for tree in old.locks.iter().filter(|tree| find(new, &tree.name).is_none()) {
        let subject = format!("lock tree {}", tree.name);
        changes.push(Change::new(subject, "gone", Verdict::Compatible));
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return f.write_str("no changes");
        }
        for change in &self.changes {
            writeln!(f, "{change}\n")?;
        }
        let counts = [
            ("compatible", self.count(|v| matches!(v, Verdict::Compatible))),
            ("need a migration", self.count(|v| matches!(v, Verdict::NeedsMigration { .. }))),
            ("incompatible", self.count(|v| matches!(v, Verdict::Incompatible { .. }))),
            ("not certain", self.count(|v| matches!(v, Verdict::CannotTell { .. }))),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        let total = self.changes.len();
        write!(f, "{total} change{}: {}", if total == 1 { "" } else { "s" }, counts.join(", "))
    }
}

impl Diff {
    fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.changes.iter().filter(|change| is(&change.verdict)).count()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  {}", self.subject, self.message, self.verdict)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compatible => f.write_str("compatible"),
            Self::NeedsMigration { migration } => write!(f, "needs a migration: {migration}"),
            Self::Incompatible { why } => write!(f, "incompatible: {why}"),
            Self::CannotTell { why } => write!(f, "cannot tell: {why}"),
        }
    }
}

impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddIndex { space, index } => write!(f, "add the index {index} of {space}"),
            Self::DropIndex { space, index } => write!(f, "drop the index {index} of {space}"),
            Self::RebuildIndex { space, index } => {
                write!(f, "rebuild the index {index} of {space}")
            }
            Self::Rekey { space, from, to, sources } => {
                write!(f, "write the records of {space} from {from} to {to}")?;
                for (variable, source) in sources {
                    match source {
                        Source::Variable(name) if name == variable => {}
                        Source::Variable(name) => write!(f, ", {{{variable}}} from {{{name}}}")?,
                        Source::Field(field) => {
                            write!(f, ", {{{variable}}} from the field {field}")?
                        }
                    }
                }
                Ok(())
            }
            Self::RenameSegment { space, from, to } => {
                write!(f, "rename the segment {from} in the keys of {space} to {to}")
            }
            Self::TransformValues { space } => {
                write!(f, "check the values of {space}, and change those that do not fit")
            }
            Self::CopyStore { store, from, to } => {
                write!(f, "copy the store {store} from {from} to {to}")
            }
        }
    }
}
