use std::borrow::Cow;

use keyward::records::{Answer, BUDGET_MAX, Bound, By, Explanation, Filter, Query, Read, Span};
use keyward::schema::FieldPath;
use keyward::{Bindings, Json, Order, Pattern};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RecordView;
use crate::api::queries;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Effect, Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Reply};
use crate::problem::{Problem, Result};
use crate::values::Values;
use crate::vocabulary::{Guarantee, PageLimit};

/// The most fields that a request names.
const FIELDS_MAX: usize = 256;

/// Finds records through an index, or in the order of their keys. A whole space is read only if `allow_scan`
/// says so.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct QueryRecords {
    /// The name of a space.
    pub space: String,
    /// The name of an index (default: none; records are read in the order of their keys).
    pub index: Option<String>,
    /// Without an index: the values of the key's leading variables. The owner can be left out.
    pub values: Option<Values>,
    /// The values of the index's leading fields.
    #[serde(default)]
    pub equal: Vec<Value>,
    /// Inclusive lower bound of the next field.
    pub from: Option<Value>,
    /// Inclusive upper bound of the next field.
    pub to: Option<Value>,
    /// Exclusive lower bound of the next field.
    pub above: Option<Value>,
    /// Exclusive upper bound of the next field.
    pub below: Option<Value>,
    /// Text that the next field starts with.
    pub prefix: Option<String>,
    /// The owner of the records, for callers who can choose (default: the caller).
    pub owner: Option<String>,
    /// Read from the last record to the first.
    #[serde(default)]
    pub descending: bool,
    /// Maximum number of records.
    #[serde(default)]
    pub limit: PageLimit,
    /// The `next` of the page before.
    pub cursor: Option<String>,
    /// The fields to return, such as `address.city` (default: the whole value).
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(max = FIELDS_MAX))]
    pub fields: Vec<FieldPath>,
    /// Further conditions: an object of fields, each with a value or with comparisons: `eq`, `ne`, `lt`, `lte`,
    /// `gt`, `gte`, `in`, `exists`, `contains`, `prefix`.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub filter: Option<Json>,
    /// Read the whole space if no index helps.
    #[serde(default)]
    pub allow_scan: bool,
    /// Maximum number of entries to read for one page; the server can allow fewer. A page that ends early for
    /// it has a cursor.
    #[schemars(range(min = 1, max = BUDGET_MAX))]
    pub budget: Option<usize>,
}

impl QueryRecords {
    /// The query of a space with such keys.
    fn query(self, pattern: &Pattern) -> Result<Query> {
        let span = self.span()?;
        let mut query = match (self.index, &self.values) {
            (Some(_), Some(_)) => {
                return Err(Problem::invalid("index and values exclude each other"));
            }
            (Some(name), None) => {
                let by = By::Index { name: name.clone(), equal: self.equal, span };
                Query { by, ..Query::index(name) }
            }
            (None, _) if span.is_some() || !self.equal.is_empty() => {
                return Err(Problem::invalid(
                    "equal, from, to, above, below and prefix need an index",
                ));
            }
            (None, Some(values)) => Query::key(values.bindings(pattern)?),
            (None, None) => Query::key(Bindings::new()),
        };
        query.owner = self.owner;
        query.order = if self.descending { Order::Descending } else { Order::Ascending };
        query.limit = self.limit.0;
        query.cursor = self.cursor;
        query.fields = bounded(self.fields)?;
        query.filter = filter(self.filter.as_ref())?;
        query.allow_scan = self.allow_scan;
        query.budget = self.budget.unwrap_or(query.budget);
        Ok(query)
    }

    fn span(&self) -> Result<Option<Span>> {
        let end = |inclusive: &Option<Value>, exclusive: &Option<Value>, names: &str| {
            let (value, inclusive) = match (inclusive, exclusive) {
                (Some(_), Some(_)) => {
                    return Err(Problem::invalid(format!("{names} exclude each other")));
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
            (Some(_), _, _) => Err(Problem::invalid("prefix excludes from, to, above and below")),
        }
    }
}

/// The fields to return, if they are not too many.
pub(super) fn bounded(fields: Vec<FieldPath>) -> Result<Vec<FieldPath>> {
    match fields.len() {
        0..=FIELDS_MAX => Ok(fields),
        count => {
            let detail = format!("fields must name at most {FIELDS_MAX} fields, not {count}");
            Err(Problem::invalid(detail))
        }
    }
}

/// Conditions, which can be none.
pub(super) fn filter(conditions: Option<&Json>) -> Result<Filter> {
    let filter = conditions.map(|conditions| Filter::parse(conditions.as_str())).transpose()?;
    Ok(filter.unwrap_or_default())
}

/// A page of records that match.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct QueryPage {
    /// The records, in the order of the query.
    pub records: Vec<RecordView>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
    /// What the page is worth.
    pub guarantee: Guarantee,
    /// What the page cost.
    pub read: Cost,
}

impl From<Answer> for QueryPage {
    fn from(answer: Answer) -> Self {
        let records = answer.records.into_iter().map(RecordView::from).collect();
        let (guarantee, read) = (answer.guarantee.into(), answer.read.into());
        Self { records, next: answer.next, guarantee, read }
    }
}

impl Reply for QueryPage {}

/// What a page cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Index entries, or keys, that were read.
    pub entries: usize,
    /// Records that were read.
    pub records: usize,
    /// Records that were read and did not match.
    pub dropped: usize,
}

impl From<Read> for Cost {
    fn from(Read { entries, records, dropped }: Read) -> Self {
        Self { entries, records, dropped }
    }
}

impl Operation for QueryRecords {
    type Response = QueryPage;

    const FACTS: Facts = Facts::post("/v1/spaces/{space}/query", Tag::Records, "query_records")
        .effect(Effect::Reads)
        .paged();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<QueryPage> {
        let reached = cx.space(&self.space)?;
        let query = self.query(&reached.space.declaration().key)?;
        Ok(queries::query(cx.who(), cx.services(), &reached, query).await?.into())
    }
}

/// The same query, explained rather than answered.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct ExplainQuery(pub QueryRecords);

impl JsonSchema for ExplainQuery {
    fn schema_name() -> Cow<'static, str> {
        "ExplainQuery".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = QueryRecords::json_schema(generator);
        let about = "Explains how a query is answered, and what its page costs.";
        schema.insert("description".to_owned(), about.into());
        schema
    }
}

/// How a query is answered.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct QueryPlan {
    /// The index; null where keys are read.
    pub index: Option<String>,
    /// The entries or keys that are read, as a person would write it.
    pub range: String,
    /// Whether a filter makes it read more than it returns.
    pub filtered: bool,
    /// How many records the page has.
    pub records: usize,
    /// Whether there are more.
    pub more: bool,
    /// What the page is worth.
    pub guarantee: Guarantee,
    /// What the page costs.
    pub read: Cost,
}

impl From<Explanation> for QueryPlan {
    fn from(told: Explanation) -> Self {
        let Explanation { index, range, filtered, guarantee, read, records, more } = told;
        let (guarantee, read) = (guarantee.into(), read.into());
        Self { index, range, filtered, records, more, guarantee, read }
    }
}

impl Reply for QueryPlan {}

impl Operation for ExplainQuery {
    type Response = QueryPlan;

    const FACTS: Facts = Facts::post("/v1/spaces/{space}/explain", Tag::Records, "explain_query")
        .effect(Effect::Reads);

    fn needs(&self) -> Needs<'_> {
        self.0.needs()
    }

    async fn run(self, cx: &Context) -> Result<QueryPlan> {
        let Self(query) = self;
        let reached = cx.space(&query.space)?;
        let query = query.query(&reached.space.declaration().key)?;
        Ok(queries::explain(cx.who(), cx.services(), &reached, query).await?.into())
    }
}
