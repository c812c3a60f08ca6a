//! Locks: `/v1/stores/{store}/locks`.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use keyward::locks::{Holder, LockPath, Mode, Renewal, Request, Root, Ticket, Waiter, Who};
use serde::Deserialize;
use serde_json::{Value, json as value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{empty, json};
use super::entries::page_limit;
use super::request::{At, Content, Parameters, key};
use super::text::{Object, quoted};
use super::ticket;
use crate::api::locks::{self, Asked, Breaking, Granted};
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(acquire))
        .routes(routes!(renew))
        .routes(routes!(release))
        .routes(routes!(break_lock))
}

/// Whether others may hold the same at the same time.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    /// Nobody else.
    #[default]
    Exclusive,
    /// Others who share it too.
    Shared,
}

/// A lock that is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcquireBody {
    /// The key that the locks are below. It belongs to them.
    #[schema(example = "page:7")]
    root: String,
    /// What to lock, all together: segments with colons between them, or names of the root's lock
    /// tree. Everything, if left out.
    #[serde(default)]
    #[schema(max_items = 64, example = json!(["policies:123"]))]
    paths: Vec<String>,
    #[serde(default)]
    mode: ModeName,
    /// For how many seconds the lock outlives a client that stopped renewing it; 120, if left out.
    #[schema(minimum = 0.1, maximum = 86400, example = 30)]
    ttl: Option<f64>,
    /// For how many seconds to wait for others; at most 25 are waited, and none if left out.
    #[serde(default)]
    #[schema(minimum = 0, example = 20)]
    wait: f64,
    /// What for, for those who list the locks.
    #[serde(default)]
    purpose: String,
    /// The ticket of a lock that is held by the same owner: what lies below it is no conflict.
    under: Option<String>,
}

impl AcquireBody {
    /// The lock that is meant.
    pub fn asked(self, app: &App) -> Result<Asked> {
        Ok(Asked {
            root: key(&self.root)?,
            paths: self.paths,
            mode: match self.mode {
                ModeName::Exclusive => Mode::Exclusive,
                ModeName::Shared => Mode::Shared,
            },
            ttl: self.ttl.map_or(Ok(Request::TTL_DEFAULT), |ttl| seconds("a ttl", ttl))?,
            wait: app.waits().bounded(self.wait)?,
            purpose: self.purpose,
            under: self.under.as_deref().map(ticket::read).transpose()?,
        })
    }
}

/// A lock that was granted, as text.
pub(crate) fn granted(asked: &Asked, granted: &Granted) -> Result<String> {
    let text = Object::new()
        .text("ticket", &ticket::text(&granted.ticket)?)
        .raw("token", &granted.ticket.token().to_string())
        .text("root", &asked.root.to_string())
        .list("paths", granted.paths.iter().map(|path| quoted(path)))
        .text("mode", &granted.mode.to_string());
    Ok(leased(text, granted.lease).finish())
}

/// A lock that is held.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct HeldLock {
    /// What stands for the lock in further requests. Whoever has it holds the lock.
    ticket: String,
    /// Higher than that of every lock of the root granted before.
    token: u64,
    /// The root.
    root: String,
    /// What is locked.
    paths: Vec<String>,
    /// How.
    mode: String,
    /// The lease, in seconds. Count the lock as lost once three quarters of it have passed since the
    /// last renewal that worked was sent.
    ttl: f64,
    /// How much of the lease is left, in seconds.
    left: f64,
}

/// Takes a lock, waiting for others for a while.
///
/// The server remembers nothing of it: every server of the same store knows the ticket. Not granted
/// in time, the answer is the problem `locked`, which says who is in the way; ask again. A client that
/// ends the connection leaves the line. Sent again with the same `Idempotency-Key`, the request gets
/// the same lock as long as it is held.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/locks/acquire",
    tag = "locks",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request gets the same lock"),
    ),
    request_body = AcquireBody,
    responses((status = 200, description = "It is held", body = HeldLock), ProblemAnswers),
)]
async fn acquire(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let asked: AcquireBody = content.read()?;
    let mark = content.mark(&who)?;
    let asked = asked.asked(&app)?;
    let acquiring = locks::acquire(&who, app.store(&store)?, &asked, mark.as_ref());
    let held = app.waits().during(&who, asked.wait, app.lifecycle(), acquiring).await?;
    Ok(json(StatusCode::OK, granted(&asked, &held)?))
}

/// What is said about a lease.
pub(super) fn leased(object: Object, lease: Renewal) -> Object {
    object
        .raw("ttl", &lease.ttl.as_secs_f64().to_string())
        .raw("left", &lease.left.as_secs_f64().to_string())
}

/// A number of seconds, with what it is for.
pub(super) fn seconds(what: &str, seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Problem::invalid(format!("{what} is a number of seconds, not {seconds}")))
}

/// A lock that is to be renewed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewBody {
    /// The ticket.
    pub ticket: String,
    /// Whether everything that was sent under this ticket and has not landed yet is refused from now
    /// on: for after a change whose answer was lost. The answer then has the ticket to go on with.
    #[serde(default)]
    pub outrun: bool,
}

/// A lease that was renewed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RenewedLock {
    /// The ticket to go on with: the same, unless the old one was to be outrun.
    ticket: String,
    /// The lock's token.
    token: u64,
    /// The lease, in seconds.
    ttl: f64,
    /// How much of it is left, in seconds.
    left: f64,
}

/// Renews the lease of a lock, if it is still held. Else the problem `lock-lost` says how it was lost.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/locks/renew",
    tag = "locks",
    params(("store" = String, Path, description = "The name of a store")),
    request_body = RenewBody,
    responses((status = 200, description = "It is renewed", body = RenewedLock), ProblemAnswers),
)]
async fn renew(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let RenewBody { ticket, outrun } = content.read()?;
    let held = ticket::read(&ticket)?;
    let (held, lease) = locks::renew(&who, app.store(&store)?, held, outrun).await?;
    Ok(json(StatusCode::OK, renewed(&held, lease)?))
}

/// A lock that was renewed, as text.
pub(crate) fn renewed(held: &Ticket, lease: Renewal) -> Result<String> {
    let text =
        Object::new().text("ticket", &ticket::text(held)?).raw("token", &held.token().to_string());
    Ok(leased(text, lease).finish())
}

/// A ticket.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TicketBody {
    /// The ticket.
    pub ticket: String,
}

/// Gives a lock back. One that is no longer held is left alone.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/locks/release",
    tag = "locks",
    params(("store" = String, Path, description = "The name of a store")),
    request_body = TicketBody,
    responses((status = 204, description = "It is not held by this ticket"), ProblemAnswers),
)]
async fn release(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let TicketBody { ticket } = content.read()?;
    locks::release(&who, app.store(&store)?, &ticket::read(&ticket)?).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParameters {
    /// Whose locks to show; the roots on which there are locks, if left out.
    root: Option<String>,
    /// At most so many roots.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page of roots ended.
    cursor: Option<String>,
}

/// Who holds what below a root; or a page of roots.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct Locks {
    /// The root, if one was named.
    root: Option<String>,
    /// Who holds what, oldest first.
    holders: Option<Vec<Claimed>>,
    /// Who waits, in the order in which they are served.
    waiters: Option<Vec<Claimed>>,
    /// The latest locks that were broken, oldest first.
    broken: Option<Vec<BrokenLock>>,
    /// Roots on which something is held or wanted, if none was named.
    items: Option<Vec<String>>,
    /// The cursor of the next page of roots; null at the end.
    next: Option<String>,
}

/// A holder or a waiter.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct Claimed {
    /// The token of a holder.
    token: Option<u64>,
    /// What.
    paths: Vec<String>,
    /// How.
    mode: String,
    /// Who, and what for.
    who: serde_json::Map<String, Value>,
    /// Since when, by the clock of the server that was asked.
    since: String,
    /// For how many seconds.
    age: f64,
    /// `alive`, `dead` or `unknown`.
    life: String,
    /// The lease of a holder, in seconds.
    ttl: Option<f64>,
}

/// Shows who holds what below a root, and who waits; or which roots there are.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/locks",
    tag = "locks",
    params(("store" = String, Path, description = "The name of a store"), ListParameters),
    responses((status = 200, description = "Locks, or roots", body = Locks), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    Parameters(asked): Parameters<ListParameters>,
) -> Answered {
    let served = app.store(&store)?;
    let ListParameters { root, limit, cursor } = asked;
    let Some(root) = root else {
        let limit = page_limit(limit)?;
        let (roots, next) = locks::roots(&who, served, limit, cursor.as_deref()).await?;
        let items = roots.iter().map(|root| quoted(&root.to_string()));
        let page = Object::new().list("items", items).optional("next", next.as_deref());
        return Ok(json(StatusCode::OK, page.finish()));
    };
    if limit.is_some() || cursor.is_some() {
        return Err(Problem::invalid("the locks of one root are one page")
            .hint("Leave out limit and cursor, or root.")
            .into());
    }
    let (root, standing) = locks::standing(&who, served, key(&root)?).await?;
    let text = Object::new()
        .text("root", &root.key().to_string())
        .list("holders", standing.holders.iter().map(|holder| held(&root, holder)))
        .list("waiters", standing.waiters.iter().map(|waiter| awaited(&root, waiter)))
        .list("broken", standing.broken.iter().map(|it| broken_text(&root, it)));
    Ok(json(StatusCode::OK, text.finish()))
}

fn names(root: &Root, paths: &[LockPath]) -> Vec<String> {
    paths.iter().map(|path| root.name(path)).collect()
}

fn claimed(root: &Root, paths: &[LockPath], mode: Mode, who: &Who) -> Value {
    value!({ "paths": names(root, paths), "mode": mode, "who": who })
}

fn held(root: &Root, holder: &Holder) -> String {
    let mut shown = claimed(root, &holder.paths, holder.mode, &holder.who);
    shown["token"] = holder.token.into();
    shown["since"] = holder.since.as_str().into();
    shown["age"] = holder.age.as_secs_f64().into();
    shown["life"] = holder.life.as_str().into();
    shown["ttl"] = holder.ttl.as_secs_f64().into();
    shown.to_string()
}

fn awaited(root: &Root, waiter: &Waiter) -> String {
    let mut shown = claimed(root, &waiter.paths, waiter.mode, &waiter.who);
    shown["since"] = waiter.since.as_str().into();
    shown["age"] = waiter.age.as_secs_f64().into();
    shown["life"] = waiter.life.as_str().into();
    shown.to_string()
}

fn broken_text(root: &Root, broken: &keyward::locks::Broken) -> String {
    value!({
        "token": broken.token,
        "paths": names(root, &broken.paths),
        "holder": broken.holder,
        "by": broken.by,
        "reason": broken.reason,
        "at": broken.at,
    })
    .to_string()
}

/// Locks that are to be taken away from their holders.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BreakBody {
    /// The root.
    root: String,
    /// All locks on just this path; the empty path is everything.
    path: Option<String>,
    /// The lock with this token, instead of a path. Sent again, it breaks nothing else.
    token: Option<u64>,
    /// Why, for the holder and for those who list the locks.
    reason: String,
}

/// Locks that were broken.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct BrokenLocks {
    broken: Vec<BrokenLock>,
}

/// A lock that was broken.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct BrokenLock {
    /// Its token.
    token: u64,
    /// What was held.
    paths: Vec<String>,
    /// Who held it.
    holder: serde_json::Map<String, Value>,
    /// Who broke it.
    by: String,
    /// Why.
    reason: String,
    /// When, by the clock of the server that was asked.
    at: String,
}

/// Takes locks away from their holders, alive or not. Needs the scope `admin`.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/locks/break",
    tag = "locks",
    params(("store" = String, Path, description = "The name of a store")),
    request_body = BreakBody,
    responses((status = 200, description = "They are broken", body = BrokenLocks), ProblemAnswers),
)]
async fn break_lock(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let BreakBody { root, path, token, reason } = content.read()?;
    let breaking = match (path, token) {
        (None, Some(token)) => Breaking::Token(token),
        (Some(_), None) if content.mark(&who)?.is_some() => {
            return Err(Problem::invalid(
                "a path may be somebody else's by the time it is sent again",
            )
            .hint("With an Idempotency-Key, name the token: GET …/locks?root=… shows it.")
            .into());
        }
        (Some(path), None) => Breaking::Path(path),
        _ => return Err(Problem::invalid("a path or a token says what to break, not both").into()),
    };
    if reason.trim().is_empty() {
        return Err(Problem::invalid("a lock is broken for a reason")
            .hint("Say why: the holder is told.")
            .into());
    }
    let served = app.store(&store)?;
    let (root, broken) = locks::break_lock(&who, served, key(&root)?, &breaking, &reason).await?;
    let broken = broken.iter().map(|it| broken_text(&root, it));
    Ok(json(StatusCode::OK, Object::new().list("broken", broken).finish()))
}
