//! Entries: `/v1/stores/{store}/entries`.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use keyward::{Expiry, Json, Order, Put, moment_text};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{empty, json, written};
use super::clearing;
use super::conditional::{etag, is_known, precondition};
use super::request::{At, Content, Parameters, key, prefix};
use super::text::{self, Object, quoted};
use super::ticket::lock;
use crate::api::entries::{self, Item, Listing, Precondition, Terms};
use crate::app::App;
use crate::auth::Identity;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

/// The most items on a page.
pub(crate) const PAGE_MAX: usize = 1_000;
const PAGE_DEFAULT: usize = 100;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get, put, patch, delete))
        .routes(routes!(list, clearing::clear_entries))
}

/// How an entry is shown or given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum View {
    /// The value alone; what else there is to say is in headers.
    #[default]
    Value,
    /// An object with the value, its metadata, its version and its end.
    Entry,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Shape {
    /// Whether the body is the value alone, or an object with `value`, `metadata`, `version` and
    /// `expires`.
    #[serde(default)]
    #[param(inline)]
    view: View,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PutShape {
    /// Whether the body is the value alone, or an object with `value`, `metadata` and `ttl`.
    #[serde(default)]
    #[param(inline)]
    view: View,
    /// For how many seconds the entry shall live; for ever, if it is left out.
    #[param(minimum = 1)]
    ttl: Option<u64>,
}

/// An entry, as a client gives it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EntryBody<'b> {
    /// Any JSON.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    /// What to say about the value.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    metadata: Option<&'b RawValue>,
    /// For how many seconds the entry shall live.
    #[schema(minimum = 1)]
    ttl: Option<u64>,
}

/// What is to be put, as a client gives it.
pub(crate) fn drafted(
    value: &RawValue,
    metadata: Option<&RawValue>,
    ttl: Option<u64>,
) -> Result<Put> {
    let parse = |raw: &RawValue| {
        Json::parse(raw.get().to_owned()).map_err(|error| Problem::invalid(error.to_string()))
    };
    let mut put = Put::new(parse(value)?);
    put.metadata = metadata.map(parse).transpose()?;
    expiring(put, ttl)
}

fn expiring(put: Put, ttl: Option<u64>) -> Result<Put> {
    match ttl {
        None => Ok(put),
        Some(0) => Err(Problem::invalid("a ttl is at least one second")
            .hint("Leave out ttl for an entry that lives for ever; delete what shall end now.")),
        Some(seconds) => Ok(put.expiring(Expiry::After(Duration::from_secs(seconds)))),
    }
}

/// What a change depends on.
fn terms(who: &Identity, content: &Content) -> Result<Terms> {
    Ok(Terms {
        expected: precondition(content.headers())?,
        lock: lock(content.headers())?,
        mark: content.mark(who)?,
    })
}

/// Reads an entry.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/entries/{key}",
    tag = "entries",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
        Shape,
        ("If-None-Match" = Option<String>, Header, description = "Answered only if the version is another one"),
    ),
    responses(
        (status = 200, description = "The value, or the entry", body = serde_json::Value, headers(
            ("ETag" = String, description = "The version"),
        )),
        (status = 304, description = "The client has this version"),
        ProblemAnswers,
    ),
)]
async fn get(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
    Parameters(shape): Parameters<Shape>,
    headers: HeaderMap,
) -> Answered {
    let key = key(&at)?;
    let Some(entry) = entries::get(&who, app.store(&store)?, &key).await? else {
        return Err(Problem::not_found(format!("there is nothing at {key}")).into());
    };
    let (name, tag) = etag(&entry.version)?;
    let mut response = if is_known(&headers, &entry.version)? {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        match shape.view {
            View::Value => json(StatusCode::OK, entry.value.to_bytes()),
            View::Entry => json(StatusCode::OK, text::entry(&key, &entry)),
        }
    };
    response.headers_mut().insert(name, tag);
    if let Some(expires) = entry.expires
        && let Ok(value) = HeaderValue::try_from(moment_text(expires))
    {
        response.headers_mut().insert("keyward-expires", value);
    }
    Ok(response)
}

/// Sets an entry.
#[utoipa::path(
    put,
    path = "/v1/stores/{store}/entries/{key}",
    tag = "entries",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
        PutShape,
        ("If-Match" = Option<String>, Header, description = "Only if the entry has this version, or, with *, is there"),
        ("If-None-Match" = Option<String>, Header, description = "With *: only if there is no entry"),
        ("Keyward-Lock" = Option<String>, Header, description = "Only if the lock of this ticket is held"),
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
    At((store, at)): At<(String, String)>,
    Parameters(shape): Parameters<PutShape>,
    content: Content,
) -> Answered {
    let key = key(&at)?;
    let put = match shape.view {
        View::Value => expiring(Put::new(content.json()?), shape.ttl)?,
        View::Entry if shape.ttl.is_some() => {
            return Err(Problem::invalid("with view=entry, the ttl stands in the body").into());
        }
        View::Entry => {
            let EntryBody { value, metadata, ttl } = content.read()?;
            drafted(value, metadata, ttl)?
        }
    };
    let terms = terms(&who, &content)?;
    let status = match terms.expected {
        Precondition::Absent => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    let done = entries::put(&who, app.store(&store)?, &key, put, &terms).await?;
    written(status, &key.to_string(), &done)
}

/// Merges a part into an entry (RFC 7396). Metadata and end stay.
#[utoipa::path(
    patch,
    path = "/v1/stores/{store}/entries/{key}",
    tag = "entries",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
        ("If-Match" = Option<String>, Header, description = "Only if the entry has this version, or, with *, is there"),
        ("If-None-Match" = Option<String>, Header, description = "With *: only if there is no entry"),
        ("Keyward-Lock" = Option<String>, Header, description = "Only if the lock of this ticket is held"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body(content = serde_json::Value, content_type = "application/merge-patch+json"),
    responses(
        (status = 200, description = "It is stored", body = Stored),
        ProblemAnswers,
    ),
)]
async fn patch(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let key = key(&at)?;
    let part = content.merge_patch()?;
    let terms = terms(&who, &content)?;
    let served = app.store(&store)?;
    let done = entries::patch(&who, served, &key, part, &terms).await?;
    written(StatusCode::OK, &key.to_string(), &done)
}

/// Removes an entry; removing what is not there changes nothing.
#[utoipa::path(
    delete,
    path = "/v1/stores/{store}/entries/{key}",
    tag = "entries",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
        ("If-Match" = Option<String>, Header, description = "Only if the entry has this version, or, with *, is there"),
        ("Keyward-Lock" = Option<String>, Header, description = "Only if the lock of this ticket is held"),
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
    At((store, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let key = key(&at)?;
    let terms = terms(&who, &content)?;
    let done = entries::delete(&who, app.store(&store)?, &key, &terms).await?;
    written(StatusCode::NO_CONTENT, &key.to_string(), &done)
}

/// What is said about a change.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(crate) struct Stored {
    /// The key.
    key: String,
    /// The new version, which is also the `ETag`.
    version: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParameters {
    /// Below which prefix: segments with colons between and after them; everything, if left out.
    #[serde(default)]
    prefix: String,
    /// How many levels are shown; what lies deeper shows as the prefix it shares.
    #[param(minimum = 1)]
    depth: Option<usize>,
    /// At most so many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Whether to begin at the end.
    #[serde(default)]
    descending: bool,
    /// Whether to show what the keys hold.
    #[serde(default)]
    values: bool,
    /// Whether to show the entries of indexes (`index:`), too. They are also shown if the prefix is `index:`
    /// or lies below it. Keyward's own keys (`system:`) are never listed here.
    #[serde(default)]
    all: bool,
    /// Where an earlier page of the same listing ended.
    cursor: Option<String>,
}

/// A page of a listing.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct Page {
    /// In order.
    items: Vec<ListedItem>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// A key, or a prefix with keys below it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct ListedItem {
    /// The key, if it is one.
    key: Option<String>,
    /// The prefix, if it is one.
    prefix: Option<String>,
    /// What the key holds, if that was asked for.
    value: Option<serde_json::Value>,
    /// What is said about the value.
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
    /// The version.
    version: Option<String>,
    /// From when on it is absent.
    expires: Option<String>,
}

/// Lists keys or entries in order, a page at a time. A page may be short, even empty, and still have
/// a next one.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/entries",
    tag = "entries",
    params(("store" = String, Path, description = "The name of a store"), ListParameters),
    responses(
        (status = 200, description = "A page", body = Page),
        ProblemAnswers,
    ),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    Parameters(asked): Parameters<ListParameters>,
) -> Answered {
    let listing = Listing {
        prefix: prefix(&asked.prefix)?,
        depth: asked.depth,
        limit: page_limit(asked.limit)?,
        order: if asked.descending { Order::Descending } else { Order::Ascending },
        entries: asked.values,
        all: asked.all,
        cursor: asked.cursor,
    };
    let (items, next) = entries::list(&who, &app, app.store(&store)?, &listing).await?;
    let items = items.iter().map(|item| match item {
        Item::Prefix(prefix) => Object::new().text("prefix", &prefix.to_string()).finish(),
        Item::Row(row) => match &row.entry {
            Some(entry) => text::entry(&row.key, entry),
            None => Object::new().raw("key", &quoted(&row.key.to_string())).finish(),
        },
    });
    let page = Object::new().list("items", items).optional("next", next.as_deref());
    Ok(json(StatusCode::OK, page.finish()))
}

/// How many items a page has.
pub(crate) fn page_limit(asked: Option<usize>) -> Result<usize> {
    match asked.unwrap_or(PAGE_DEFAULT) {
        limit @ 1..=PAGE_MAX => Ok(limit),
        limit => Err(Problem::invalid(format!("a page has 1 to {PAGE_MAX} items, not {limit}"))),
    }
}
