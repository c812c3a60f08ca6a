use keyward::Key;
use schemars::JsonSchema;
use serde::Deserialize;

use super::stored;
use crate::api::records::{self, Change};
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::Result;
use crate::stored::Stored;
use crate::vocabulary::{IfVersion, precondition};

/// Restores an earlier version of a record, as a new version.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct RestoreRecord {
    /// The name of a space.
    pub space: String,
    /// The whole key: segments with colons between them.
    pub key: Key,
    /// The number of the version to restore, as the history shows it.
    pub to: u64,
    /// Write only if the record has this version; * means any version.
    pub if_version: Option<IfVersion>,
    /// Write only if the record does not exist.
    #[serde(default)]
    pub if_absent: bool,
}

impl Operation for RestoreRecord {
    type Response = Stored;

    const FACTS: Facts =
        Facts::post("/v1/spaces/{space}/restore/{key}", Tag::Records, "restore_record")
            .idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Write }
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.key)
    }

    async fn run(self, cx: &Context) -> Result<Stored> {
        let Self { space, key, to, if_version, if_absent } = self;
        let reached = cx.space(&space)?;
        let expected = precondition(if_version, if_absent)?;
        let change = Change::Restore(to);
        let done = records::change(cx.who(), &reached, &key, &change, &expected, cx.mark()).await?;
        Ok(stored(key, done))
    }
}
