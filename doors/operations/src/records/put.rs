use keyward::{Json, Key};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{draft, stored};
use crate::api::records::{self, Change};
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Body, Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::Result;
use crate::stored::Stored;
use crate::vocabulary::{IfVersion, Ttl, precondition};

/// Sets a record. Replaces the value, the metadata and the time to live, and updates the indexes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct PutRecord {
    /// The name of a space.
    pub space: String,
    /// The whole key: segments with colons between them.
    pub key: Key,
    /// The value: JSON that matches the schema of the space.
    pub value: Json,
    /// Metadata to attach, as a JSON object.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
    /// Time to live in seconds; `never` for no expiry, `keep` for the present one (default: that of the space).
    pub ttl: Option<Ttl>,
    /// Write only if the record has this version; * means any version.
    pub if_version: Option<IfVersion>,
    /// Write only if the record does not exist.
    #[serde(default)]
    pub if_absent: bool,
}

impl Operation for PutRecord {
    type Response = Stored;

    const FACTS: Facts = Facts::put("/v1/spaces/{space}/records/{key}", Tag::Records, "put_record")
        .body(Body::Whole("value"))
        .view()
        .idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Write }
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.key)
    }

    async fn run(self, cx: &Context) -> Result<Stored> {
        let Self { space, key, value, metadata, ttl, if_version, if_absent } = self;
        let reached = cx.space(&space)?;
        let expected = precondition(if_version, if_absent)?;
        let change = Change::Put(draft(value, metadata, ttl));
        let done = records::change(cx.who(), &reached, &key, &change, &expected, cx.mark()).await?;
        Ok(stored(key, done))
    }
}
