//! Entries: keys and JSON values of a store.

mod clear;
mod delete;
mod get;
mod get_many;
mod list;
mod patch;
mod put;

use jiff::Timestamp;
use keyward::{Entry, Json, Key, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use clear::ClearEntries;
pub use delete::DeleteEntry;
pub use get::GetEntry;
pub use get_many::{Entries, GetEntries};
pub use list::{ListEntries, Listed, ListedPage};
pub use patch::PatchEntry;
pub use put::PutEntry;

use crate::operation::Reply;

/// An entry of a store.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub struct EntryView {
    /// The key.
    pub key: Key,
    /// The value: any JSON.
    pub value: Json,
    /// Metadata of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
    /// The version: it changes with every write.
    pub version: Version,
    /// When the entry expires (RFC 3339).
    #[serde(with = "keyward::moment::optional", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub expires: Option<Timestamp>,
}

impl EntryView {
    /// The entry stored under a key.
    pub fn new(key: Key, entry: Entry) -> Self {
        let Entry { value, metadata, version, expires } = entry;
        Self { key, value, metadata, version, expires }
    }
}

impl Reply for EntryView {
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }

    fn expires(&self) -> Option<Timestamp> {
        self.expires
    }

    fn value(&self) -> Option<&Json> {
        Some(&self.value)
    }
}
