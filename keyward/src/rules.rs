//! What ordinary writes must leave alone: the one rule behind every door.
//!
//! Keyward keeps keys of its own in a store: records with their indexes, agents' entries, locks, queues,
//! catalogs, what registries and workspaces hold. Each changes through what keeps it; a plain write would
//! leave indexes stale, or locks without their holders. [`WriteRules`] know which keys these are. The
//! server asks them for every entry it is to write, the command for `put`, `del` and `import`.

mod claims;
mod guard;

use std::fmt;

use keyward_agents as agents;
use keyward_engine::{Cursor, Error as StoreError, ErrorKind, Scan, Store};
use keyward_key::{Key, KeyRange, Pattern, PatternSet, Prefix, is_reserved};
use keyward_records::CatalogContent;
use keyward_schema::Schema;

pub use claims::{RegistryKeys, WorkspaceKeys};
pub use guard::SparedRoots;

/// The first segment of what Keyward keeps for itself alone.
const MACHINERY: &str = "system";

/// The first segment of the entries of indexes.
const INDEXES: &str = "index";

/// What a listing or a scan below a prefix leaves out unless all of it is asked for: Keyward's own keys and
/// the entries of indexes, with everything below them. A prefix that lies there asks for them.
pub fn hidden_below(prefix: &Prefix) -> Vec<Key> {
    match prefix.depth() {
        // A plain word is its own encoding.
        0 => vec![Key::from_stored(INDEXES), Key::from_stored(MACHINERY)],
        _ => Vec::new(),
    }
}

/// Which keys of a store an ordinary write must leave alone.
#[derive(Debug, Clone, Default)]
pub struct WriteRules {
    spaces: Vec<(String, Pattern)>,
    lock_roots: Vec<Pattern>,
    registries: Vec<RegistryKeys>,
    workspace: Option<WorkspaceKeys>,
}

/// What a key belongs to that an ordinary write must leave alone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keeper {
    /// Keyward itself: indexes, catalogs, queues.
    Machinery,
    /// The declared space with this name.
    Space(String),
    /// The registry with this name.
    Registry(String),
    /// The workspace of agreements, by its name where it is known.
    Workspace(Option<String>),
    /// Locks: the key is their root.
    Locks,
}

/// A key that an ordinary write must leave alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// The key.
    pub key: Key,
    /// What it belongs to.
    pub keeper: Keeper,
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.keeper {
            Keeper::Machinery => write!(f, "{key} belongs to Keyward's own machinery"),
            Keeper::Space(space) => write!(f, "{key} is a record of the space {space}"),
            Keeper::Registry(registry) => write!(f, "{key} belongs to the registry {registry}"),
            Keeper::Workspace(Some(name)) => write!(f, "{key} belongs to the workspace {name}"),
            Keeper::Workspace(None) => write!(f, "{key} belongs to the workspace of this store"),
            Keeper::Locks => write!(f, "{key} is the root of locks and holds their catalog"),
        }
    }
}

impl std::error::Error for Reserved {}

impl From<Reserved> for StoreError {
    fn from(reserved: Reserved) -> Self {
        Self::new(ErrorKind::Reserved, reserved.to_string())
    }
}

impl WriteRules {
    /// The rules of a store whose schema is not known: Keyward's own keys, and agents' entries.
    pub fn without_schema() -> Self {
        let mut rules = Self::default();
        rules.add_agents();
        rules
    }

    /// The rules of a store that a schema declares.
    pub fn of_schema(schema: &Schema, store: &str, holds_agents: bool) -> Self {
        let spaces = schema.spaces_of(store);
        let trees = schema.locks.iter().filter(|tree| tree.store == store);
        let mut rules = Self {
            spaces: spaces.map(|space| (space.name.clone(), space.key.clone())).collect(),
            lock_roots: trees.map(|tree| tree.root.clone()).collect(),
            ..Self::default()
        };
        if holds_agents {
            rules.add_agents();
        }
        rules
    }

    /// The rules of a store with these spaces and lock trees.
    pub fn new<'s>(
        spaces: impl IntoIterator<Item = &'s keyward_schema::Space>,
        lock_roots: impl IntoIterator<Item = Pattern>,
    ) -> Self {
        let spaces = spaces.into_iter().map(|space| (space.name.clone(), space.key.clone()));
        Self {
            spaces: spaces.collect(),
            lock_roots: lock_roots.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The same for a store that has a registry.
    #[must_use]
    pub fn with_registry(mut self, registry: RegistryKeys) -> Self {
        self.registries.push(registry);
        self
    }

    /// The same for a store that has a workspace.
    #[must_use]
    pub fn with_workspace(mut self, workspace: WorkspaceKeys) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Adds what a store says about itself: the spaces in its catalog, registries and a workspace that
    /// have worked in it.
    pub async fn learn(&mut self, store: &Store) -> Result<(), StoreError> {
        let internal = |error: &dyn fmt::Display| {
            StoreError::new(ErrorKind::Internal, format!("a key of Keyward's own: {error}"))
        };
        let catalog = CatalogContent::read(store).await.map_err(|error| match error {
            keyward_records::Error::Store(error) => error,
            error => StoreError::new(ErrorKind::Corrupt, error.to_string()),
        })?;
        for (space, keys) in catalog.spaces {
            let is_known = self.spaces.iter().any(|(_, known)| known.as_str() == keys);
            if let Some(pattern) = Pattern::parse(&keys).ok().filter(|_| !is_known) {
                self.spaces.push((space, pattern));
            }
        }
        let range = KeyRange::under(&Prefix::from_segments(claims::REGISTRIES));
        let mut after: Option<Cursor> = None;
        loop {
            let page = store.scan(&Scan { after, ..Scan::new(range.clone()) }).await?;
            for row in page.rows {
                let prefix = row.key.segments().nth(claims::REGISTRIES.len()).unwrap_or_default();
                let name = row.entry.as_ref().map(|entry| entry.value.as_str());
                let name = name.unwrap_or_default().trim_matches('"');
                let prefix = Some(&*prefix).filter(|prefix| !prefix.is_empty());
                let keys = RegistryKeys::new(name, prefix).map_err(|error| internal(&error))?;
                if !self.registries.contains(&keys) {
                    self.registries.push(keys);
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let workspace = Key::from_segments(claims::WORKSPACE).map_err(|error| internal(&error))?;
        if self.workspace.is_none() && store.get(&workspace).await?.is_some() {
            self.workspace = Some(WorkspaceKeys::unnamed());
        }
        Ok(())
    }

    /// What keeps a key, apart from locks.
    pub fn keeper(&self, key: &Key) -> Option<Keeper> {
        let first = key.first();
        if let Some(keeper) = self.system_of(key).filter(|_| first != MACHINERY) {
            return Some(keeper);
        }
        if is_reserved(&first) {
            return Some(Keeper::Machinery);
        }
        self.space_of(key).map(|space| Keeper::Space(space.to_owned()))
    }

    /// The registry or workspace that a key belongs to, also among Keyward's own keys.
    pub fn system_of(&self, key: &Key) -> Option<Keeper> {
        if let Some(registry) = self.registries.iter().find(|registry| registry.covers(key)) {
            return Some(Keeper::Registry(registry.registry().to_owned()));
        }
        let workspace = self.workspace.as_ref().filter(|workspace| workspace.covers(key))?;
        Some(Keeper::Workspace(workspace.workspace().map(str::to_owned)))
    }

    /// The space that a key belongs to, if any.
    pub fn space_of(&self, key: &Key) -> Option<&str> {
        let mut spaces = self.spaces.iter();
        spaces.find(|(_, pattern)| pattern.matches(key)).map(|(name, _)| name.as_str())
    }

    /// Whether a key is declared to hold locks: it is the root of a lock tree, or a page. Other roots
    /// look like any entry: [`SparedRoots`] keeps commits from them.
    pub fn holds_locks(&self, key: &Key) -> bool {
        self.lock_roots.iter().any(|root| root.matches(key)) || self.is_page(key)
    }

    /// Whether a key is a page of the store's workspace.
    pub fn is_page(&self, key: &Key) -> bool {
        self.workspace.as_ref().is_some_and(|workspace| workspace.is_page(key))
    }

    /// The patterns of the roots of declared lock trees.
    pub fn lock_roots(&self) -> &[Pattern] {
        &self.lock_roots
    }

    /// Whether the store has a workspace.
    pub fn has_workspace(&self) -> bool {
        self.workspace.is_some()
    }

    /// The name of the workspace in the store, if there is one and its name is known.
    pub fn workspace(&self) -> Option<&str> {
        self.workspace.as_ref().and_then(WorkspaceKeys::workspace)
    }

    /// Refuses a key that an ordinary write must leave alone.
    pub fn admit(&self, key: &Key) -> Result<(), Reserved> {
        let keeper = self.keeper(key);
        match keeper.or_else(|| self.holds_locks(key).then_some(Keeper::Locks)) {
            Some(keeper) => Err(Reserved { key: key.clone(), keeper }),
            None => Ok(()),
        }
    }

    /// The same store, with commits that break these rules refused as [`ErrorKind::Reserved`]. Nothing of
    /// a refused commit is written.
    pub fn guard(self, store: Store) -> Store {
        guard::guarded(self, store)
    }

    /// The built-in space of agents' entries, unless one is declared or its keys are taken.
    fn add_agents(&mut self) {
        let is_declared = self.spaces.iter().any(|(name, _)| name == agents::SPACE);
        let patterns = self.spaces.iter().map(|(_, pattern)| pattern.clone());
        if let Ok(pattern) = Pattern::parse(agents::PATTERN)
            && !is_declared
            && PatternSet::new(patterns.chain([pattern.clone()])).is_ok()
        {
            self.spaces.push((agents::SPACE.to_owned(), pattern));
        }
    }
}

/// Refuses to write records of a space that is written by something else: agents' entries are more
/// than records, and are written as such.
pub fn admit_space(space: &str) -> Result<(), StoreError> {
    if space == agents::SPACE {
        let message = format!("the space {space} holds agents' entries");
        return Err(StoreError::new(ErrorKind::Reserved, message));
    }
    Ok(())
}
