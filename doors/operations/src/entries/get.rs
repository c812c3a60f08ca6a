use keyward::Key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EntryView;
use crate::api::entries;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::{Problem, Result};

/// Returns the entry stored under a key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GetEntry {
    /// The name of a store.
    pub store: String,
    /// The key: segments with colons between them.
    pub key: Key,
}

impl Operation for GetEntry {
    type Response = EntryView;

    const FACTS: Facts =
        Facts::get("/v1/stores/{store}/entries/{key}", Tag::Entries, "get_entry").view();

    fn needs(&self) -> Needs<'_> {
        Needs::Store { store: &self.store, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<EntryView> {
        let served = cx.services().store(&self.store)?;
        match entries::get(cx.who(), served, &self.key).await? {
            Some(entry) => Ok(EntryView::new(self.key, entry)),
            None => Err(Problem::not_found(format!("{} not found", self.key))),
        }
    }
}
