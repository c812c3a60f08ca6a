use keyward::{Json, Key};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::entries::{self, Terms};
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Body, Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Status};
use crate::problem::Result;
use crate::stored::Stored;
use crate::vocabulary::{IfVersion, LockTicket, precondition};

/// Merges a part into an entry (JSON Merge Patch, RFC 7396). A key that is not set is set to the part.
/// Metadata and time to live stay.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct PatchEntry {
    /// The name of a store.
    pub store: String,
    /// The key: segments with colons between them.
    pub key: Key,
    /// The part to merge: objects are merged, null removes a member, anything else replaces.
    pub patch: Json,
    /// Write only if the entry has this version; * means any version.
    pub if_version: Option<IfVersion>,
    /// Write only if the key is not set.
    #[serde(default)]
    pub if_absent: bool,
    /// Write only while the lock with this ticket is held.
    pub lock: Option<LockTicket>,
}

impl Operation for PatchEntry {
    type Response = Stored;

    const FACTS: Facts =
        Facts::patch("/v1/stores/{store}/entries/{key}", Tag::Entries, "patch_entry")
            .body(Body::MergePatch("patch"))
            .idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Store { store: &self.store, need: Need::Write }
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.key)
    }

    async fn run(self, cx: &Context) -> Result<Stored> {
        let Self { store, key, patch, if_version, if_absent, lock } = self;
        let terms = Terms {
            expected: precondition(if_version, if_absent)?,
            lock: lock.map(|LockTicket(ticket)| ticket),
            mark: cx.mark().cloned(),
        };
        let served = cx.services().store(&store)?;
        let written = entries::patch(cx.who(), served, &key, patch, &terms).await?;
        Ok(Stored::new(key, written.version, Status::Done, written.replayed))
    }
}
