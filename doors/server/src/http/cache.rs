//! Results of expensive work: `/v1/stores/{store}/cache`.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use jiff::Timestamp;
use keyward::cache::{Cached, Claim, Fetch, Origin, Source};
use keyward::moment_text;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{empty, json};
use super::conditional::etag;
use super::locks::{TicketBody, leased, seconds};
use super::request::{At, Content, key};
use super::text::Object;
use super::ticket;
use crate::api::cache;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show, publish, drop))
        .routes(routes!(lookup))
        .routes(routes!(renew))
        .routes(routes!(fail))
        .routes(routes!(release))
}

/// A result that is asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LookupBody {
    /// The version of what it is made of: results of any other are stale.
    #[schema(example = "sha-1")]
    version: Option<String>,
    /// Instead of a version, when what it is made of was last modified: results of an earlier state
    /// are stale.
    #[schema(value_type = Option<String>, format = DateTime)]
    modified: Option<Timestamp>,
    /// For how many seconds the result is good; until what it is made of changes, if left out.
    #[schema(minimum = 1)]
    ttl: Option<u64>,
    /// Other cached keys that it is made from: when one of them is dropped, so is this.
    #[serde(default)]
    #[schema(max_items = 16)]
    depends_on: Vec<String>,
    /// For how many seconds the right to compute outlives a client that stopped renewing it; 30, if
    /// left out.
    #[schema(minimum = 0.1, maximum = 86400)]
    lease: Option<f64>,
    /// For how many seconds to wait for others who compute it; at most 25 are waited, and none if left
    /// out.
    #[serde(default)]
    #[schema(minimum = 0)]
    wait: f64,
}

impl LookupBody {
    fn fetch(self, app: &App) -> Result<Fetch> {
        let source = match (self.version, self.modified) {
            (Some(version), None) => Source::Version(version),
            (None, Some(modified)) => Source::Modified(modified),
            (None, None) => Source::Constant,
            (Some(_), Some(_)) => {
                return Err(Problem::invalid("a source has a version or a time, not both"));
            }
        };
        let mut fetch = Fetch::of(source).wait_max(app.waits().bounded(self.wait)?);
        for depends_on in &self.depends_on {
            fetch = fetch.depends_on(key(depends_on)?);
        }
        if let Some(ttl) = self.ttl {
            fetch = fetch.ttl(std::time::Duration::from_secs(ttl));
        }
        if let Some(lease) = self.lease {
            fetch = fetch.lease(seconds("a lease", lease)?);
        }
        Ok(fetch)
    }
}

/// A result, or the right to compute it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct Looked {
    /// The key.
    key: String,
    /// The result, if there is one.
    value: Option<serde_json::Value>,
    /// Where it comes from: `stored`, or `shared` if somebody else computed it just now.
    origin: Option<String>,
    /// When it was computed.
    created: Option<String>,
    /// The version of what it was made of.
    source_version: Option<String>,
    /// When that was last modified.
    source_modified: Option<String>,
    /// The version of the entry.
    version: Option<String>,
    /// From when on it is absent.
    expires: Option<String>,
    /// If there is none: the right to compute it, and the duty.
    compute: Option<Computation>,
}

/// The right to compute a result.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct Computation {
    /// What proves it, in further requests.
    ticket: String,
    /// Its lease, in seconds.
    ttl: f64,
}

/// Gives a result that is fresh; or the right to compute it, to one client at a time.
///
/// An answer with `compute` is a right and a duty: compute it, renew the ticket in time, and publish
/// the value, say that it failed, or give the right back. While somebody else has it, this waits, and
/// answers with their result, or with the problem `computing`; ask again. After a failure the key is
/// held back for a while: `computation-failed`, with `retry_after`. Sent again with the same
/// `Idempotency-Key`, the request gets the same ticket as long as it lasts.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/cache/{key}/lookup",
    tag = "cache",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request gets the same ticket"),
    ),
    request_body = LookupBody,
    responses((status = 200, description = "The result, or the right to compute it", body = Looked), ProblemAnswers),
)]
async fn lookup(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let key = key(&at)?;
    let fetch = content.read::<LookupBody>()?.fetch(&app)?;
    let mark = content.mark(&who)?;
    let looking = cache::lookup(&who, app.store(&store)?, &key, &fetch, mark.as_ref());
    let object = match app.waits().during(&who, fetch.wait_max, app.lifecycle(), looking).await? {
        Claim::Fresh(cached) => {
            let origin = match cached.origin {
                Origin::Shared => "shared",
                Origin::Stored | Origin::Computed | Origin::Stale => "stored",
            };
            shown(&at, &cached).text("origin", origin)
        }
        Claim::Compute(held) => {
            let compute = Object::new()
                .text("ticket", &ticket::text(&held)?)
                .raw("ttl", &fetch.lease.as_secs_f64().to_string());
            Object::new().text("key", &at).raw("compute", &compute.finish())
        }
    };
    Ok(json(StatusCode::OK, object.finish()))
}

fn shown(key: &str, cached: &Cached) -> Object {
    let object = Object::new().text("key", key).raw("value", cached.value.as_str());
    labelled(object, cached)
}

fn labelled(object: Object, cached: &Cached) -> Object {
    let mut object = object.text("created", &moment_text(cached.created));
    object = match &cached.source {
        Source::Version(version) => object.text("source_version", version),
        Source::Modified(modified) => object.text("source_modified", &modified.to_string()),
        Source::Constant => object,
    };
    if let Some(expires) = &cached.expires {
        object = object.text("expires", &moment_text(*expires));
    }
    let version = cached.version.as_ref().map(ToString::to_string);
    object.optional("version", version.as_deref())
}

/// Shows what is cached, fresh or stale. Nothing is computed.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/cache/{key}",
    tag = "cache",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
    ),
    responses((status = 200, description = "What is cached", body = Looked), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
) -> Answered {
    let key = key(&at)?;
    let Some(cached) = cache::show(&who, app.store(&store)?, &key).await? else {
        return Err(Problem::not_found(format!("nothing is cached at {key}")).into());
    };
    tagged(json(StatusCode::OK, shown(&at, &cached).finish()), &cached)
}

fn tagged(mut response: Response<Body>, cached: &Cached) -> Answered {
    if let Some(version) = &cached.version {
        let (name, value) = etag(version)?;
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// What was published.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct Published {
    /// The key.
    key: String,
    /// When it was computed.
    created: String,
    /// The version of the entry; null if it was not cached, since what it depends on has changed
    /// meanwhile.
    version: Option<String>,
}

/// Publishes what was computed, and ends the ticket. The body is the value.
///
/// At most one value is cached with one ticket: sent again, the answer is the same. Refused with
/// `lock-lost` if the lease had ended and somebody else computes it by now.
#[utoipa::path(
    put,
    path = "/v1/stores/{store}/cache/{key}",
    tag = "cache",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
        ("Keyward-Ticket" = String, Header, description = "The ticket that lookup gave"),
    ),
    request_body = serde_json::Value,
    responses((status = 200, description = "It is cached", body = Published), ProblemAnswers),
)]
async fn publish(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let (key, value) = (key(&at)?, content.json()?);
    let held = ticket::computation(content.headers())?;
    let cached = cache::publish(&who, app.store(&store)?, &key, &held, value).await?;
    let object = labelled(Object::new().text("key", &at), &cached);
    tagged(json(StatusCode::OK, object.finish()), &cached)
}

/// What was dropped.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct Dropped {
    /// How many results, those that were made from it included.
    dropped: u64,
}

/// Drops a result, and with it all that was made from it.
#[utoipa::path(
    delete,
    path = "/v1/stores/{store}/cache/{key}",
    tag = "cache",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
    ),
    responses((status = 200, description = "They are gone", body = Dropped), ProblemAnswers),
)]
async fn drop(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
) -> Answered {
    let dropped = cache::drop(&who, app.store(&store)?, &key(&at)?).await?;
    Ok(json(StatusCode::OK, Object::new().raw("dropped", &dropped.to_string()).finish()))
}

/// A lease that was renewed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RenewedComputation {
    /// The lease, in seconds.
    ttl: f64,
    /// How much of it is left, in seconds.
    left: f64,
}

/// Renews the lease of a computation.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/cache/{key}/renew",
    tag = "cache",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
    ),
    request_body = TicketBody,
    responses((status = 200, description = "It is renewed", body = RenewedComputation), ProblemAnswers),
)]
async fn renew(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let TicketBody { ticket } = content.read()?;
    let held = ticket::read(&ticket)?;
    let lease = cache::renew(&who, app.store(&store)?, &key(&at)?, &held).await?;
    Ok(json(StatusCode::OK, leased(Object::new(), lease).finish()))
}

/// A computation that failed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FailBody {
    /// The ticket.
    ticket: String,
    /// Why it failed, for those who ask while the key is held back.
    message: String,
}

/// A key that is held back.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct HeldBackBody {
    /// How often it failed in a row.
    times: u32,
    /// For how many seconds nobody computes it.
    retry_after: f64,
}

/// Says that a computation failed, and ends the ticket: nobody computes the key for a while, longer
/// after each failure.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/cache/{key}/fail",
    tag = "cache",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
    ),
    request_body = FailBody,
    responses((status = 200, description = "It is held back", body = HeldBackBody), ProblemAnswers),
)]
async fn fail(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let FailBody { ticket, message } = content.read()?;
    let held = ticket::read(&ticket)?;
    let back = cache::fail(&who, app.store(&store)?, &key(&at)?, &held, &message).await?;
    let text = Object::new()
        .raw("times", &back.times.to_string())
        .raw("retry_after", &back.retry_after.as_secs_f64().to_string());
    Ok(json(StatusCode::OK, text.finish()))
}

/// Gives the right to compute back, without a result: the next who asks gets it.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/cache/{key}/release",
    tag = "cache",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("key" = String, Path, description = "A key: segments with colons between them"),
    ),
    request_body = TicketBody,
    responses((status = 204, description = "It is not held by this ticket"), ProblemAnswers),
)]
async fn release(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let TicketBody { ticket } = content.read()?;
    let held = ticket::read(&ticket)?;
    cache::release(&who, app.store(&store)?, &key(&at)?, &held).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
