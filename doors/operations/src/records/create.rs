use keyward::{Code, Json, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{draft, stored};
use crate::api::entries::Precondition;
use crate::api::records::{self, Change};
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Effect, Facts, Tag};
use crate::identity::Need;
use crate::location::path;
use crate::operation::{Operation, Reply, Status};
use crate::problem::{Problem, Result};
use crate::stored::Stored;
use crate::values::Values;
use crate::vocabulary::Ttl;

/// Creates a record, with a key made from the values of its variables. A record that already exists is not
/// changed: the error is `exists`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CreateRecord {
    /// The name of a space.
    pub space: String,
    /// The values of the key's variables. The owner can be left out (default: the caller).
    pub values: Values,
    /// The value: JSON that matches the schema of the space.
    pub value: Json,
    /// Metadata to attach, as a JSON object.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
    /// Time to live in seconds; `never` for no expiry (default: that of the space).
    pub ttl: Option<Ttl>,
}

/// What was created.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Created {
    stored: Stored,
    #[serde(skip)]
    location: String,
}

impl Reply for Created {
    const STATUSES: &'static [Status] = &[Status::Created];

    fn status(&self) -> Status {
        Status::Created
    }

    fn version(&self) -> Option<&Version> {
        Some(&self.stored.version)
    }

    fn location(&self) -> Option<String> {
        Some(self.location.clone())
    }

    fn is_replayed(&self) -> bool {
        self.stored.is_replayed()
    }
}

impl Operation for CreateRecord {
    type Response = Created;

    const FACTS: Facts = Facts::post("/v1/spaces/{space}/records", Tag::Records, "create_record")
        .effect(Effect::Adds)
        .idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Write }
    }

    async fn run(self, cx: &Context) -> Result<Created> {
        let Self { space, values, value, metadata, ttl } = self;
        let reached = cx.space(&space)?;
        let key = reached.space.key(values.bindings(&reached.space.declaration().key)?)?;
        let change = Change::Put(draft(value, metadata, ttl));
        let expected = Precondition::Absent;
        let done = records::change(cx.who(), &reached, &key, &change, &expected, cx.mark()).await;
        let done = done.map_err(|problem| match problem.code() {
            Code::PreconditionFailed => Problem::new(Code::Exists, format!("{key} already exists"))
                .hint("Nothing was written. Choose other values, or change that record."),
            _ => problem,
        })?;
        let location = path(["v1", "spaces", space.as_str(), "records", &key.to_string()]);
        Ok(Created { stored: stored(key, done), location })
    }
}
