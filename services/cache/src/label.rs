//! What stands beside a cached value.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Entry, Expiry, Json, Put, Version};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, Source, dependants};

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The value.
    pub value: Json,
    /// When it was computed, by the clock of who computed it.
    pub created: Timestamp,
    /// What it was made of.
    pub source: Source,
    /// The version of the entry; `None` if the result was not cached, since what it depends on
    /// changed while it was computed.
    pub version: Option<Version>,
    /// From when on it is absent.
    pub expires: Option<Timestamp>,
    /// Where this caller has it from.
    pub origin: Origin,
}

/// Where a caller has a result from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It was in the store.
    Stored,
    /// The caller's own function was run.
    Computed,
    /// Somebody else computed it while the caller waited.
    Shared,
    /// It was in the store and is stale; a new one is being computed.
    Stale,
}

/// The member of an entry's metadata that makes it a cached one.
const MEMBER: &str = "cache";

/// What an entry's metadata say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Label {
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub created: Timestamp,
    pub source: Source,
    /// Which computation it was: the token of its lock. With it, one whose commit was not answered
    /// finds out whether it was done.
    pub computation: String,
    /// Which later computation came to the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redone: Option<String>,
    /// The cached keys that it was made from, each with the computation that had made it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made_from: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    cache: Label,
}

/// Whether an entry is a cached result, whatever its key is: for whoever looks through a store and has to
/// tell Keyward's own entries from others.
pub fn is_cached(entry: &Entry) -> bool {
    let metadata = entry.metadata.as_ref().map(|metadata| metadata.as_bytes());
    metadata.is_some_and(|bytes| serde_json::from_slice::<Metadata>(bytes).is_ok())
}

/// The entry of a result that another program computed, as the cache itself would have written it.
///
/// ```
/// use keyward_cache::{Source, adopted};
/// use keyward_engine::Json;
///
/// let put = adopted(Json::parse("1")?, Source::Constant, "2026-01-01T00:00:00Z".parse()?)?;
/// assert!(put.metadata.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn adopted(value: Json, source: Source, created: Timestamp) -> Result<Put> {
    let mark = format!("adopted {}", dependants::spread(value.as_bytes(), 0));
    Label::new(created, &source, mark).put(&value, None)
}

/// What a key holds, as the cache sees it.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub entry: Entry,
    pub label: Label,
}

impl Stored {
    /// Reads what a key holds, which must be a cached value or nothing.
    pub fn read(key: &Key, entry: Option<Entry>) -> Result<Option<Self>> {
        let Some(entry) = keyward_locks::present(entry) else { return Ok(None) };
        match Self::of(entry) {
            Some(stored) => Ok(Some(stored)),
            None => Err(Error::ForeignValue { key: key.clone() }),
        }
    }

    /// The same of an entry that may be something else.
    pub fn of(entry: Entry) -> Option<Self> {
        let metadata: Metadata =
            serde_json::from_slice(entry.metadata.as_ref()?.as_bytes()).ok()?;
        Some(Self { entry, label: metadata.cache })
    }

    /// What tells the value of an entry from every other the key ever had. The version does too, but
    /// it also moves when only the fence of an entry is raised.
    pub fn identity(entry: Entry) -> String {
        let version = entry.version.to_string();
        Self::of(entry).map_or(version, |stored| stored.label.computation)
    }

    pub fn is_good_for(&self, asked: &Source) -> bool {
        self.label.source.is_good_for(asked)
    }

    pub fn cached(self, origin: Origin) -> Cached {
        let Self { entry, label } = self;
        Cached {
            value: entry.value,
            created: label.created,
            source: label.source,
            version: Some(entry.version),
            expires: entry.expires,
            origin,
        }
    }
}

impl Label {
    /// A label for what is computed now. Whoever compares only times must find it no older than its
    /// source, whatever the clocks say.
    pub fn new(now: Timestamp, source: &Source, computation: String) -> Self {
        let created = match source {
            Source::Modified(modified) => now.max(*modified),
            Source::Version(_) | Source::Constant => now,
        };
        Self {
            created,
            source: source.clone(),
            computation,
            redone: None,
            made_from: BTreeMap::new(),
        }
    }

    /// The same, made from what a key held.
    #[must_use]
    pub fn made_from(mut self, key: &Key, held: &str) -> Self {
        self.made_from.insert(key.to_string(), held.to_owned());
        self
    }

    /// Whether it was made from what a key held.
    pub fn is_made_from(&self, key: &Key, held: &str) -> bool {
        self.made_from.get(&key.to_string()).is_some_and(|known| known == held)
    }

    pub fn put(&self, value: &Json, ttl: Option<Duration>) -> Result<Put> {
        let metadata = Json::from_value(&serde_json::json!({ MEMBER: self }))
            .map_err(|error| Error::BadRequest(error.to_string()))?;
        let mut put = Put::new(value.clone()).with_metadata(metadata);
        put.expiry = ttl.map(Expiry::After);
        Ok(put)
    }

    /// What was put, for the one who computed it.
    pub fn computed(self, value: Json, version: Option<Version>) -> Cached {
        let Self { created, source, .. } = self;
        Cached { value, created, source, version, expires: None, origin: Origin::Computed }
    }
}
