//! Records: `/v1/spaces/{space}/records`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use keyward::records::{Arrays, Draft, Listed, ListedItem, Listing, Merge};
use keyward::{Code, Json, Order, Pattern, Tier, moment_text};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{changed, empty, json, location};
use super::clearing;
use super::conditional::{etag, is_known, precondition};
use super::entries::{Stored, View, page_limit};
use super::questions::field;
use super::request::{At, Content, Parameters, key, prefix};
use super::stores::tier;
use super::text::{self, Object};
use super::ttl::{TtlText, ttl};
use super::variables::{Values, bindings, leading};
use crate::api::entries::Precondition;
use crate::api::queries;
use crate::api::records::{self, Change};
use crate::api::spaces::reach;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get, put, patch, delete)).routes(routes!(
        list,
        create,
        clearing::clear_records
    ))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RecordShape {
    /// Whether the body is the value alone, or an object with `value`, `metadata`, `version` and
    /// `expires`.
    #[serde(default)]
    #[param(inline)]
    view: View,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RecordPutShape {
    /// Whether the body is the value alone, or an object with `value`, `metadata` and `ttl`.
    #[serde(default)]
    #[param(inline)]
    view: View,
    /// For how many seconds the record shall live; `never` for one without an end, `keep` for the end
    /// that it has. As the space says, if it is left out.
    #[param(value_type = Option<String>)]
    ttl: Option<TtlText>,
}

/// A record, as a client gives it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RecordBody<'b> {
    /// Any JSON that the space takes.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    /// What to say about the value.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    metadata: Option<&'b RawValue>,
    /// For how many seconds the record shall live, or `never`, or `keep`.
    #[schema(value_type = Option<String>)]
    ttl: Option<TtlText>,
}

/// A new record, by the variables of its key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewRecordBody<'b> {
    /// The values of the key's variables. The owner may be left out: it is the caller.
    #[schema(value_type = serde_json::Map<String, serde_json::Value>)]
    values: Values,
    /// Any JSON that the space takes.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    /// What to say about the value.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    metadata: Option<&'b RawValue>,
    /// For how many seconds the record shall live, or `never`.
    #[schema(value_type = Option<String>)]
    ttl: Option<TtlText>,
}

/// What is to be put, as a client gives it.
pub(crate) fn draft(
    value: &RawValue,
    metadata: Option<&RawValue>,
    lives: Option<TtlText>,
) -> Result<Draft> {
    let mut draft = Draft::new(stored(value)?).ttl(ttl(lives));
    draft.metadata = metadata.map(stored).transpose()?;
    Ok(draft)
}

/// JSON that is to be stored.
pub(crate) fn stored(raw: &RawValue) -> Result<Json> {
    Json::parse(raw.get().to_owned()).map_err(|error| Problem::invalid(error.to_string()))
}

/// Reads a record.
#[utoipa::path(
    get,
    path = "/v1/spaces/{space}/records/{key}",
    tag = "records",
    params(
        ("space" = String, Path, description = "The name of a space"),
        ("key" = String, Path, description = "The whole key: segments with colons between them"),
        RecordShape,
        ("If-None-Match" = Option<String>, Header, description = "Answered only if the version is another one"),
    ),
    responses(
        (status = 200, description = "The value, or the record", body = serde_json::Value, headers(
            ("ETag" = String, description = "The version"),
        )),
        (status = 304, description = "The client has this version"),
        ProblemAnswers,
    ),
)]
async fn get(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((space, at)): At<(String, String)>,
    Parameters(shape): Parameters<RecordShape>,
    headers: HeaderMap,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let key = key(&at)?;
    let Some(record) = reached.space.get(&key).await? else {
        return Err(Problem::not_found(format!("there is no record at {key}")).into());
    };
    let (name, tag) = etag(&record.version)?;
    let mut response = if is_known(&headers, &record.version)? {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        match shape.view {
            View::Value => json(StatusCode::OK, record.value.to_bytes()),
            View::Entry => json(StatusCode::OK, text::record(&record).finish()),
        }
    };
    response.headers_mut().insert(name, tag);
    if let Some(expires) = record.expires
        && let Ok(value) = HeaderValue::try_from(moment_text(expires))
    {
        response.headers_mut().insert("keyward-expires", value);
    }
    Ok(response)
}

/// Sets a record.
#[utoipa::path(
    put,
    path = "/v1/spaces/{space}/records/{key}",
    tag = "records",
    params(
        ("space" = String, Path, description = "The name of a space"),
        ("key" = String, Path, description = "The whole key: segments with colons between them"),
        RecordPutShape,
        ("If-Match" = Option<String>, Header, description = "Only if the record has this version, or, with *, is there"),
        ("If-None-Match" = Option<String>, Header, description = "With *: only if there is no record"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = serde_json::Value,
    responses(
        (status = 200, description = "It is stored", body = Stored),
        (status = 201, description = "It is stored, and was not there", body = Stored),
        ProblemAnswers,
    ),
)]
async fn put(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((space, at)): At<(String, String)>,
    Parameters(shape): Parameters<RecordPutShape>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let key = key(&at)?;
    let draft = match shape.view {
        View::Value => Draft::new(content.json()?).ttl(ttl(shape.ttl)),
        View::Entry if shape.ttl.is_some() => {
            return Err(Problem::invalid("with view=entry, the ttl stands in the body").into());
        }
        View::Entry => {
            let RecordBody { value, metadata, ttl } = content.read()?;
            self::draft(value, metadata, ttl)?
        }
    };
    let expected = precondition(content.headers())?;
    let mark = content.mark(&who)?;
    let change = Change::Put(draft);
    let done = records::change(&who, &reached, &key, &change, &expected, mark.as_ref()).await?;
    changed(&key, done)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MergeParameters {
    /// What becomes of an array that meets an array.
    #[serde(default)]
    #[param(inline)]
    arrays: ArrayRule,
    /// Fields that stay as they are if they are there, with commas between them.
    preserve: Option<String>,
}

/// What becomes of an array that meets an array.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ArrayRule {
    /// The new one takes the place of the old one.
    #[default]
    Replace,
    /// The new elements follow the old ones.
    Append,
    /// The new elements that are not there yet follow the old ones.
    Union,
}

/// A part to merge, as a client gives it.
pub(crate) fn merge<'f>(
    patch: Json,
    arrays: ArrayRule,
    preserve: impl IntoIterator<Item = &'f str>,
) -> Result<Merge> {
    let arrays = match arrays {
        ArrayRule::Replace => Arrays::Replace,
        ArrayRule::Append => Arrays::Append,
        ArrayRule::Union => Arrays::Union,
    };
    let preserve = preserve.into_iter().map(field).collect::<Result<_>>()?;
    Ok(Merge { patch, arrays, preserve })
}

/// Merges a part into a record (RFC 7396), which need not be there. Metadata and end stay.
#[utoipa::path(
    patch,
    path = "/v1/spaces/{space}/records/{key}",
    tag = "records",
    params(
        ("space" = String, Path, description = "The name of a space"),
        ("key" = String, Path, description = "The whole key: segments with colons between them"),
        MergeParameters,
        ("If-Match" = Option<String>, Header, description = "Only if the record has this version, or, with *, is there"),
        ("If-None-Match" = Option<String>, Header, description = "With *: only if there is no record"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body(content = serde_json::Value, content_type = "application/merge-patch+json"),
    responses(
        (status = 200, description = "It is stored", body = Stored),
        (status = 201, description = "It is stored, and was not there", body = Stored),
        ProblemAnswers,
    ),
)]
async fn patch(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((space, at)): At<(String, String)>,
    Parameters(asked): Parameters<MergeParameters>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let key = key(&at)?;
    let preserve = asked.preserve.iter().flat_map(|fields| fields.split(','));
    let change = Change::Merge(merge(content.merge_patch()?, asked.arrays, preserve)?);
    let expected = precondition(content.headers())?;
    let mark = content.mark(&who)?;
    let done = records::change(&who, &reached, &key, &change, &expected, mark.as_ref()).await?;
    changed(&key, done)
}

/// Removes a record; removing what is not there changes nothing.
#[utoipa::path(
    delete,
    path = "/v1/spaces/{space}/records/{key}",
    tag = "records",
    params(
        ("space" = String, Path, description = "The name of a space"),
        ("key" = String, Path, description = "The whole key: segments with colons between them"),
        ("If-Match" = Option<String>, Header, description = "Only if the record has this version, or, with *, is there"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses(
        (status = 204, description = "It is not there"),
        ProblemAnswers,
    ),
)]
async fn delete(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((space, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let key = key(&at)?;
    let expected = precondition(content.headers())?;
    let mark = content.mark(&who)?;
    let done = records::change(&who, &reached, &key, &Change::Delete, &expected, mark.as_ref());
    changed(&key, done.await?)
}

/// Makes a record, which must not be there, by the variables of its key.
#[utoipa::path(
    post,
    path = "/v1/spaces/{space}/records",
    tag = "records",
    params(
        ("space" = String, Path, description = "The name of a space"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = NewRecordBody<'_>,
    responses(
        (status = 201, description = "It is stored", body = Stored, headers(
            ("ETag" = String, description = "The version"),
            ("Location" = String, description = "Where the record is"),
        )),
        ProblemAnswers,
    ),
)]
async fn create(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let NewRecordBody { values, value, metadata, ttl } = content.read()?;
    let key = reached.space.key(bindings(&reached.space.declaration().key, &values)?)?;
    let change = Change::Put(draft(value, metadata, ttl)?);
    let mark = content.mark(&who)?;
    let expected = Precondition::Absent;
    let done = records::change(&who, &reached, &key, &change, &expected, mark.as_ref()).await;
    let done = done.map_err(|problem| match problem.code() {
        Code::PreconditionFailed => {
            Problem::new(Code::Exists, format!("there is a record at {key}"))
                .hint("Choose other values, or change that record; nothing was done.")
        }
        _ => problem,
    })?;
    let mut response = changed(&key, done)?;
    let (name, place) = location(reached.name(), &key)?;
    response.headers_mut().insert(name, place);
    Ok(response)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecordListParameters {
    /// Below which prefix of the space's keys: segments with colons between and after them. Everything
    /// of the caller's, if left out.
    #[serde(default)]
    prefix: String,
    /// How many levels below the prefix's values are shown; what lies deeper shows as the prefix it
    /// shares.
    #[param(minimum = 1)]
    depth: Option<usize>,
    /// At most so many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Whether to begin at the end.
    #[serde(default)]
    descending: bool,
    /// Where an earlier page of the same listing ended.
    cursor: Option<String>,
    /// How many keys may be looked at for one page; the server may allow fewer.
    #[param(minimum = 1, maximum = 100000)]
    budget: Option<usize>,
}

impl RecordListParameters {
    /// The listing that is meant, of a space with such keys.
    pub fn listing(self, pattern: &Pattern) -> Result<Listing> {
        let values = leading(pattern, &prefix(&self.prefix)?)?;
        let mut listing = Listing::new(values).limit(page_limit(self.limit)?).after(self.cursor);
        listing.depth = self.depth;
        listing.order = if self.descending { Order::Descending } else { Order::Ascending };
        listing.budget = self.budget.unwrap_or(listing.budget);
        Ok(listing)
    }
}

/// A page of a space's keys, as text.
pub(crate) fn keys(listed: &Listed, guarantee: Tier) -> String {
    let items = listed.items.iter().map(|item| match item {
        ListedItem::Key(key) => Object::new().text("key", &key.to_string()).finish(),
        ListedItem::Prefix(prefix) => Object::new().text("prefix", &prefix.to_string()).finish(),
    });
    Object::new()
        .list("items", items)
        .optional("next", listed.next.as_deref())
        .text("guarantee", tier(guarantee))
        .finish()
}

/// A page of a space's keys.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RecordPage {
    /// In order.
    items: Vec<RecordListed>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
    /// What the store's engine makes of it: `atomic`, `recoverable` or `advisory`.
    guarantee: String,
}

/// A record's key, or a prefix with records below it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RecordListed {
    /// The key, if it is one.
    key: Option<String>,
    /// The prefix, if it is one.
    prefix: Option<String>,
}

/// Lists the keys of a space in order, a page at a time. A page may be short, even empty, and still
/// have a next one.
#[utoipa::path(
    get,
    path = "/v1/spaces/{space}/records",
    tag = "records",
    params(("space" = String, Path, description = "The name of a space"), RecordListParameters),
    responses(
        (status = 200, description = "A page", body = RecordPage),
        ProblemAnswers,
    ),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
    Parameters(asked): Parameters<RecordListParameters>,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let listing = asked.listing(&reached.space.declaration().key)?;
    let listed = queries::list(&who, &app, &reached, listing).await?;
    Ok(json(StatusCode::OK, keys(&listed, reached.space.guarantee())))
}
