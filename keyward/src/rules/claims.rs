//! Which keys of a store belong to a registry or a workspace.

use keyward_agreements::PageId;
use keyward_engine::{Error, ErrorKind, Result};
use keyward_key::{Key, KeyRange, Pattern, Prefix};

/// Below it a registry notes that it works in the store: its prefix, with its name as the value.
pub(super) const REGISTRIES: [&str; 2] = ["system", "registry-of"];
/// Where a workspace notes that it works in the store.
pub(super) const WORKSPACE: [&str; 2] = ["system", "agreements"];

/// What is made of a page lies below its id, under one of these.
const OF_PAGES: [&str; 3] = ["policy", "issue", "analysis"];
/// Where uploads lie.
const UPLOADS: &str = "upload";

/// The keys of one registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryKeys {
    registry: String,
    /// Entries, what is known of the last run, the queue and its dead letters.
    patterns: Vec<Pattern>,
    /// What it keeps for itself, and all below.
    own: Vec<Key>,
}

impl RegistryKeys {
    /// The keys of a registry with this name and prefix.
    pub fn new(registry: &str, prefix: Option<&str>) -> Result<Self> {
        let invalid = |error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Invalid, format!("the registry {registry}: {error}"))
        };
        let root = prefix.map_or_else(Prefix::all, |prefix| Prefix::from_segments([prefix]));
        let shapes =
            ["policy:{policy}", "metadata:sync:{what}", "queue:{policy}", "dead-letter:{policy}"];
        let patterns = shapes.iter().map(|shape| {
            Pattern::parse(&format!("{root}{shape}")).map_err(|error| invalid(&error))
        });
        let [system, registries] = REGISTRIES;
        let own = [
            Key::from_segments([system, "registry", registry]),
            Key::from_segments([system, registries, prefix.unwrap_or_default()]),
        ];
        let own = own.into_iter().map(|key| key.map_err(|error| invalid(&error)));
        Ok(Self {
            registry: registry.to_owned(),
            patterns: patterns.collect::<Result<_>>()?,
            own: own.collect::<Result<_>>()?,
        })
    }

    /// The registry's name.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The patterns of what lies beside Keyward's own keys.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Whether a key is one of the registry's.
    pub fn covers(&self, key: &Key) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(key))
            || self.own.iter().any(|own| KeyRange::subtree(own).contains(key))
    }
}

/// The keys of a workspace of agreements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceKeys {
    workspace: Option<String>,
}

impl WorkspaceKeys {
    /// The keys of the workspace with this name.
    pub fn new(workspace: &str) -> Self {
        Self { workspace: Some(workspace.to_owned()) }
    }

    /// The keys of a workspace that a store tells of, which does not know its name.
    pub(super) fn unnamed() -> Self {
        Self { workspace: None }
    }

    /// The workspace's name, where it is known.
    pub fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    /// Whether a key is one of the workspace's: of an upload, or of what was made of a page.
    pub fn covers(&self, key: &Key) -> bool {
        let mut segments = key.segments();
        let first = segments.next().unwrap_or_default();
        let is_made = segments.next().is_some_and(|kind| OF_PAGES.contains(&&*kind));
        first == UPLOADS || is_made && PageId::new(&first).is_ok()
    }

    /// Whether a key is a page's: the catalog of its locks, which can be asked for like others.
    pub fn is_page(&self, key: &Key) -> bool {
        key.segments().nth(1).is_none() && PageId::new(&key.first()).is_ok()
    }

    /// Whether keys of a pattern could be taken for those of a page.
    pub fn could_cover(pattern: &str) -> bool {
        let mut segments = pattern.split(':');
        let first = segments.next().unwrap_or_default();
        let second = segments.next();
        let is_variable = |segment: &str| segment.contains(['{', '[']);
        let first_is_page = is_variable(first) || first == UPLOADS || PageId::new(first).is_ok();
        first_is_page
            && second.is_none_or(|kind| {
                OF_PAGES.contains(&kind) || is_variable(kind) && is_variable(first)
            })
    }
}
