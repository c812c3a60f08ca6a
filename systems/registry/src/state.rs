//! What the last sync left: whether only what changed since has to be looked at.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Entry, Json};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What the last sync left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    pub format: u32,
    /// The commit that the registry is at, if it is at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What decided which files are policies.
    pub fingerprint: String,
    /// Whether the registry is exactly as that commit: no file was left alone, and no later run has
    /// begun to write.
    pub clean: bool,
    /// How many policies there are.
    pub entries: u64,
    /// Since when deprecated members are kept.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub deprecated_since: Timestamp,
    /// Whether they were dropped from all entries.
    #[serde(default)]
    pub deprecated_dropped: bool,
}

const FORMAT: u32 = 1;

impl State {
    /// What a registry is that was never synced.
    pub fn new(now: Timestamp) -> Self {
        Self {
            format: FORMAT,
            commit: None,
            fingerprint: String::new(),
            clean: false,
            entries: 0,
            deprecated_since: now,
            deprecated_dropped: false,
        }
    }

    pub fn decode(key: &Key, entry: &Entry) -> Result<Self> {
        let state: Self = serde_json::from_slice(entry.value.as_bytes())
            .map_err(|error| Error::damaged(key, error))?;
        if state.format != FORMAT {
            let reason =
                format!("it has the format {}, and this version knows {FORMAT}", state.format);
            return Err(Error::damaged(key, reason));
        }
        Ok(state)
    }

    pub fn encode(&self) -> Result<Json> {
        Json::from_value(self).map_err(|error| Error::Invalid(error.to_string()))
    }

    /// The same, while a run writes: until it has ended, nobody may go by what changed.
    pub fn unclean(&self) -> Self {
        Self { clean: false, ..self.clone() }
    }

    /// Whether deprecated members have been kept as long as they should be.
    pub fn is_deprecated_over(&self, now: Timestamp, kept: Duration) -> bool {
        self.deprecated_since.saturating_add(kept).is_ok_and(|end| now >= end)
    }
}
