use keyward::Code;
use keyward::Key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EntryView;
use crate::api::commits;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Effect, Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Reply};
use crate::problem::{Problem, Result};
use crate::vocabulary::PAGE_MAX;

/// Returns several entries, all as they were at one moment where the engine can do that.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GetEntries {
    /// The name of a store.
    pub store: String,
    /// The keys, at most 1000.
    #[schemars(length(max = 1000))]
    pub keys: Vec<Key>,
}

/// Several entries.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Entries {
    /// The entries in the order of the keys; null where a key is not set.
    pub entries: Vec<Option<EntryView>>,
}

impl Reply for Entries {}

impl Operation for GetEntries {
    type Response = Entries;

    const FACTS: Facts =
        Facts::post("/v1/stores/{store}/get", Tag::Entries, "get_entries").effect(Effect::Reads);

    fn needs(&self) -> Needs<'_> {
        Needs::Store { store: &self.store, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<Entries> {
        let Self { store, keys } = self;
        if keys.len() > PAGE_MAX {
            let detail = format!("at most {PAGE_MAX} keys can be read at once, not {}", keys.len());
            return Err(
                Problem::new(Code::LimitExceeded, detail).hint("Send fewer keys at a time.")
            );
        }
        let (who, services) = (cx.who(), cx.services());
        let found = commits::get_many(who, services, services.store(&store)?, &keys).await?;
        let shown = |(key, entry): (Key, Option<_>)| Some(EntryView::new(key, entry?));
        Ok(Entries { entries: keys.into_iter().zip(found).map(shown).collect() })
    }
}
