//! What a credential allows.

use std::fmt;
use std::str::FromStr;

use keyward::agents::SPACE;
use serde::{Deserialize, Serialize};

/// What is to be done. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// To look.
    Read,
    /// To change data.
    Write,
    /// To run things: keys, migrations, breaking locks.
    Admin,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

/// What something is to be done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'t> {
    /// The server itself.
    Server,
    /// A store: its entries, locks, queues.
    Store(&'t str),
    /// A space, which lies in a store.
    Space {
        /// Its name.
        space: &'t str,
        /// The store's.
        store: &'t str,
    },
    /// A namespace of the agent data store, which lies in a store.
    Namespace {
        /// Its name.
        namespace: &'t str,
        /// The store's.
        store: &'t str,
    },
    /// A registry of documents, which lies in a store.
    Registry {
        /// Its name.
        registry: &'t str,
        /// The store's.
        store: &'t str,
    },
    /// A workspace of agreements, which lies in a store.
    Agreements {
        /// Its name.
        workspace: &'t str,
        /// The store's.
        store: &'t str,
    },
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("*"),
            Self::Store(name) => write!(f, "store/{name}"),
            Self::Space { space, .. } => write!(f, "space/{space}"),
            Self::Namespace { namespace, .. } => write!(f, "namespace/{namespace}"),
            Self::Registry { registry, .. } => write!(f, "registry/{registry}"),
            Self::Agreements { workspace, .. } => write!(f, "agreements/{workspace}"),
        }
    }
}

/// One thing a credential allows: `read:store/main`, `write:space/notes`, `admin:*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scope {
    need: Need,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Everything,
    Store(String),
    Space(String),
    Namespace(String),
    Registry(String),
    Agreements(String),
}

/// A text that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no scope; write read, write or admin, a colon, and what: *, store/NAME, space/NAME, \
     namespace/NAME, registry/NAME or agreements/NAME, as in write:space/notes"
)]
pub struct BadScope(pub String);

impl FromStr for Scope {
    type Err = BadScope;

    fn from_str(text: &str) -> Result<Self, BadScope> {
        let bad = || BadScope(text.to_owned());
        let (need, place) = text.split_once(':').unwrap_or((text, "*"));
        let need = match need {
            "read" => Need::Read,
            "write" => Need::Write,
            "admin" => Need::Admin,
            _ => return Err(bad()),
        };
        let place = match place.split_once('/') {
            None if place == "*" => Place::Everything,
            Some((_, "")) | None => return Err(bad()),
            Some(("store", name)) => Place::Store(name.to_owned()),
            Some(("space", name)) => Place::Space(name.to_owned()),
            Some(("namespace", name)) => Place::Namespace(name.to_owned()),
            Some(("registry", name)) => Place::Registry(name.to_owned()),
            Some(("agreements", name)) => Place::Agreements(name.to_owned()),
            Some(_) => return Err(bad()),
        };
        Ok(Self { need, place })
    }
}

impl TryFrom<String> for Scope {
    type Error = BadScope;

    fn try_from(text: String) -> Result<Self, BadScope> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.need)?;
        match &self.place {
            Place::Everything => f.write_str("*"),
            Place::Store(name) => write!(f, "store/{name}"),
            Place::Space(name) => write!(f, "space/{name}"),
            Place::Namespace(name) => write!(f, "namespace/{name}"),
            Place::Registry(name) => write!(f, "registry/{name}"),
            Place::Agreements(name) => write!(f, "agreements/{name}"),
        }
    }
}

impl Scope {
    /// What a key allows when nothing else is said.
    pub fn write_everything() -> Self {
        Self { need: Need::Write, place: Place::Everything }
    }

    /// The most that it allows.
    pub fn need(&self) -> Need {
        self.need
    }

    fn allows(&self, need: Need, target: &Target<'_>) -> bool {
        self.need >= need
            && match (&self.place, target) {
                (Place::Everything, _) => true,
                (
                    Place::Store(name),
                    Target::Store(store)
                    | Target::Space { store, .. }
                    | Target::Namespace { store, .. }
                    | Target::Registry { store, .. }
                    | Target::Agreements { store, .. },
                ) => name == store,
                (Place::Space(name), Target::Space { space, .. }) => name == space,
                // Namespaces are parts of the one space that holds agents' entries.
                (Place::Space(name), Target::Namespace { .. }) => name == SPACE,
                (Place::Namespace(name), Target::Namespace { namespace, .. }) => name == namespace,
                (Place::Registry(name), Target::Registry { registry, .. }) => name == registry,
                (Place::Agreements(name), Target::Agreements { workspace, .. }) => {
                    name == workspace
                }
                _ => false,
            }
    }
}

/// Everything a credential allows.
///
/// ```
/// use keyward_operations::identity::{Need, Scopes, Target};
///
/// let scopes: Scopes = ["write:space/notes", "read:store/app"].iter().map(|it| it.parse())
///     .collect::<Result<Vec<_>, _>>()?.into();
/// assert!(scopes.allow(Need::Read, &Target::Space { space: "notes", store: "app" }));
/// assert!(!scopes.allow(Need::Write, &Target::Store("app")));
/// # Ok::<(), keyward_operations::identity::BadScope>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// Everything there is.
    pub fn all() -> Self {
        Self(vec![Scope { need: Need::Admin, place: Place::Everything }])
    }

    /// Whether something may be done.
    pub fn allow(&self, need: Need, target: &Target<'_>) -> bool {
        self.0.iter().any(|scope| scope.allows(need, target))
    }

    /// Whether something may be done in some namespaces of the agent data store that are named.
    pub fn name_namespaces(&self, need: Need) -> bool {
        let names = |scope: &Scope| matches!(scope.place, Place::Namespace(_));
        self.0.iter().any(|scope| scope.need >= need && names(scope))
    }

    /// Whether one of them allows something in a workspace by naming it, or everything. The scope of the
    /// store that the workspace lies in is not enough.
    pub fn name_workspace(&self, need: Need, workspace: &str) -> bool {
        let names = |scope: &Scope| match &scope.place {
            Place::Everything => true,
            Place::Agreements(name) => name == workspace,
            _ => false,
        };
        self.0.iter().any(|scope| scope.need >= need && names(scope))
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &Scope> {
        self.0.iter()
    }
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Self {
        Self(scopes)
    }
}
