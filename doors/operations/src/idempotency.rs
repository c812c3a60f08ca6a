//! Requests that may be sent again: what an `Idempotency-Key` did is remembered in the very commit
//! that did it, so that a retry finds it done or not begun, whatever broke in between.

use std::time::Duration;

use keyward::{Code, Commit, Expect, Expiry, Json, Key, Put, Store, Tier, Version};
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::problem::{Problem, Result};

/// How long a request is remembered.
pub const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest key that a client may choose.
pub const KEY_BYTES_MAX: usize = 255;

/// What is remembered of a request.
#[derive(Debug, Clone)]
pub struct Mark {
    key: Key,
    /// A hash of everything that the request asks for.
    request: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    request: String,
    /// Whether what was written has a version, which is then that of this mark.
    versioned: bool,
    /// Whether what was written had not been there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    created: bool,
    /// What else was told, where that is more than a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<String>,
}

/// Marks a request that found nothing to do.
const NOTHING: &str = "nothing";

/// A request that was done before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The version of what it wrote, if that has one.
    pub version: Option<Version>,
    /// Whether what it wrote had not been there, as far as that was known.
    pub created: bool,
    /// What else was told.
    pub told: Option<String>,
}

impl Replay {
    /// Whether the request found nothing to do.
    pub fn was_nothing(&self) -> bool {
        self.told.as_deref() == Some(NOTHING)
    }
}

impl Mark {
    /// The mark of a request: `parts` are everything that it asks for.
    pub fn new(who: &Identity, chosen: &str, parts: &[&[u8]]) -> Result<Self> {
        if chosen.is_empty() || chosen.len() > KEY_BYTES_MAX {
            return Err(Problem::invalid(format!(
                "an idempotency key has 1 to {KEY_BYTES_MAX} bytes, not {}",
                chosen.len()
            )));
        }
        let name = hash(&[who.tenant().name().as_bytes(), chosen.as_bytes()]);
        let key = Key::from_segments(["system", "idempotency", &name])
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        Ok(Self { key, request: hash(parts) })
    }

    /// What the request is called, for what is done once by its name: the same for every request with
    /// the same idempotency key.
    pub fn name(&self) -> String {
        hash(&[self.key.to_string().as_bytes()])
    }

    /// The same, but another for every request that asks for something else.
    pub fn exact_name(&self) -> String {
        hash(&[self.key.to_string().as_bytes(), self.request.as_bytes()])
    }

    /// What the same request did before, if it did.
    pub async fn replay(&self, store: &Store) -> Result<Option<Replay>> {
        let Some(entry) = store.get(&self.key).await? else { return Ok(None) };
        let remembered: Remembered = serde_json::from_slice(entry.value.as_bytes())
            .map_err(|error| Problem::new(Code::Corrupt, format!("{}: {error}", self.key)))?;
        if remembered.request != self.request {
            return Err(Problem::new(
                Code::IdempotencyReuse,
                "this idempotency key was used for another request",
            )
            .hint(
                "Choose a new key for each thing to do, and send the same request with it again.",
            ));
        }
        let Remembered { versioned, created, told, .. } = remembered;
        Ok(Some(Replay { version: versioned.then_some(entry.version), created, told }))
    }

    /// An id for the `at`th thing that this request makes: the same, however often it is sent, and in
    /// the order of what it makes.
    pub fn id(&self, at: usize) -> String {
        let of_both = hash(&[self.key.to_string().as_bytes(), self.request.as_bytes()]);
        format!("{}-{at:04}", &of_both[..32])
    }

    /// The commit that also remembers this request, and is refused if it has been done.
    pub fn added_to(&self, store: &Store, commit: Commit, versioned: bool) -> Result<Commit> {
        self.joined(store, commit, versioned, false, None)
    }

    /// What remembers this request in the commit of a record's change, and refuses that if it has
    /// been done.
    pub fn rider(&self, store: &Store, versioned: bool, created: bool) -> Result<Commit> {
        self.joined(store, Commit::new(), versioned, created, None)
    }

    /// The commit that also remembers this request with what is told about it, and is refused if it
    /// has been done.
    pub fn telling(&self, store: &Store, commit: Commit, told: &str) -> Result<Commit> {
        self.joined(store, commit, true, false, Some(told))
    }

    /// The commit that only remembers that this request found nothing to do, and is refused if it has been
    /// done.
    pub fn of_nothing(&self, store: &Store, commit: Commit) -> Result<Commit> {
        self.joined(store, commit, false, false, Some(NOTHING))
    }

    fn joined(
        &self,
        store: &Store,
        commit: Commit,
        versioned: bool,
        created: bool,
        told: Option<&str>,
    ) -> Result<Commit> {
        if store.capabilities().tier() != Tier::Atomic {
            return Err(Problem::new(
                Code::Unsupported,
                format!(
                    "the {} engine cannot change data and remember a request in one step",
                    store.capabilities().engine
                ),
            )
            .hint("Leave out Idempotency-Key, and use If-Match or If-None-Match instead."));
        }
        let (request, told) = (self.request.clone(), told.map(str::to_owned));
        let remembered = Remembered { request, versioned, created, told };
        let value = Json::from_value(&remembered)
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        let put = Put::new(value).expiring(Expiry::After(REMEMBERED));
        Ok(commit.check(self.key.clone(), Expect::Absent).put(self.key.clone(), put))
    }
}

/// A hash of some texts, each with its length.
fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex().to_string()
}
