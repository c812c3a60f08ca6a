//! Dead letters: `/v1/stores/{store}/queues/{queue}/dead-letters`.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::moment_text;
use keyward::queue::DeadLetter;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{empty, json, mark_replayed};
use super::claims::{PastAttemptBody, past};
use super::entries::page_limit;
use super::queues::{OutcomeBody, PageParameters, told};
use super::request::{At, Content, Parameters};
use super::text::Object;
use crate::api::dead_letters;
use crate::api::queues::{Paging, reach};
use crate::app::App;
use crate::auth::Need;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, remove))
        .routes(routes!(requeue))
        .routes(routes!(requeue_page))
}

/// A message that nobody could work off.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct DeadLetterBody {
    id: String,
    payload: serde_json::Value,
    /// The version of its content.
    version: Option<String>,
    /// Why it is here.
    reason: String,
    /// How many attempts were made.
    retry_count: u32,
    /// When it was enqueued.
    created: String,
    /// When it became a dead letter.
    died: String,
    /// The attempts, the latest of them.
    history: Vec<PastAttemptBody>,
}

pub(super) fn dead_letter(dead: &DeadLetter) -> String {
    Object::new()
        .text("id", &dead.id)
        .raw("payload", dead.payload.as_str())
        .optional("version", dead.version.as_deref())
        .text("reason", &dead.reason)
        .raw("retry_count", &dead.retry_count.to_string())
        .text("created", &moment_text(dead.created))
        .text("died", &moment_text(dead.died))
        .list("history", dead.history.iter().map(past))
        .finish()
}

/// A page of dead letters.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct DeadLettersBody {
    /// By id.
    items: Vec<DeadLetterBody>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// Lists the dead letters of a queue by id, a page at a time.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/queues/{queue}/dead-letters",
    tag = "dead_letters",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        PageParameters,
    ),
    responses((status = 200, description = "A page", body = DeadLettersBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue)): At<(String, String)>,
    Parameters(asked): Parameters<PageParameters>,
) -> Answered {
    let page = dead_letters::list(&who, app.store(&store)?, &queue, &asked.paging()?).await?;
    let items = page.items.iter().map(dead_letter);
    let text = Object::new().list("items", items).optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}

/// Shows a dead letter, with its reason and its attempts.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/queues/{queue}/dead-letters/{id}",
    tag = "dead_letters",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a dead letter"),
    ),
    responses((status = 200, description = "The dead letter", body = DeadLetterBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue, id)): At<(String, String, String)>,
) -> Answered {
    let dead = dead_letters::show(&who, app.store(&store)?, &queue, &id).await?;
    Ok(json(StatusCode::OK, dead_letter(&dead)))
}

/// Removes a dead letter for good.
#[utoipa::path(
    delete,
    path = "/v1/stores/{store}/queues/{queue}/dead-letters/{id}",
    tag = "dead_letters",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a dead letter"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses((status = 204, description = "It is not there"), ProblemAnswers),
)]
async fn remove(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue, id)): At<(String, String, String)>,
    content: Content,
) -> Answered {
    let mark = content.mark(&who)?;
    let once = dead_letters::remove(&who, app.store(&store)?, &queue, &id, mark.as_ref()).await?;
    let mut response = empty(StatusCode::NO_CONTENT);
    mark_replayed(&mut response, once.replayed);
    Ok(response)
}

/// Puts a dead letter back in line, as the last one, with its attempts counted anew.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/dead-letters/{id}/requeue",
    tag = "dead_letters",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a dead letter"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses((status = 200, description = "It is in line", body = OutcomeBody), ProblemAnswers),
)]
async fn requeue(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue, id)): At<(String, String, String)>,
    content: Content,
) -> Answered {
    let mark = content.mark(&who)?;
    let once = dead_letters::requeue(&who, app.store(&store)?, &queue, &id, mark.as_ref()).await?;
    Ok(told(&once))
}

/// Which dead letters to put back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RequeueBody {
    /// Only those whose reason contains this.
    reason: Option<String>,
    /// At most so many are looked at.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier request ended.
    cursor: Option<String>,
}

/// Dead letters that were put back.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct RequeuedBody {
    /// So many.
    requeued: u64,
    /// Where to go on; null, if all were looked at.
    next: Option<String>,
}

/// Puts dead letters back in line, one after the other, some at a time.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/dead-letters/requeue",
    tag = "dead_letters",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
    ),
    request_body = RequeueBody,
    responses((status = 200, description = "How many were put back", body = RequeuedBody), ProblemAnswers),
)]
async fn requeue_page(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue)): At<(String, String)>,
    content: Content,
) -> Answered {
    let served = app.store(&store)?;
    reach(&who, served, Need::Admin)?;
    let asked: RequeueBody = content.read()?;
    if content.mark(&who)?.is_some() {
        return Err(Problem::invalid("an idempotency key is for what is done in one commit")
            .hint("Leave out Idempotency-Key: what was put back is not put back again.")
            .into());
    }
    let paging = Paging { limit: page_limit(asked.limit)?, cursor: asked.cursor };
    let reason = asked.reason.as_deref();
    let done = dead_letters::requeue_page(&who, served, &queue, reason, &paging).await?;
    let text = Object::new()
        .raw("requeued", &done.requeued.to_string())
        .optional("next", done.next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}
