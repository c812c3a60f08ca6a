use keyward::{Expiry, Json, Key, Put};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::entries::{self, Precondition, Terms};
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Body, Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Status};
use crate::problem::Result;
use crate::stored::Stored;
use crate::vocabulary::{IfVersion, LockTicket, Seconds, precondition};

/// Sets a key to a value. Replaces the value, the metadata and the time to live.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct PutEntry {
    /// The name of a store.
    pub store: String,
    /// The key: segments with colons between them.
    pub key: Key,
    /// The value: any JSON.
    pub value: Json,
    /// Metadata to attach, as a JSON object.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
    /// Time to live in seconds (default: no expiry).
    pub ttl: Option<Seconds>,
    /// Write only if the entry has this version; * means any version.
    pub if_version: Option<IfVersion>,
    /// Write only if the key is not set.
    #[serde(default)]
    pub if_absent: bool,
    /// Write only while the lock with this ticket is held.
    pub lock: Option<LockTicket>,
}

impl Operation for PutEntry {
    type Response = Stored;

    const FACTS: Facts = Facts::put("/v1/stores/{store}/entries/{key}", Tag::Entries, "put_entry")
        .body(Body::Whole("value"))
        .view()
        .idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Store { store: &self.store, need: Need::Write }
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.key)
    }

    async fn run(self, cx: &Context) -> Result<Stored> {
        let Self { store, key, value, metadata, ttl, if_version, if_absent, lock } = self;
        let put = Put { value, metadata, expiry: ttl.map(Expiry::from) };
        let terms = Terms {
            expected: precondition(if_version, if_absent)?,
            lock: lock.map(|LockTicket(ticket)| ticket),
            mark: cx.mark().cloned(),
        };
        let served = cx.services().store(&store)?;
        let written = entries::put(cx.who(), served, &key, put, &terms).await?;
        let status = match terms.expected {
            Precondition::Absent => Status::Created,
            _ => Status::Done,
        };
        Ok(Stored::new(key, written.version, status, written.replayed))
    }
}
