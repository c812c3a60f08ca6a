//! Questions to a space: `/v1/spaces/{space}/query` and `/v1/spaces/{space}/explain`.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::records::{Answer, Bound, By, Filter, Query, Span};
use keyward::schema::FieldPath;
use keyward::{Order, Pattern};
use keyward_operations::values::Values;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::entries::page_limit;
use super::request::{At, Content};
use super::stores::tier;
use super::text::{self, Object};
use crate::api::queries;
use crate::api::spaces::reach;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

/// The most fields that are named at once.
const FIELDS_MAX: usize = 256;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(query)).routes(routes!(explain))
}

/// A question to an index, or to the keys themselves.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionBody<'b> {
    /// The index to ask. Without one, records are read in the order of their keys.
    index: Option<String>,
    /// Without an index: the values of the key's leading variables. The owner may be left out.
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    values: Option<Values>,
    /// The values of the index's leading fields.
    #[serde(default)]
    #[schema(value_type = Vec<serde_json::Value>)]
    equal: Vec<Value>,
    /// The field after them is at least this.
    #[schema(value_type = Option<serde_json::Value>)]
    from: Option<Value>,
    /// The field after them is at most this.
    #[schema(value_type = Option<serde_json::Value>)]
    to: Option<Value>,
    /// The field after them is more than this.
    #[schema(value_type = Option<serde_json::Value>)]
    above: Option<Value>,
    /// The field after them is less than this.
    #[schema(value_type = Option<serde_json::Value>)]
    below: Option<Value>,
    /// The field after them starts with this text.
    prefix: Option<String>,
    /// Whose records, for those who may choose.
    owner: Option<String>,
    /// Whether to begin at the end.
    #[serde(default)]
    descending: bool,
    /// At most so many records.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page of the same question ended.
    cursor: Option<String>,
    /// The fields to give back; all of them, if none are named.
    #[serde(default)]
    #[schema(max_items = 256)]
    fields: Vec<String>,
    /// What must hold besides: an object of fields, each with a value, or with comparisons: `eq`,
    /// `ne`, `lt`, `lte`, `gt`, `gte`, `in`, `exists`, `contains`, `prefix`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    filter: Option<&'b RawValue>,
    /// Whether everything may be read where no index helps.
    #[serde(default)]
    allow_scan: bool,
    /// How many entries may be read for one page; the server may allow fewer. A page that ends early for
    /// it has a cursor.
    #[schema(minimum = 1, maximum = 100000)]
    budget: Option<usize>,
}

impl QuestionBody<'_> {
    /// The question that is meant, to a space with such keys.
    pub fn query(self, pattern: &Pattern) -> Result<Query> {
        let span = self.span()?;
        let mut query = match (self.index, &self.values) {
            (Some(_), Some(_)) => {
                return Err(Problem::invalid(
                    "a question has an index or values of the key, not both",
                ));
            }
            (Some(name), None) => {
                let by = By::Index { name: name.clone(), equal: self.equal, span };
                Query { by, ..Query::index(name) }
            }
            (None, _) if span.is_some() || !self.equal.is_empty() => {
                return Err(Problem::invalid(
                    "equal, from, to, above, below and prefix ask an index, and none is named",
                ));
            }
            (None, Some(values)) => Query::key(values.bindings(pattern)?),
            (None, None) => Query::key(keyward::Bindings::new()),
        };
        query.owner = self.owner;
        query.order = if self.descending { Order::Descending } else { Order::Ascending };
        query.limit = page_limit(self.limit)?;
        query.cursor = self.cursor;
        query.fields = fields(&self.fields)?;
        query.filter = filter(self.filter)?;
        query.allow_scan = self.allow_scan;
        query.budget = self.budget.unwrap_or(query.budget);
        Ok(query)
    }

    fn span(&self) -> Result<Option<Span>> {
        let end = |inclusive: &Option<Value>, exclusive: &Option<Value>, names: &str| {
            let (value, inclusive) = match (inclusive, exclusive) {
                (Some(_), Some(_)) => {
                    return Err(Problem::invalid(format!("{names} are two ends of the same side")));
                }
                (Some(value), None) => (value, true),
                (None, Some(value)) => (value, false),
                (None, None) => return Ok(None),
            };
            Ok(Some(Bound { value: value.clone(), inclusive }))
        };
        let from = end(&self.from, &self.above, "from and above")?;
        let to = end(&self.to, &self.below, "to and below")?;
        match (&self.prefix, from, to) {
            (None, None, None) => Ok(None),
            (None, from, to) => Ok(Some(Span::Between { from, to })),
            (Some(prefix), None, None) => Ok(Some(Span::Prefix(prefix.clone()))),
            (Some(_), _, _) => Err(Problem::invalid("a field has a prefix or lies between ends")),
        }
    }
}

/// A field, as a client names it.
pub(crate) fn field(text: &str) -> Result<FieldPath> {
    text.parse().map_err(|error| Problem::invalid(format!("{error}")))
}

/// Fields to give back.
pub(crate) fn fields(names: &[String]) -> Result<Vec<FieldPath>> {
    if names.len() > FIELDS_MAX {
        let detail = format!("up to {FIELDS_MAX} fields are named at once, not {}", names.len());
        return Err(Problem::invalid(detail));
    }
    names.iter().map(|name| field(name)).collect()
}

/// Conditions, which may be none.
pub(crate) fn filter(text: Option<&RawValue>) -> Result<Filter> {
    Ok(text.map(|text| Filter::parse(text.get())).transpose()?.unwrap_or_default())
}

/// A page of an answer, as text.
pub(crate) fn page(answer: &Answer) -> String {
    Object::new()
        .list("records", answer.records.iter().map(|record| text::record(record).finish()))
        .optional("next", answer.next.as_deref())
        .text("guarantee", tier(answer.guarantee))
        .raw("read", &text::read(&answer.read))
        .finish()
}

/// One page of an answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(crate) struct AnswerBody {
    /// In the order asked for.
    records: Vec<FoundRecord>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
    /// What the answer is worth: with `atomic` and `recoverable` no record that matches is missing
    /// and none is wrong; with `advisory` both may be, for a while.
    guarantee: String,
    /// What it cost.
    read: ReadBody,
}

/// A record that was found.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct FoundRecord {
    key: String,
    /// The value, or the fields of it that were asked for or that the caller sees.
    value: serde_json::Value,
    /// What is said about the value.
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
    version: String,
    /// From when on it is absent.
    expires: Option<String>,
}

/// What answering cost.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(crate) struct ReadBody {
    /// Index entries, or keys, that were read.
    entries: usize,
    /// Records that were fetched.
    records: usize,
    /// Records that were fetched and did not match.
    dropped: usize,
}

/// Finds records through an index, or in the order of their keys. Nothing is read from end to end
/// unless that is allowed.
#[utoipa::path(
    post,
    path = "/v1/spaces/{space}/query",
    tag = "questions",
    params(("space" = String, Path, description = "The name of a space")),
    request_body = QuestionBody<'_>,
    responses((status = 200, description = "A page", body = AnswerBody), ProblemAnswers),
)]
async fn query(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let asked: QuestionBody<'_> = content.read()?;
    let query = asked.query(&reached.space.declaration().key)?;
    Ok(json(StatusCode::OK, queries::query(&who, &app, &reached, query, page).await?))
}

/// How a question is answered.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct ExplanationBody {
    /// The index; null, where the keys themselves are read.
    index: Option<String>,
    /// Which entries or keys are read, as a person would write it.
    range: String,
    /// Whether a filter makes it read more than it gives back.
    filtered: bool,
    /// How many records the page has.
    records: usize,
    /// Whether there are more.
    more: bool,
    /// What the answer is worth.
    guarantee: String,
    /// What the page cost.
    read: ReadBody,
}

/// Tells how a question is answered, and what its page costs.
#[utoipa::path(
    post,
    path = "/v1/spaces/{space}/explain",
    tag = "questions",
    params(("space" = String, Path, description = "The name of a space")),
    request_body = QuestionBody<'_>,
    responses((status = 200, description = "How it is answered", body = ExplanationBody), ProblemAnswers),
)]
async fn explain(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let asked: QuestionBody<'_> = content.read()?;
    let query = asked.query(&reached.space.declaration().key)?;
    let told = queries::explain(&who, &app, &reached, query).await?;
    let text = Object::new()
        .optional("index", told.index.as_deref())
        .text("range", &told.range)
        .raw("filtered", &told.filtered.to_string())
        .raw("records", &told.records.to_string())
        .raw("more", &told.more.to_string())
        .text("guarantee", tier(told.guarantee))
        .raw("read", &text::read(&told.read));
    Ok(json(StatusCode::OK, text.finish()))
}
