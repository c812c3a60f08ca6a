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
use crate::vocabulary::LockTicket;

/// Deletes all entries below a prefix that a listing shows.
///
/// Their number must be confirmed: without `confirm`, or with another number, nothing is deleted, and the
/// error `unconfirmed` gives the number in `count`. The request is refused as a whole if one of the entries
/// cannot be deleted by itself, such as a record of a space. Many entries are deleted in several commits;
/// after an error, send the request again to delete the rest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ClearEntries {
    /// The name of a store.
    pub store: String,
    /// Delete what lies below this prefix; empty for everything.
    pub prefix: Prefix,
    /// How many entries are to be deleted.
    pub confirm: Option<usize>,
    /// Only count what would be deleted.
    #[serde(default)]
    pub dry_run: bool,
    /// Delete only while the lock with this ticket is held.
    pub lock: Option<LockTicket>,
}

impl Operation for ClearEntries {
    type Response = Cleared;

    const FACTS: Facts = Facts::delete("/v1/stores/{store}/entries", Tag::Entries, "clear_entries");

    fn needs(&self) -> Needs<'_> {
        Needs::Store { store: &self.store, need: Need::Write }
    }

    async fn run(self, cx: &Context) -> Result<Cleared> {
        let Self { store, prefix, confirm, dry_run, lock } = self;
        let served = cx.services().store(&store)?;
        let lock = lock.as_ref().map(|LockTicket(ticket)| ticket);
        let confirmation = Confirmation::of(dry_run, confirm);
        let (who, services) = (cx.who(), cx.services());
        let cleared = clearing::clear_entries(who, services, served, &prefix, confirmation, lock);
        Ok(cleared.await?.into())
    }
}
