//! The entry that every write under a lock checks, where commits have several keys.
//!
//! A commit whose answer was lost may land later, while the lock is still held: over what its holder
//! has written since. So after such a commit the fence is moved to a new version before the next one
//! is sent; what checks the old version can never land then.

use std::sync::{Mutex, MutexGuard, PoisonError};

use keyward_engine::{Check, Commit, Expect, Outcome, Put, Version};
use tokio::time::sleep;

use crate::guard::Grant;
use crate::{Error, Result};

/// How often the store may fail before a fence is not moved.
const FAILURES_MAX: u32 = 6;
const FAILURE_PAUSE_MIN: std::time::Duration = std::time::Duration::from_millis(20);

/// The version of a lock's fence, as its holder knows it.
#[derive(Debug)]
pub(crate) struct Fence(Mutex<State>);

#[derive(Debug, Clone)]
struct State {
    version: Version,
    /// Whether something that checks this version may still be on its way.
    doubted: bool,
}

impl Fence {
    pub fn new(version: Version) -> Self {
        Self(Mutex::new(State { version, doubted: false }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn version(&self) -> Version {
        self.state().version.clone()
    }

    pub fn is_doubted(&self) -> bool {
        self.state().doubted
    }

    /// Begins a commit that checks this version. Unless it is said to be answered, the version is
    /// doubted from then on, also if nobody waits for the answer any more.
    pub fn send(&self, version: Version) -> Sent<'_> {
        Sent { fence: self, version, answered: false }
    }

    /// That `version` is the fence's now, and not the one before.
    fn moved(&self, from: &Version, version: Version) {
        let mut state = self.state();
        if state.version == *from && version != *from {
            *state = State { version, doubted: false };
        }
    }
}

/// A commit that checks a fence, on its way.
pub(crate) struct Sent<'f> {
    fence: &'f Fence,
    version: Version,
    answered: bool,
}

impl Sent<'_> {
    /// It was done or refused: nothing is on its way any more.
    pub fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        let mut state = self.fence.state();
        if !self.answered && state.version == self.version {
            state.doubted = true;
        }
    }
}

impl Grant {
    /// The check of a fence's version.
    pub fn fence_check(&self, version: Version) -> Check {
        Check { key: self.root.fence_key(self.token), expect: Expect::Version(version) }
    }

    /// Gives the fence a new version. `false`: the lock is somebody else's.
    pub async fn move_fence(&self, fence: &Fence) -> Result<bool> {
        let mut failures = 0;
        loop {
            match self.move_fence_once(fence).await {
                Err(error) if error.is_passing() && failures < FAILURES_MAX => {
                    let pause = FAILURE_PAUSE_MIN * 2_u32.pow(failures);
                    failures += 1;
                    sleep(self.root.shared.jittered(pause)).await;
                }
                moved => return moved,
            }
        }
    }

    async fn move_fence_once(&self, fence: &Fence) -> Result<bool> {
        let (key, store) = (self.root.fence_key(self.token), &self.root.shared.store);
        let known = fence.version();
        let Some(entry) = store.get(&key).await? else { return Ok(false) };
        // An earlier attempt may have worked without having been answered.
        if entry.version != known {
            fence.moved(&known, entry.version);
            return Ok(true);
        }
        let put = Put { value: entry.value, metadata: entry.metadata, expiry: None };
        let commit = Commit::new().check(key.clone(), Expect::Version(known.clone())).put(key, put);
        match store.commit(commit).await? {
            Outcome::Applied { versions, .. } => {
                let version = versions.into_iter().next().flatten();
                let none = || self.damaged("a fence that was put has no version");
                fence.moved(&known, version.ok_or_else(none)?);
                Ok(true)
            }
            // Whoever took it away, or moved it, is seen by the next look.
            Outcome::Conflicted { .. } => {
                match store.get(&self.root.fence_key(self.token)).await? {
                    Some(entry) => {
                        fence.moved(&known, entry.version);
                        Ok(true)
                    }
                    None => Ok(false),
                }
            }
        }
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::Damaged { root: self.root.key().clone(), reason: reason.to_owned() }
    }
}
