use keyward::{Code, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RecordView;
use crate::api::queries;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Effect, Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Reply};
use crate::problem::{Problem, Result};
use crate::vocabulary::{Guarantee, PAGE_MAX};

/// Returns several records.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GetRecords {
    /// The name of a space.
    pub space: String,
    /// The whole keys, at most 1000, each once.
    #[schemars(length(max = 1000))]
    pub keys: Vec<Key>,
}

/// Several records.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Records {
    /// The records in the order of the keys; null where a record does not exist.
    pub records: Vec<Option<RecordView>>,
    /// What the response is worth.
    pub guarantee: Guarantee,
}

impl Reply for Records {}

impl Operation for GetRecords {
    type Response = Records;

    const FACTS: Facts =
        Facts::post("/v1/spaces/{space}/get", Tag::Records, "get_records").effect(Effect::Reads);

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<Records> {
        let Self { space, keys } = self;
        if keys.len() > PAGE_MAX {
            let detail =
                format!("at most {PAGE_MAX} records can be read at once, not {}", keys.len());
            return Err(
                Problem::new(Code::LimitExceeded, detail).hint("Send fewer keys at a time.")
            );
        }
        let reached = cx.space(&space)?;
        let found = queries::get_many(cx.who(), cx.services(), &reached, keys).await?;
        let records = found.into_iter().map(|record| Some(RecordView::from(record?))).collect();
        Ok(Records { records, guarantee: reached.space.guarantee().into() })
    }
}
