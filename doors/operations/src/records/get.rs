use keyward::Key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RecordView;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::{Problem, Result};

/// Returns the record stored under a key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GetRecord {
    /// The name of a space.
    pub space: String,
    /// The whole key: segments with colons between them.
    pub key: Key,
}

impl Operation for GetRecord {
    type Response = RecordView;

    const FACTS: Facts =
        Facts::get("/v1/spaces/{space}/records/{key}", Tag::Records, "get_record").view();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<RecordView> {
        let reached = cx.space(&self.space)?;
        match reached.space.get(&self.key).await? {
            Some(record) => Ok(record.into()),
            None => Err(Problem::not_found(format!("{} not found", self.key))),
        }
    }
}
