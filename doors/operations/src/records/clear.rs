use keyward::Prefix;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::clearing::{self, Confirmation};
use crate::authorize::Needs;
use crate::context::Context;
use crate::deleted::Cleared;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::Result;
use crate::values::leading;

/// Deletes all records below a prefix of a space's keys.
///
/// Their number must be confirmed: without `confirm`, or with another number, nothing is deleted, and the
/// error `unconfirmed` gives the number in `count`. Many records are deleted in several commits; after an
/// error, send the request again to delete the rest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ClearRecords {
    /// The name of a space.
    pub space: String,
    /// Delete what lies below this prefix of the space's keys; empty for everything that is the caller's.
    pub prefix: Prefix,
    /// How many records are to be deleted.
    pub confirm: Option<usize>,
    /// Only count what would be deleted.
    #[serde(default)]
    pub dry_run: bool,
}

impl Operation for ClearRecords {
    type Response = Cleared;

    const FACTS: Facts = Facts::delete("/v1/spaces/{space}/records", Tag::Records, "clear_records");

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Write }
    }

    async fn run(self, cx: &Context) -> Result<Cleared> {
        let Self { space, prefix, confirm, dry_run } = self;
        let reached = cx.space(&space)?;
        let values = leading(&reached.space.declaration().key, &prefix)?;
        let confirmation = Confirmation::of(dry_run, confirm);
        let (who, services) = (cx.who(), cx.services());
        let cleared = clearing::clear_records(who, services, &reached, values, confirmation);
        Ok(cleared.await?.into())
    }
}
