use keyward::records::{Merge, Operation as Change, Precondition, Space};
use keyward::schema::FieldPath;
use keyward::{Code, Json, Key, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArrayRule, draft};
use crate::api::batches;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Reply};
use crate::problem::{Problem, Result};
use crate::values::Values;
use crate::vocabulary::{Guarantee, PAGE_MAX, Ttl};

/// Changes several records: all in one commit, or each on its own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct BatchRecords {
    /// The name of a space.
    pub space: String,
    /// The changes, at most 1000, and at most one for each record.
    #[schemars(length(min = 1, max = 1000))]
    pub operations: Vec<RecordChange>,
    /// Make all changes in one commit, or none of them. Otherwise each is made on its own, one after the other,
    /// and the response says what became of each (default: true).
    #[serde(default = "yes")]
    pub together: bool,
}

fn yes() -> bool {
    true
}

/// A change of a record.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum RecordChange {
    /// Set a record.
    Put(RecordPut),
    /// Create a record; it must not exist.
    Create(RecordCreate),
    /// Merge a part into a record.
    Merge(RecordMerge),
    /// Delete a record.
    Delete(RecordDelete),
}

/// A record to set.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordPut {
    /// The whole key; or `values`.
    key: Option<Key>,
    /// The values of the key's variables.
    values: Option<Values>,
    /// The value: JSON that matches the schema of the space.
    value: Json,
    /// Metadata to attach, as a JSON object.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    metadata: Option<Json>,
    /// Time to live in seconds; `never` for no expiry, `keep` for the present one (default: that of the space).
    ttl: Option<Ttl>,
    /// Write only if the record has this version; * means any version.
    if_match: Option<String>,
}

/// A record to create.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordCreate {
    /// The whole key; or `values`.
    key: Option<Key>,
    /// The values of the key's variables.
    values: Option<Values>,
    /// The value: JSON that matches the schema of the space.
    value: Json,
    /// Metadata to attach, as a JSON object.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    metadata: Option<Json>,
    /// Time to live in seconds; `never` for no expiry (default: that of the space).
    ttl: Option<Ttl>,
}

/// A part to merge into a record.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordMerge {
    /// The whole key; or `values`.
    key: Option<Key>,
    /// The values of the key's variables.
    values: Option<Values>,
    /// The part to merge: objects are merged, null removes a member, anything else replaces.
    value: Json,
    /// How an array is merged with an array.
    #[serde(default)]
    arrays: ArrayRule,
    /// Fields that stay as they are where the record has them, such as `address.city`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    preserve: Vec<FieldPath>,
    /// Write only if the record has this version; * means any version.
    if_match: Option<String>,
}

/// A record to delete.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordDelete {
    /// The whole key; or `values`.
    key: Option<Key>,
    /// The values of the key's variables.
    values: Option<Values>,
    /// Delete only if the record has this version; * means any version.
    if_match: Option<String>,
}

impl RecordChange {
    fn in_space(self, space: &Space) -> Result<Change> {
        Ok(match self {
            Self::Put(RecordPut { key, values, value, metadata, ttl, if_match }) => {
                let draft = draft(value, metadata, ttl).expecting(expected(if_match.as_deref()));
                Change::Put(target(space, key, values)?, draft)
            }
            Self::Create(RecordCreate { key, values, value, metadata, ttl }) => {
                let draft = draft(value, metadata, ttl).expecting(Precondition::Absent);
                Change::Put(target(space, key, values)?, draft)
            }
            Self::Merge(RecordMerge { key, values, value, arrays, preserve, if_match }) => {
                let merge = Merge { patch: value, arrays: arrays.into(), preserve };
                Change::Merge(target(space, key, values)?, merge, expected(if_match.as_deref()))
            }
            Self::Delete(RecordDelete { key, values, if_match }) => {
                Change::Delete(target(space, key, values)?, expected(if_match.as_deref()))
            }
        })
    }
}

fn target(space: &Space, key: Option<Key>, values: Option<Values>) -> Result<Key> {
    match (key, values) {
        (Some(key), None) => Ok(key),
        (None, Some(values)) => Ok(space.key(values.bindings(&space.declaration().key)?)?),
        _ => Err(Problem::invalid("an operation must have either key or values")),
    }
}

fn expected(version: Option<&str>) -> Precondition {
    match version {
        None => Precondition::Any,
        Some("*") => Precondition::Present,
        Some(version) => Precondition::Version(Version::parse(version)),
    }
}

/// What became of a batch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BatchResults {
    /// The results, in the order of the operations.
    pub results: Vec<BatchResult>,
    /// What the response is worth.
    pub guarantee: Guarantee,
    #[serde(skip)]
    is_replayed: bool,
}

impl Reply for BatchResults {
    fn is_replayed(&self) -> bool {
        self.is_replayed
    }
}

/// What became of an operation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum BatchResult {
    /// It was done.
    Done {
        /// The new version; null for a record that was deleted.
        version: Option<Version>,
    },
    /// It was not done: only where each is made on its own.
    Failed {
        /// Why.
        problem: BatchProblem,
    },
}

/// Why an operation was not done.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BatchProblem {
    /// The code of the error.
    #[schemars(with = "String")]
    pub code: Code,
    /// What happened.
    pub detail: String,
}

impl From<Result<Option<Version>>> for BatchResult {
    fn from(outcome: Result<Option<Version>>) -> Self {
        match outcome {
            Ok(version) => Self::Done { version },
            Err(problem) => {
                let (code, detail) = (problem.code(), problem.detail().to_owned());
                Self::Failed { problem: BatchProblem { code, detail } }
            }
        }
    }
}

impl Operation for BatchRecords {
    type Response = BatchResults;

    const FACTS: Facts =
        Facts::post("/v1/spaces/{space}/batch", Tag::Records, "batch_records").idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Write }
    }

    async fn run(self, cx: &Context) -> Result<BatchResults> {
        let Self { space, operations, together } = self;
        if operations.len() > PAGE_MAX {
            let detail =
                format!("a batch has at most {PAGE_MAX} operations, not {}", operations.len());
            return Err(Problem::new(Code::LimitExceeded, detail)
                .hint("Nothing was written. Send fewer operations at a time."));
        }
        let reached = cx.space(&space)?;
        let changes = operations.into_iter().map(|change| change.in_space(&reached.space));
        let changes = changes.collect::<Result<Vec<_>>>()?;
        let guarantee = reached.space.guarantee().into();
        if together {
            let done = batches::together(cx.who(), &reached, &changes, cx.mark()).await?;
            let results = done.versions.into_iter().map(|version| Ok(version).into()).collect();
            return Ok(BatchResults { results, guarantee, is_replayed: done.replayed });
        }
        if cx.mark().is_some() {
            return Err(Problem::invalid("an idempotency key needs together")
                .hint("Leave out Idempotency-Key, or set together to true."));
        }
        let done = batches::each(cx.who(), &reached, &changes).await?;
        let results = done.into_iter().map(BatchResult::from).collect();
        Ok(BatchResults { results, guarantee, is_replayed: false })
    }
}
