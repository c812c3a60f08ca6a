//! What a store's indexes lack to be those of a schema.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use keyward_records::{CatalogContent, IndexState};
use keyward_schema::{Index, Space};

use crate::definition::Definition;

/// What a store's indexes lack to be those of a schema. A store may hold spaces of several schemas;
/// what is of a space that this one does not declare, is not its business.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Indexes to make, to go on making, or to make anew.
    pub build: Vec<Definition>,
    /// Indexes of declared spaces that the schema does not declare, or not any more. Programs with
    /// another schema may still ask them, so somebody has to say that they shall be dropped.
    pub undeclared: Vec<Definition>,
    /// Indexes of spaces that the schema does not declare; another one does, or none any more.
    pub foreign: Vec<Definition>,
    /// Declared indexes that cannot be made.
    pub taken: Vec<Taken>,
    /// Declared spaces whose indexes in the store are of other keys: nothing is planned for them.
    pub differing: Vec<Differing>,
}

/// A declared index whose name is that of an index of a space that the schema does not declare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The index's name.
    pub index: String,
    /// The space that declares it.
    pub space: String,
    /// The space that has it.
    pub holder: String,
}

/// A declared space that has other keys in the store: another schema has a space of that name, or its
/// records were not moved to the new keys yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// The space.
    pub space: String,
    /// The keys that the schema declares.
    pub declared: String,
    /// The keys of the records that the store's indexes are of.
    pub keys: String,
}

impl Differing {
    /// The space of the catalog that is not the declared one.
    pub(crate) fn find(space: &Space, catalog: &CatalogContent) -> Option<Self> {
        let keys = catalog.other_keys(space)?.to_owned();
        Some(Self { space: space.name.clone(), declared: space.key.to_string(), keys })
    }
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { space, declared, keys } = self;
        write!(
            f,
            "the store's indexes of the space {space} are of keys {keys}, and the schema says \
             {declared}: give the space another name if another schema has it, or first move its \
             records with keyward migrate rekey"
        )
    }
}

impl Plan {
    /// Whether the store has the indexes that the schema declares, and no others of its spaces.
    pub fn is_empty(&self) -> bool {
        self.build.is_empty()
            && self.undeclared.is_empty()
            && self.taken.is_empty()
            && self.differing.is_empty()
    }

    /// What drops an index by its name, unless the schema wants to keep it.
    pub fn drop(&self, index: &str) -> Option<&Definition> {
        let mut droppable = self.undeclared.iter().chain(&self.foreign);
        droppable.find(|definition| definition.index() == Some(index))
    }
}

/// What brings a store's indexes to what a schema declares.
pub fn plan<'s>(spaces: impl IntoIterator<Item = &'s Space>, catalog: &CatalogContent) -> Plan {
    let mut declared: BTreeMap<&str, (&str, &Index)> = BTreeMap::new();
    let mut known = BTreeSet::new();
    let mut plan = Plan::default();
    for space in spaces {
        if let Some(differing) = Differing::find(space, catalog) {
            plan.differing.push(differing);
            continue;
        }
        known.insert(space.name.as_str());
        declared.extend(space.indexes.iter().map(|i| (i.name.as_str(), (space.name.as_str(), i))));
    }
    for (name, listed) in &catalog.indexes {
        let drop = Definition::DropIndex { space: listed.space.clone(), index: name.clone() };
        if !known.contains(listed.space.as_str()) {
            plan.foreign.push(drop);
        } else if !declared.contains_key(name.as_str()) {
            plan.undeclared.push(drop);
        }
    }
    for (name, (space, index)) in declared {
        let (space, index) = (space.to_owned(), index.clone());
        match catalog.indexes.get(name) {
            None => plan.build.push(Definition::AddIndex { space, index }),
            Some(listed) if !known.contains(listed.space.as_str()) => {
                let holder = listed.space.clone();
                plan.taken.push(Taken { index: index.name, space, holder });
            }
            Some(listed) if listed.space != space || listed.definition != index => {
                plan.build.push(Definition::RebuildIndex { space, index });
            }
            Some(listed) => match listed.state {
                IndexState::Readable => {}
                IndexState::Building => plan.build.push(Definition::AddIndex { space, index }),
                IndexState::Disabled => plan.build.push(Definition::RebuildIndex { space, index }),
            },
        }
    }
    plan
}
