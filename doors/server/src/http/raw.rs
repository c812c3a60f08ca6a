//! A store as an engine: `/v1/stores/{store}/raw/…`.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use keyward::{
    Commit, Cursor, Expiry, Key, KeyRange, Order, Page, Put, Revision, Scan, Stats, Want,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::commits::{
    AddBody, AppliedBody, CheckBody, EntriesBody, KeyBody, KeysBody, checked, held,
};
use super::entries::drafted;
use super::request::{At, Content, Parameters, key};
use super::text::{self, Object};
use super::{commits, stores, watch};
use crate::api::raw;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get))
        .routes(routes!(scan))
        .routes(routes!(commit))
        .routes(routes!(changes))
        .routes(routes!(stats))
}

/// Reads several entries at one moment, as they are stored.
///
/// The routes below `raw` are a store as an engine has it, for programs that bring their own records,
/// locks and queues: what `GET /v1/stores/{store}` tells under `contract` is what they promise. Which
/// keys a credential reaches is the rule of all entries; one that may run the store (`admin`), and is
/// not bound to a user, also reaches Keyward's own keys there, but nothing that the server itself goes
/// by.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/raw/get",
    tag = "raw",
    params(("store" = String, Path, description = "The name of a store")),
    request_body = KeysBody,
    responses((status = 200, description = "What they hold", body = EntriesBody), ProblemAnswers),
)]
async fn get(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let keys = content.read::<KeysBody>()?.read()?;
    let entries = raw::get_many(&who, &app, app.store(&store)?, &keys).await?;
    Ok(held(&keys, &entries))
}

/// In which direction.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    #[default]
    Ascending,
    Descending,
}

/// Whole entries, or only their keys.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Part {
    #[default]
    Entries,
    Keys,
}

/// A part of a range.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScanBody {
    /// Where the range begins: bytes of the tuple encoding, as base64url without padding.
    #[serde(default)]
    start: String,
    /// Where it ends; at the end of all keys, if it is left out.
    end: Option<String>,
    /// Where an earlier page ended.
    after: Option<String>,
    /// At most so many rows; 100, if it is left out.
    #[serde(default = "rows_default")]
    #[schema(minimum = 1, maximum = 1000)]
    limit: usize,
    #[serde(default)]
    order: Direction,
    #[serde(default)]
    want: Part,
}

fn rows_default() -> usize {
    Scan::LIMIT_DEFAULT
}

impl ScanBody {
    fn scan(&self) -> Result<Scan> {
        if !(1..=raw::ITEMS_MAX).contains(&self.limit) {
            return Err(Problem::invalid(format!("a page has 1 to {} rows", raw::ITEMS_MAX)));
        }
        Ok(Scan {
            range: range(&self.start, self.end.as_deref())?,
            after: self
                .after
                .as_deref()
                .map(|text| bytes("after", text).map(Cursor::new))
                .transpose()?,
            limit: self.limit,
            order: match self.order {
                Direction::Ascending => Order::Ascending,
                Direction::Descending => Order::Descending,
            },
            want: match self.want {
                Part::Entries => Want::Entries,
                Part::Keys => Want::Keys,
            },
        })
    }
}

/// A page of rows.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RowsBody {
    /// Entries, each with its `key`; keys alone, if these were asked for.
    rows: Vec<serde_json::Value>,
    /// Where the next page begins; null at the end. A page may be short and still have a next one.
    next: Option<String>,
}

/// Reads one page of a range.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/raw/scan",
    tag = "raw",
    params(("store" = String, Path, description = "The name of a store")),
    request_body = ScanBody,
    responses((status = 200, description = "Rows in the order asked for", body = RowsBody), ProblemAnswers),
)]
async fn scan(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let asked = content.read::<ScanBody>()?.scan()?;
    let Page { rows, next } = raw::scan(&who, &app, app.store(&store)?, asked).await?;
    let rows = rows.iter().map(|row| match &row.entry {
        Some(entry) => text::entry(&row.key, entry),
        None => Object::new().text("key", &row.key.to_string()).finish(),
    });
    let next = next.map(|cursor| BASE64URL_NOPAD.encode(cursor.as_bytes()));
    let page = Object::new().list("rows", rows).optional("next", next.as_deref());
    Ok(json(StatusCode::OK, page.finish()))
}

/// Checks and writes that happen together or not at all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RawCommitBody<'b> {
    /// What must hold.
    #[serde(default)]
    checks: Vec<CheckBody>,
    /// What to change; at most one write for each key.
    #[serde(default, borrow)]
    writes: Vec<RawWriteBody<'b>>,
}

/// One change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum RawWriteBody<'b> {
    /// Set a key.
    #[serde(borrow)]
    Put(RawPutBody<'b>),
    /// Remove a key.
    Delete(KeyBody),
    /// Add to the whole number that a key holds.
    Add(AddBody),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RawPutBody<'b> {
    key: String,
    /// Any JSON.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    /// What to say about the value.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    metadata: Option<&'b RawValue>,
    /// When the entry ends; never, if it is left out.
    expiry: Option<ExpiryBody>,
}

/// When an entry ends.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum ExpiryBody {
    /// So long after the write, by the store's clock.
    After(AfterBody),
    /// At this moment, as RFC 3339.
    #[schema(value_type = String)]
    At(Timestamp),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AfterBody {
    seconds: u64,
    /// Besides the seconds.
    #[serde(default)]
    #[schema(maximum = 999_999_999)]
    nanoseconds: u32,
}

impl RawPutBody<'_> {
    fn put(&self) -> Result<Put> {
        let put = drafted(self.value, self.metadata, None)?;
        Ok(match &self.expiry {
            None => put,
            Some(ExpiryBody::At(at)) => put.expiring(Expiry::At(*at)),
            Some(ExpiryBody::After(after)) => {
                if after.nanoseconds > 999_999_999 {
                    return Err(Problem::invalid("a second has 999999999 nanoseconds at most"));
                }
                let ttl = Duration::new(after.seconds, after.nanoseconds);
                put.expiring(Expiry::After(ttl))
            }
        })
    }
}

impl RawCommitBody<'_> {
    fn commit(&self) -> Result<Commit> {
        let mut commit = checked(&self.checks)?;
        for write in &self.writes {
            commit = match write {
                RawWriteBody::Put(put) => commit.put(key(&put.key)?, put.put()?),
                RawWriteBody::Delete(delete) => commit.delete(key(&delete.key)?),
                RawWriteBody::Add(add) => commit.add(key(&add.key)?, add.amount),
            };
        }
        Ok(commit)
    }
}

/// Applies all writes if all checks hold, else none: checks that do not hold are told by their index
/// in `failed` of a `precondition-failed`.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/raw/commit",
    tag = "raw",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = RawCommitBody<'_>,
    responses((status = 200, description = "All of it is done", body = AppliedBody), ProblemAnswers),
)]
async fn commit(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let commit = content.read::<RawCommitBody<'_>>()?.commit()?;
    let mark = content.mark(&who)?;
    let keys: Vec<Key> = commit.checks.iter().map(|check| check.key.clone()).collect();
    let committed = raw::commit(&who, app.store(&store)?, commit, mark.as_ref()).await?;
    commits::answer(committed, &keys)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ChangesParameters {
    /// Where the range begins: bytes of the tuple encoding, as base64url without padding.
    #[serde(default)]
    start: String,
    /// Where it ends; at the end of all keys, if it is left out.
    end: Option<String>,
    /// After which revision; from now on, if left out.
    since: Option<u64>,
}

/// Tells which keys of a range change, as server-sent events: `reached`, `changed` and `too-old`, as
/// `/v1/stores/{store}/watch` does, and `problem` before an end that is no end of the server.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/raw/watch",
    tag = "raw",
    params(("store" = String, Path, description = "The name of a store"), ChangesParameters),
    responses(
        (status = 200, description = "Events, for as long as the client listens", content_type = "text/event-stream", body = watch::WatchEvent),
        ProblemAnswers,
    ),
)]
async fn changes(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    Parameters(asked): Parameters<ChangesParameters>,
    headers: HeaderMap,
) -> Answered {
    let range = range(&asked.start, asked.end.as_deref())?;
    let since = asked.since.map(Revision);
    let events = raw::watch(&who, app.store(&store)?, range, since)?;
    let open = watch::Open::new(&app, &who)?;
    Ok(watch::told(app, open, events, headers))
}

/// What an engine knows about its size.
#[derive(Debug, Serialize, ToSchema)]
struct StatsBody {
    /// Entries, also expired ones whose space is not reclaimed yet, and those that nobody reaches.
    entries: u64,
    /// Bytes that the store occupies, if known.
    bytes: Option<u64>,
    /// The revision of the last commit, on engines that keep a history.
    revision: Option<u64>,
    /// The earliest revision that a watch can resume from.
    earliest_revision: Option<u64>,
}

/// Shows how large a store is. Not for credentials of a user.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/raw/stats",
    tag = "raw",
    params(("store" = String, Path, description = "The name of a store")),
    responses((status = 200, description = "Its size", body = StatsBody), ProblemAnswers),
)]
async fn stats(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
) -> Answered {
    let Stats { entries, bytes, revision, earliest_revision } =
        raw::stats(&who, app.store(&store)?).await?;
    let number = |revision: Option<Revision>| revision.map(|revision| revision.0);
    let (revision, earliest_revision) = (number(revision), number(earliest_revision));
    stores::answer(&StatsBody { entries, bytes, revision, earliest_revision })
}

fn range(start: &str, end: Option<&str>) -> Result<KeyRange> {
    let end = end.map(|end| bytes("end", end)).transpose()?;
    Ok(KeyRange::from_bounds(bytes("start", start)?, end))
}

fn bytes(what: &str, text: &str) -> Result<Vec<u8>> {
    BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|error| {
        Problem::invalid(format!("{what} is no base64url without padding: {error}"))
    })
}
