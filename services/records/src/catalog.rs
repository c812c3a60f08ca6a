//! Which indexes a store has, and what state they are in: one key of the store itself, since every
//! process that writes must keep the same indexes, whatever its schema file says.
//!
//! Where commits take several keys, every commit checks that the catalog is the one it was planned
//! with; so after an index was added, no writer is left that does not know of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Clock, Commit, Expect, Json, Put, Store, Tier, Version};
use keyward_key::Key;
use keyward_schema::{Index, Space};
use serde::{Deserialize, Serialize};

use crate::index::Layout;
use crate::{Error, Result};

/// The key of the catalog.
const SEGMENTS: [&str; 2] = ["system", "catalog"];
/// How often a change of the catalog is tried when others change it too.
const ATTEMPTS_MAX: usize = 32;

/// How old the catalog may be that a writer goes by, where commits cannot check it. Whoever adds an
/// index waits longer than this before reading what is there.
pub const CATALOG_AGE_MAX: Duration = Duration::from_secs(5);

/// What can be done with an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexState {
    /// Writers keep it, but what was there before is still being added. Not to be asked.
    Building,
    /// It has everything.
    Readable,
    /// Nobody keeps it, nobody asks it: its entries are being removed, or wait to be.
    Disabled,
}

/// An index as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogedIndex {
    /// The space it belongs to.
    pub space: String,
    /// How it is made: writers go by this, not by their schema file.
    pub definition: Index,
    /// What can be done with it.
    pub state: IndexState,
}

/// All indexes of a store, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CatalogContent {
    /// The indexes.
    pub indexes: BTreeMap<String, CatalogedIndex>,
    /// Those that were there from the start: nobody has written records who did not know of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub original: BTreeSet<String>,
    /// The key patterns of the spaces that have these indexes, by name: to tell two schemas that give
    /// one name to different spaces. Unknown of those whose indexes are older than this.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spaces: BTreeMap<String, String>,
}

impl CatalogContent {
    /// The catalog that a store has; an empty one, where it has none.
    pub async fn read(store: &Store) -> Result<Self> {
        let catalog = Catalog::new()?;
        let entry = store.get(&catalog.key).await?;
        entry.map_or_else(|| Ok(Self::default()), |entry| catalog.content(&entry.value))
    }

    /// The keys that a space has in the store, if they are not those that are declared: another
    /// schema has a space of that name, or the space had other keys, and its records were not moved
    /// yet.
    pub fn other_keys(&self, declared: &Space) -> Option<&str> {
        let keys = self.spaces.get(&declared.name)?;
        let differ = keys != declared.key.as_str() && self.has_indexes_of(&declared.name);
        differ.then_some(keys)
    }

    /// Notes whose indexes are about to be listed, unless that is known.
    pub fn note_keys(&mut self, space: &Space) {
        if !self.has_indexes_of(&space.name) || !self.spaces.contains_key(&space.name) {
            self.spaces.insert(space.name.clone(), space.key.to_string());
        }
    }

    fn has_indexes_of(&self, space: &str) -> bool {
        self.indexes.values().any(|listed| listed.space == space)
    }
}

/// The catalog as it was at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The version of its key; `None` while there is none.
    pub version: Option<Version>,
    pub content: CatalogContent,
    read: Timestamp,
    layouts: HashMap<String, Arc<[Kept]>>,
}

/// An index that writers keep.
#[derive(Debug)]
pub(crate) struct Kept {
    pub layout: Layout,
    pub state: IndexState,
}

impl Snapshot {
    fn new(version: Option<Version>, content: CatalogContent, read: Timestamp) -> Self {
        let mut layouts: HashMap<String, Vec<Kept>> = HashMap::new();
        for index in content.indexes.values() {
            if index.state != IndexState::Disabled {
                let layout = Layout::new(index.definition.clone());
                let kept = Kept { layout, state: index.state };
                layouts.entry(index.space.clone()).or_default().push(kept);
            }
        }
        let layouts = layouts.into_iter().map(|(space, kept)| (space, kept.into())).collect();
        Self { version, content, read, layouts }
    }

    /// The indexes that writers of a space keep.
    pub fn kept(&self, space: &str) -> Arc<[Kept]> {
        self.layouts.get(space).cloned().unwrap_or_default()
    }

    /// What must hold for this still to be the catalog.
    pub fn expect(&self) -> Expect {
        self.version.clone().map_or(Expect::Absent, Expect::Version)
    }
}

/// The catalog of a store, remembered between reads.
pub(crate) struct Catalog {
    key: Key,
    latest: RwLock<Option<Arc<Snapshot>>>,
}

impl Catalog {
    pub fn new() -> Result<Self> {
        let key = Key::from_segments(SEGMENTS).map_err(|e| Error::Damaged(e.to_string()))?;
        Ok(Self { key, latest: RwLock::new(None) })
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The catalog, as it was when it was last read. Where commits cannot check it, never older than
    /// [`CATALOG_AGE_MAX`].
    pub async fn current(&self, store: &Store, clock: &dyn Clock) -> Result<Arc<Snapshot>> {
        let known = self.latest.read().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) if !is_old(&known, store, clock) => Ok(known),
            _ => self.read(store, clock).await,
        }
    }

    /// The catalog, read again.
    pub async fn read(&self, store: &Store, clock: &dyn Clock) -> Result<Arc<Snapshot>> {
        // Before the read, so that it is older than it says rather than younger.
        let now = clock.now();
        let (version, content) = match store.get(&self.key).await? {
            None => (None, CatalogContent::default()),
            Some(entry) => {
                let content = self.content(&entry.value)?;
                (Some(entry.version), content)
            }
        };
        let snapshot = Arc::new(Snapshot::new(version, content, now));
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.clone());
        Ok(snapshot)
    }

    fn content(&self, value: &Json) -> Result<CatalogContent> {
        serde_json::from_slice(value.as_bytes()).map_err(|error| {
            Error::Damaged(format!("the catalog at {} is unreadable: {error}", self.key))
        })
    }

    /// Makes the catalog of a store that has none. If it has one by now, that stays.
    pub async fn create(&self, store: &Store, content: &CatalogContent) -> Result<()> {
        let commit = self.put(store, content, Expect::Absent)?;
        // Who was first does not matter: it is read again.
        store.commit(commit).await.map(drop).map_err(Error::from)
    }

    /// Writes the catalog where the last writer wins, and goes by it from now on.
    pub async fn overwrite(
        &self,
        store: &Store,
        clock: &dyn Clock,
        content: CatalogContent,
    ) -> Result<()> {
        let value = Json::from_value(&content).map_err(|e| Error::Damaged(e.to_string()))?;
        let now = clock.now();
        let version = store.put(self.key.clone(), Put::new(value)).await?;
        let snapshot = Arc::new(Snapshot::new(Some(version), content, now));
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
        Ok(())
    }

    fn put(&self, store: &Store, content: &CatalogContent, expect: Expect) -> Result<Commit> {
        let value = Json::from_value(content).map_err(|e| Error::Damaged(e.to_string()))?;
        let put = Commit::new().put(self.key.clone(), Put::new(value));
        Ok(match store.capabilities().tier() {
            Tier::Advisory => put,
            Tier::Atomic | Tier::Recoverable => put.check(self.key.clone(), expect),
        })
    }

    /// Changes the catalog, unless `change` leaves it as it is; again, if others do so too.
    pub async fn update(
        &self,
        store: &Store,
        clock: &dyn Clock,
        mut change: impl FnMut(&mut CatalogContent) -> Result<()>,
    ) -> Result<Arc<Snapshot>> {
        for _ in 0..ATTEMPTS_MAX {
            let known = self.read(store, clock).await?;
            let mut content = known.content.clone();
            change(&mut content)?;
            if content == known.content {
                return Ok(known);
            }
            let commit = self.put(store, &content, known.expect())?;
            if store.commit(commit).await?.is_applied() {
                return self.read(store, clock).await;
            }
        }
        Err(Error::Contended { key: self.key.clone(), attempts: ATTEMPTS_MAX })
    }
}

fn is_old(snapshot: &Snapshot, store: &Store, clock: &dyn Clock) -> bool {
    store.capabilities().tier() != Tier::Atomic
        && clock.now().duration_since(snapshot.read).unsigned_abs() > CATALOG_AGE_MAX
}
