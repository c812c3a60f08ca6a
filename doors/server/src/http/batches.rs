//! Several changes of records at once: `/v1/spaces/{space}/batch`.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::records::{Draft, Merge, Operation, Precondition, Space};
use keyward::{Code, Version};
use keyward_operations::records::{ArrayRule, draft};
use keyward_operations::values::Values;
use keyward_operations::vocabulary::Ttl;
use serde::Deserialize;
use serde_json::json as value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{json, mark_replayed};
use super::entries::{PAGE_MAX, stored};
use super::questions::field;
use super::request::{At, Content, key};
use super::stores::tier;
use super::text::{Object, quoted};
use crate::api::batches;
use crate::api::spaces::reach;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(batch))
}

/// Changes of several records.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BatchBody<'b> {
    /// Up to 1000, at most one for each record.
    #[serde(borrow)]
    #[schema(min_items = 1, max_items = 1000)]
    operations: Vec<OperationBody<'b>>,
    /// Whether all of them are made in one commit, or none. Otherwise each is made on its own, one
    /// after the other, and what became of each is told.
    #[serde(default = "yes")]
    #[schema(default = true)]
    together: bool,
}

fn yes() -> bool {
    true
}

/// One change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum OperationBody<'b> {
    /// Set a record.
    #[serde(borrow)]
    Put(RecordPut<'b>),
    /// Make a record that must not be there.
    #[serde(borrow)]
    Create(RecordCreate<'b>),
    /// Merge a part into a record.
    #[serde(borrow)]
    Merge(RecordMerge<'b>),
    /// Remove a record.
    Delete(RecordDelete),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RecordPut<'b> {
    /// The whole key; or `values`.
    key: Option<String>,
    /// The values of the key's variables.
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    values: Option<Values>,
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    metadata: Option<&'b RawValue>,
    /// For how many seconds the record shall live, or `never`, or `keep`.
    #[schema(value_type = Option<String>)]
    ttl: Option<Ttl>,
    /// The version it must have; `*`, if it must only be there.
    if_match: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RecordCreate<'b> {
    /// The whole key; or `values`.
    key: Option<String>,
    /// The values of the key's variables.
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    values: Option<Values>,
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    metadata: Option<&'b RawValue>,
    /// For how many seconds the record shall live, or `never`.
    #[schema(value_type = Option<String>)]
    ttl: Option<Ttl>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RecordMerge<'b> {
    /// The whole key; or `values`.
    key: Option<String>,
    /// The values of the key's variables.
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    values: Option<Values>,
    /// The part.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    /// What becomes of an array that meets an array.
    #[serde(default)]
    #[schema(value_type = String)]
    arrays: ArrayRule,
    /// Fields that stay as they are if they are there.
    #[serde(default)]
    preserve: Vec<String>,
    /// The version it must have; `*`, if it must only be there.
    if_match: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RecordDelete {
    /// The whole key; or `values`.
    key: Option<String>,
    /// The values of the key's variables.
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    values: Option<Values>,
    /// The version it must have; `*`, if it must only be there.
    if_match: Option<String>,
}

impl OperationBody<'_> {
    fn operation(&self, space: &Space) -> Result<Operation> {
        Ok(match self {
            Self::Put(put) => {
                let draft = drafted(put.value, put.metadata, put.ttl)?;
                let expect = expected(put.if_match.as_deref());
                Operation::Put(target(space, &put.key, &put.values)?, draft.expecting(expect))
            }
            Self::Create(create) => {
                let draft = drafted(create.value, create.metadata, create.ttl)?;
                let draft = draft.expecting(Precondition::Absent);
                Operation::Put(target(space, &create.key, &create.values)?, draft)
            }
            Self::Merge(part) => {
                let preserve = part.preserve.iter().map(|name| field(name));
                let preserve = preserve.collect::<Result<_>>()?;
                let patch = stored(part.value)?;
                let merge = Merge { patch, arrays: part.arrays.into(), preserve };
                let expect = expected(part.if_match.as_deref());
                Operation::Merge(target(space, &part.key, &part.values)?, merge, expect)
            }
            Self::Delete(delete) => {
                let expect = expected(delete.if_match.as_deref());
                Operation::Delete(target(space, &delete.key, &delete.values)?, expect)
            }
        })
    }
}

fn drafted(value: &RawValue, metadata: Option<&RawValue>, ttl: Option<Ttl>) -> Result<Draft> {
    Ok(draft(stored(value)?, metadata.map(stored).transpose()?, ttl))
}

fn target(space: &Space, text: &Option<String>, values: &Option<Values>) -> Result<keyward::Key> {
    match (text, values) {
        (Some(text), None) => key(text),
        (None, Some(values)) => Ok(space.key(values.bindings(&space.declaration().key)?)?),
        _ => Err(Problem::invalid("an operation has a key, or the values of its variables")),
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
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct BatchAnswer {
    /// In the order of the operations.
    results: Vec<BatchResult>,
    /// What the store's engine makes of it.
    guarantee: String,
}

/// What became of an operation.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct BatchResult {
    /// The new version; null for a record that is not there any more.
    version: Option<String>,
    /// Where each is made on its own: why it was not.
    problem: Option<serde_json::Value>,
}

/// Changes several records: all in one commit, or each on its own.
#[utoipa::path(
    post,
    path = "/v1/spaces/{space}/batch",
    tag = "records",
    params(
        ("space" = String, Path, description = "The name of a space"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = BatchBody<'_>,
    responses((status = 200, description = "What became of it", body = BatchAnswer), ProblemAnswers),
)]
async fn batch(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let asked: BatchBody<'_> = content.read()?;
    if asked.operations.len() > PAGE_MAX {
        let detail =
            format!("a batch has up to {PAGE_MAX} operations, not {}", asked.operations.len());
        return Err(Problem::new(Code::LimitExceeded, detail)
            .hint("Make some of them at a time.")
            .into());
    }
    let operations = asked.operations.iter().map(|it| it.operation(&reached.space));
    let operations = operations.collect::<Result<Vec<_>>>()?;
    let mark = content.mark(&who)?;
    let (results, replayed): (Vec<String>, bool) = if asked.together {
        let done = batches::together(&who, &reached, &operations, mark.as_ref()).await?;
        (done.versions.iter().map(|version| result(version.as_ref())).collect(), done.replayed)
    } else if mark.is_some() {
        return Err(Problem::invalid("an idempotency key is for changes that are made together")
            .hint("Leave out Idempotency-Key, or together.")
            .into());
    } else {
        let done = batches::each(&who, &reached, &operations).await?;
        let results = done.iter().map(|outcome| match outcome {
            Ok(version) => result(version.as_ref()),
            Err(problem) => {
                let told = value!({ "code": problem.code(), "detail": problem.detail() });
                Object::new().raw("problem", &told.to_string()).finish()
            }
        });
        (results.collect(), false)
    };
    let text =
        Object::new().list("results", results).text("guarantee", tier(reached.space.guarantee()));
    let mut response = json(StatusCode::OK, text.finish());
    mark_replayed(&mut response, replayed);
    Ok(response)
}

fn result(version: Option<&Version>) -> String {
    let version = version.map_or("null".to_owned(), |version| quoted(&version.to_string()));
    Object::new().raw("version", &version).finish()
}
