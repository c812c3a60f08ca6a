use std::fmt;
use std::sync::Arc;

use keyward_engine::{Commit, Expect, Put, Store, Version, moment_text};
use keyward_key::Key;
use keyward_schema::LockTree;

use crate::acquire;
use crate::catalog::{Asked, Catalog};
use crate::locks::Shared;
use crate::patience::Patience;
use crate::{Error, Guard, LockPath, Mode, Request, Result, Tried};

/// The locks below one key. Cheap to clone.
#[derive(Clone)]
pub struct Root {
    pub(crate) shared: Arc<Shared>,
    key: Key,
}

/// How many paths one request may have.
const PATHS_MAX: usize = 64;

impl Root {
    pub(crate) fn new(shared: Arc<Shared>, key: Key) -> Self {
        Self { shared, key }
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Waits until what was dropped is out of the store, as [`Locks::settled`](crate::Locks::settled)
    /// does.
    pub async fn settled(&self) {
        self.shared.settled().await;
    }

    /// The path that a name means: colon text, in which the aliases of the root's lock tree stand
    /// for what they are declared to be, and the root's own name for all of it. Refused if the tree
    /// has no such path.
    pub fn path(&self, name: &str) -> Result<LockPath> {
        let Some(tree) = self.tree() else {
            return LockPath::parse(name);
        };
        match tree.path(name) {
            Ok(segments) => LockPath::new(segments),
            Err(_) if name.is_empty() || name == self.key.to_string() => Ok(LockPath::root()),
            Err(error) => Err(Error::OutsideTree(error.to_string())),
        }
    }

    /// What a path is called: what [`Root::path`] reads as the same path.
    pub fn name(&self, path: &LockPath) -> String {
        let Some(tree) = self.tree() else {
            return path.to_string();
        };
        let own_name = self.key.to_string();
        match path.is_root() && tree.path(&own_name).is_err() {
            true => own_name,
            false => tree.name(path.segments()),
        }
    }

    /// Waits for a lock on some paths together and takes it.
    ///
    /// Requests that exclude each other are served in the order of their arrival. Dropping the
    /// future gives up. Fails if the time to wait ends ([`Error::TimedOut`], which names who is in
    /// the way), if the request would wait for its own owner, and if the store fails; where it only
    /// did not answer, the request finds out by itself whether it was granted.
    pub async fn acquire(
        &self,
        paths: &[LockPath],
        mode: Mode,
        request: &Request,
    ) -> Result<Guard> {
        let asked = self.asked(paths, mode, request)?;
        acquire::run(self, &asked, Patience::of(request)).await?.granted(self, &asked)
    }

    /// Waits for a lock as [`Root::acquire`] does, and tells who is in the way if the time to wait ends.
    pub async fn ask(&self, paths: &[LockPath], mode: Mode, request: &Request) -> Result<Tried> {
        let asked = self.asked(paths, mode, request)?;
        Ok(acquire::run(self, &asked, Patience::of(request)).await?.tried(self))
    }

    /// Takes a lock if nobody is in the way. Never waits in line.
    pub async fn try_acquire(
        &self,
        paths: &[LockPath],
        mode: Mode,
        request: &Request,
    ) -> Result<Tried> {
        let asked = self.asked(paths, mode, request)?;
        Ok(acquire::run(self, &asked, Patience::none()).await?.tried(self))
    }

    fn asked(&self, paths: &[LockPath], mode: Mode, request: &Request) -> Result<Asked> {
        request.check()?;
        if paths.is_empty() || paths.len() > PATHS_MAX {
            let count = paths.len();
            let message = format!("a lock is on 1 to {PATHS_MAX} paths, not {count}");
            return Err(Error::BadRequest(message));
        }
        for path in paths {
            self.check_path(path)?;
        }
        let id = request.name.clone().map_or_else(|| self.shared.nonce(), Ok)?;
        let owner = request.owner.clone().unwrap_or_else(|| id.clone());
        Ok(Asked {
            id,
            owner,
            paths: distinct(paths),
            mode,
            ttl: request.ttl,
            since: moment_text(self.shared.now()),
            who: request
                .who
                .as_ref()
                .unwrap_or(&self.shared.options.who)
                .asking_for(&request.purpose),
            is_named: request.name.is_some(),
        })
    }

    fn check_path(&self, path: &LockPath) -> Result<()> {
        match self.tree() {
            Some(tree) => {
                tree.check(path.segments()).map_err(|error| Error::OutsideTree(error.to_string()))
            }
            None => Ok(()),
        }
    }

    /// The lock tree that this root belongs to, if there is one.
    fn tree(&self) -> Option<&LockTree> {
        self.shared.options.trees.iter().find(|tree| tree.has_root(&self.key))
    }

    pub(crate) fn fence_key(&self, token: u64) -> Key {
        let root = self.key.to_string();
        // The first segment is not empty, so these are a key.
        Key::from_segments(["lock", &root, &format!("{token:020}")])
            .unwrap_or_else(|_| self.key.child(&token.to_string()))
    }

    pub(crate) fn lease_key(&self, token: u64) -> Key {
        self.fence_key(token).child("lease")
    }

    /// A commit that replaces the catalog, if it is still the one that was read.
    pub(crate) fn replacing(&self, version: Option<&Version>, new: &Catalog) -> Result<Commit> {
        let expect = version.map_or(Expect::Absent, |version| Expect::Version(version.clone()));
        let put = Put::new(new.to_json(&self.key)?);
        let commit = Commit::new().check(self.key.clone(), expect).put(self.key.clone(), put);
        self.with_mark(commit, new)
    }

    pub(crate) fn names(&self, paths: &[LockPath]) -> String {
        let name = |path: &LockPath| match self.name(path) {
            name if name.is_empty() => "everything".to_owned(),
            name => name,
        };
        paths.iter().map(name).collect::<Vec<_>>().join(" and ")
    }
}

/// The paths in order, without those that lie below another.
fn distinct(paths: &[LockPath]) -> Vec<LockPath> {
    let mut paths = paths.to_vec();
    paths.sort();
    // A path sorts before those below it.
    let mut kept: Vec<LockPath> = Vec::with_capacity(paths.len());
    for path in paths {
        if !kept.iter().any(|kept| kept.overlaps(&path)) {
            kept.push(path);
        }
    }
    kept
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root({})", self.key)
    }
}
