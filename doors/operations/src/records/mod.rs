//! Records of declared spaces: by key, through indexes, by place, and their earlier versions.

mod batch;
mod clear;
mod create;
mod delete;
mod get;
mod get_many;
mod history;
mod list;
mod near;
mod patch;
mod put;
mod query;
mod restore;
mod within;

use jiff::Timestamp;
use keyward::records::{Draft, Record};
use keyward::{Json, Key, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use batch::{
    BatchProblem, BatchRecords, BatchResult, BatchResults, RecordChange, RecordCreate,
    RecordDelete, RecordMerge, RecordPut,
};
pub use clear::ClearRecords;
pub use create::{CreateRecord, Created};
pub use delete::DeleteRecord;
pub use get::GetRecord;
pub use get_many::{GetRecords, Records};
pub use history::{GetRecordHistory, RecordHistory, RecordVersion};
pub use list::{ListRecords, ListedRecord, RecordPage};
pub use near::{NearPage, NearRecord, NearRecords};
pub use patch::{ArrayRule, PatchRecord};
pub use put::PutRecord;
pub use query::{Cost, ExplainQuery, QueryPage, QueryPlan, QueryRecords};
pub use restore::RestoreRecord;
pub use within::WithinRecords;

use crate::api::records::Changed;
use crate::operation::{Reply, Status};
use crate::stored::Stored;
use crate::vocabulary::Ttl;

/// A record of a space.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Record")]
pub struct RecordView {
    /// The key.
    pub key: Key,
    /// The value, or the fields of it that the request names or that the caller may see.
    pub value: Json,
    /// Metadata of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
    /// The version: it changes with every write.
    pub version: Version,
    /// When the record expires (RFC 3339).
    #[serde(with = "keyward::moment::optional", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub expires: Option<Timestamp>,
}

impl From<Record> for RecordView {
    fn from(record: Record) -> Self {
        let Record { key, value, metadata, version, expires } = record;
        Self { key, value, metadata, version, expires }
    }
}

impl Reply for RecordView {
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

/// A record to be put.
pub fn draft(value: Json, metadata: Option<Json>, ttl: Option<Ttl>) -> Draft {
    let draft = Draft::new(value).ttl(ttl.map(Into::into).unwrap_or_default());
    Draft { metadata, ..draft }
}

/// What a change wrote.
fn stored(key: Key, done: Changed) -> Stored {
    let status = if done.created { Status::Created } else { Status::Done };
    Stored::new(key, done.version, status, done.replayed)
}
