use keyward::Key;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::entries::{self, Terms};
use crate::authorize::Needs;
use crate::context::Context;
use crate::deleted::Deleted;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::{Problem, Result};
use crate::vocabulary::{IfVersion, LockTicket, precondition};

/// Deletes an entry. A key that is not set is reported as not found; repeating the request is safe.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct DeleteEntry {
    /// The name of a store.
    pub store: String,
    /// The key: segments with colons between them.
    pub key: Key,
    /// Delete only if the entry has this version; * means any version.
    pub if_version: Option<IfVersion>,
    /// Delete only while the lock with this ticket is held.
    pub lock: Option<LockTicket>,
}

impl Operation for DeleteEntry {
    type Response = Deleted;

    const FACTS: Facts =
        Facts::delete("/v1/stores/{store}/entries/{key}", Tag::Entries, "delete_entry")
            .idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Store { store: &self.store, need: Need::Write }
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.key)
    }

    async fn run(self, cx: &Context) -> Result<Deleted> {
        let Self { store, key, if_version, lock } = self;
        let terms = Terms {
            expected: precondition(if_version, false)?,
            lock: lock.map(|LockTicket(ticket)| ticket),
            mark: cx.mark().cloned(),
        };
        let served = cx.services().store(&store)?;
        match entries::delete(cx.who(), served, &key, &terms).await? {
            Some(written) => Ok(Deleted::one(written.replayed)),
            None => Err(Problem::not_found(format!("{key} not found"))),
        }
    }
}
