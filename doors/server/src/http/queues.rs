//! Queues: `/v1/stores/{store}/queues`.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use keyward::queue::{Count, QueueStats};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{json, mark_replayed};
use super::entries::page_limit;
use super::request::{At, Content};
use super::text::{Object, quoted};
use crate::api::once::Once;
use crate::api::queues::{self, Paging};
use crate::app::App;
use crate::auth::Need;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Result;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParameters {
    /// At most so many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page of the same listing ended.
    cursor: Option<String>,
}

impl PageParameters {
    pub fn paging(self) -> Result<Paging> {
        Ok(Paging { limit: page_limit(self.limit)?, cursor: self.cursor })
    }
}

/// What is said about a change, in a word.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct OutcomeBody {
    /// What was done.
    outcome: String,
}

pub(super) fn told(once: &Once) -> Response<Body> {
    let text = Object::new().text("outcome", &once.word);
    let mut response = json(StatusCode::OK, text.finish());
    mark_replayed(&mut response, once.replayed);
    response
}

/// The queues of a store.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct QueuesBody {
    /// Their names.
    queues: Vec<String>,
    /// Whether there may be more: a thousand are listed.
    more: bool,
}

/// Lists the queues that have messages or dead letters, or are paused.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/queues",
    tag = "queues",
    params(("store" = String, Path, description = "The name of a store")),
    responses((status = 200, description = "Their names", body = QueuesBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
) -> Answered {
    let (names, more) = queues::list(&who, app.store(&store)?).await?;
    let names = names.iter().map(|name| quoted(name));
    let text = Object::new().list("queues", names).raw("more", &more.to_string());
    Ok(json(StatusCode::OK, text.finish()))
}

/// What a queue has.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct QueueBody {
    name: String,
    /// Messages in line.
    ready: CountBody,
    /// Messages that wait for their time.
    delayed: CountBody,
    /// Messages in the hands of workers, also of dead ones who were not taken over from yet.
    claimed: CountBody,
    /// Dead letters.
    dead: CountBody,
    /// How long the first in line has waited, in milliseconds; null if there is none.
    oldest_ms: Option<i64>,
    /// Why the queue is paused; null if it is not.
    paused: Option<String>,
}

/// A number that was counted up to 100,000.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct CountBody {
    count: u64,
    /// Whether there are more than were counted.
    more: bool,
}

pub(super) fn counted(Count { count, more }: Count) -> String {
    format!(r#"{{"count":{count},"more":{more}}}"#)
}

/// What waits in a queue. Numbers are counted up to 100,000.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct WaitingBody {
    ready: CountBody,
    delayed: CountBody,
    claimed: CountBody,
    dead: CountBody,
    /// How long the first in line has waited, in milliseconds; null if there is none.
    oldest_ms: Option<i64>,
    /// Why nothing is taken from it; null if it is not paused.
    paused: Option<String>,
}

/// What waits in a queue, in the making.
pub(super) fn waiting(stats: &QueueStats) -> Object {
    let oldest = stats.oldest.map_or("null".to_owned(), |time| time.as_millis().to_string());
    Object::new()
        .raw("ready", &counted(stats.ready))
        .raw("delayed", &counted(stats.delayed))
        .raw("claimed", &counted(stats.claimed))
        .raw("dead", &counted(stats.dead))
        .raw("oldest_ms", &oldest)
        .optional("paused", stats.paused.as_deref())
}

/// Shows what a queue has. One that nothing was ever put into is empty.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/queues/{queue}",
    tag = "queues",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
    ),
    responses((status = 200, description = "What it has", body = QueueBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue)): At<(String, String)>,
) -> Answered {
    let stats = queues::stats(&who, app.store(&store)?, &queue).await?;
    let text = waiting(&stats).text("name", &queue);
    Ok(json(StatusCode::OK, text.finish()))
}

/// Why a queue is paused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PauseBody {
    /// For people.
    reason: String,
}

/// Pauses a queue: from now on nothing is claimed, by anybody.
///
/// What is being worked on goes on, and messages can be enqueued.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/pause",
    tag = "queues",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = PauseBody,
    responses((status = 200, description = "It is paused", body = OutcomeBody), ProblemAnswers),
)]
async fn pause(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue)): At<(String, String)>,
    content: Content,
) -> Answered {
    let served = app.store(&store)?;
    queues::reach(&who, served, Need::Admin)?;
    let PauseBody { reason } = content.read()?;
    let mark = content.mark(&who)?;
    let once = queues::pause(&who, served, &queue, &reason, mark.as_ref()).await?;
    Ok(told(&once))
}

/// Lets a paused queue go on.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/resume",
    tag = "queues",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses((status = 200, description = "It goes on", body = OutcomeBody), ProblemAnswers),
)]
async fn resume(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue)): At<(String, String)>,
    content: Content,
) -> Answered {
    let mark = content.mark(&who)?;
    let once = queues::resume(&who, app.store(&store)?, &queue, mark.as_ref()).await?;
    Ok(told(&once))
}
