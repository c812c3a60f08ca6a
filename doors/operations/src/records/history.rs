use jiff::Timestamp;
use keyward::records::{HistoryPage, Past};
use keyward::{Json, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::queries;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Reply};
use crate::problem::Result;
use crate::vocabulary::{Guarantee, PageLimit};

/// Lists the versions of a record, the newest first. A deleted record keeps its history.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct GetRecordHistory {
    /// The name of a space.
    pub space: String,
    /// The whole key: segments with colons between them.
    pub key: Key,
    /// Maximum number of versions.
    #[serde(default)]
    pub limit: PageLimit,
    /// List only versions before the one with this number: the `next` of the page before.
    pub before: Option<u64>,
}

/// A page of the versions of a record.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordHistory {
    /// The versions, the newest first.
    pub items: Vec<RecordVersion>,
    /// The `before` of the next page; null at the end.
    pub next: Option<u64>,
    /// What the page is worth.
    pub guarantee: Guarantee,
}

impl Reply for RecordHistory {}

/// A version of a record.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordVersion {
    /// The number of the version; later ones are higher.
    pub number: u64,
    /// What was done: `put`, `merge`, `update`, `restore` or `delete`.
    pub act: String,
    /// When it was done (RFC 3339).
    #[serde(with = "keyward::moment")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The user who did it.
    pub user: Option<String>,
    /// The agent that did it.
    pub agent: Option<String>,
    /// The value, unless the record was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// Metadata of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
}

impl From<Past> for RecordVersion {
    fn from(past: Past) -> Self {
        let Past { seq, act, at, user, agent, value, metadata, .. } = past;
        Self { number: seq, act: act.as_str().to_owned(), at, user, agent, value, metadata }
    }
}

impl Operation for GetRecordHistory {
    type Response = RecordHistory;

    const FACTS: Facts =
        Facts::get("/v1/spaces/{space}/history/{key}", Tag::Records, "get_record_history");

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<RecordHistory> {
        let Self { space, key, limit: PageLimit(limit), before } = self;
        let reached = cx.space(&space)?;
        let page = queries::history(cx.who(), cx.services(), &reached, key, before, limit).await?;
        let HistoryPage { versions, next } = page;
        let items = versions.into_iter().map(RecordVersion::from).collect();
        Ok(RecordHistory { items, next, guarantee: reached.space.guarantee().into() })
    }
}
