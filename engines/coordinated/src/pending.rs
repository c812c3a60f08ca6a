//! The pending row: what the value store has yet to show, at `system:coordinator:pending:{key}`. Its value is the
//! entry's value (`null` where the head holds it, and for deletes); its metadata is the [`Mark`].

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{
    Entry, Error, ErrorKind, Expiry, ExpirySupport, Json, Put, Result, Version, moment,
};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::head::{Hash, Head};

/// How the value store differs from the coordinator, or did when the row was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The hash of the value; `None` if the key was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// When the coordinator took the change. No older value is sent for much longer than that.
    #[serde(with = "moment")]
    pub committed: Timestamp,
    /// When the value store was known to have it, if a process noted that.
    #[serde(with = "moment::optional", default, skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Timestamp>,
    /// When the entry ends.
    #[serde(with = "moment::optional", default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Whether the head holds the value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inline: bool,
    /// Whether another program made the change, so that there is nothing to push.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
}

impl Mark {
    /// The row with this mark. It does not expire with its entry: what has ended must also leave the value store.
    pub fn put(&self, value: Option<&Json>) -> Result<Put> {
        let metadata = Json::from_value(self).map_err(|error| {
            Error::new(ErrorKind::Internal, "a pending row cannot be written").caused_by(error)
        })?;
        let value = value.cloned().unwrap_or_else(null);
        Ok(Put::new(value).with_metadata(metadata))
    }
}

fn null() -> Json {
    Json::from_stored("null")
}

/// A pending row as it was read, with what the head beside it says.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub mark: Mark,
    /// The row's own version. It changes when the row is written again, also with the same value.
    pub version: Version,
    /// The version of the head beside it; `None` if there is none.
    pub head: Option<Version>,
    /// Whether the head is bookkeeping that stays in the coordinator.
    pub is_kept: bool,
    /// The value that the value store should show; `None` if the key should be absent.
    pub value: Option<Json>,
    /// The metadata that belongs to the value.
    pub metadata: Option<Json>,
}

impl Pending {
    /// Puts a pending row and the head read at the same moment together.
    pub fn read(key: &Key, row: &Entry, head: Option<&Entry>) -> Result<Self> {
        let mark = read_mark(key, row)?;
        let version = row.version.clone();
        let head_version = head.map(|head| head.version.clone());
        let absent = Self {
            mark: mark.clone(),
            version,
            head: head_version,
            is_kept: false,
            value: None,
            metadata: None,
        };
        // Without a head, the entry was deleted or has expired.
        let Some(head) = head else { return Ok(absent) };
        let value = match Head::read(key, &head.value)? {
            // What was there before it has to leave the value store.
            Head::Kept(_) => return Ok(Self { is_kept: true, ..absent }),
            _ if mark.hash.is_none() => return Ok(absent),
            Head::Inline(value) => value,
            Head::Stored(_) | Head::Adopted(_) => row.value.clone(),
        };
        Ok(Self { value: Some(value), metadata: head.metadata.clone(), ..absent })
    }

    /// What to put into the value store at `now`; `None` is to delete. An entry whose life is too short for the value
    /// store is not pushed, and neither is what was there before it left standing.
    pub fn wanted(&self, now: Timestamp, support: ExpirySupport) -> Option<Put> {
        let value = self.value.clone()?;
        let expiry = match (self.mark.expires, support) {
            (None, _) => None,
            (Some(_), ExpirySupport::Unsupported) => return None,
            (Some(end), ExpirySupport::Supported { ttl_min, .. }) => {
                let shortest = now.saturating_add(ttl_min).unwrap_or(Timestamp::MAX);
                if end < shortest {
                    return None;
                }
                Some(Expiry::At(end))
            }
        };
        Some(Put { value, metadata: self.metadata.clone(), expiry })
    }

    /// Whether the value store shows the very text that it should. Until it was pushed once, another text of the same
    /// value may be an older one.
    pub fn has_text_of(&self, found: Option<&Entry>) -> bool {
        self.value.as_ref() == found.map(|found| &found.value)
    }

    /// Whether the value store shows what it should at `now`: the meaning of the value, metadata and end.
    pub fn is_shown_by(
        &self,
        found: Option<&Entry>,
        now: Timestamp,
        support: ExpirySupport,
    ) -> bool {
        let Some(found) = found else { return self.wanted(now, support).is_none() };
        let Some(hash) = &self.mark.hash else { return false };
        // What ends by itself at the right time need not be deleted, however near its end is.
        self.value.is_some()
            && hash.is_of(&found.value)
            && is_same_object(self.metadata.as_ref(), found.metadata.as_ref())
            && is_same_end(self.mark.expires, found.expires, support)
    }
}

/// Whether two texts describe a value alike. A value store may keep metadata as an object rather than as text.
fn is_same_object(one: Option<&Json>, other: Option<&Json>) -> bool {
    let read = |json: &Json| serde_json::from_slice::<serde_json::Value>(json.as_bytes()).ok();
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            one == other || read(one).is_some_and(|it| Some(it) == read(other))
        }
        _ => false,
    }
}

/// Whether an end that a value store shows is the one that was put, rounded up as it says.
fn is_same_end(put: Option<Timestamp>, shown: Option<Timestamp>, support: ExpirySupport) -> bool {
    let granularity = match support {
        ExpirySupport::Supported { granularity, .. } => granularity,
        ExpirySupport::Unsupported => Duration::ZERO,
    };
    match (put, shown) {
        (None, None) => true,
        (Some(put), Some(shown)) => {
            let latest = put.saturating_add(granularity).unwrap_or(Timestamp::MAX);
            (put..=latest).contains(&shown)
        }
        _ => false,
    }
}

/// The mark of a pending row.
pub(crate) fn read_mark(key: &Key, row: &Entry) -> Result<Mark> {
    let metadata = row.metadata.as_ref().map_or("", Json::as_str);
    serde_json::from_str(metadata).map_err(|error| {
        let message = format!("the coordinator's pending row of {key} cannot be read");
        Error::new(ErrorKind::Corrupt, message).caused_by(error)
    })
}
