use keyward::Key;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::records::{self, Change};
use crate::authorize::Needs;
use crate::context::Context;
use crate::deleted::Deleted;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::{Problem, Result};
use crate::vocabulary::{IfVersion, precondition};

/// Deletes a record. A record that does not exist is reported as not found; repeating the request is safe.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct DeleteRecord {
    /// The name of a space.
    pub space: String,
    /// The whole key: segments with colons between them.
    pub key: Key,
    /// Delete only if the record has this version; * means any version.
    pub if_version: Option<IfVersion>,
}

impl Operation for DeleteRecord {
    type Response = Deleted;

    const FACTS: Facts =
        Facts::delete("/v1/spaces/{space}/records/{key}", Tag::Records, "delete_record")
            .idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Write }
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.key)
    }

    async fn run(self, cx: &Context) -> Result<Deleted> {
        let Self { space, key, if_version } = self;
        let reached = cx.space(&space)?;
        let expected = precondition(if_version, false)?;
        let change = Change::Delete;
        let done = records::change(cx.who(), &reached, &key, &change, &expected, cx.mark()).await?;
        match done.was_absent {
            true => Err(Problem::not_found(format!("{key} not found"))),
            false => Ok(Deleted::one(done.replayed)),
        }
    }
}
