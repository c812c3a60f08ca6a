//! What waits for the consumers of a registry, and what they could not be told.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Names, names, waiting};
use crate::api::registries::{queue, reach};
use crate::app::App;
use crate::auth::Need;
use crate::http::answer::{empty, json, mark_replayed};
use crate::http::dead_letters::{DeadLettersBody, RequeuedBody, dead_letter};
use crate::http::entries::page_limit;
use crate::http::messages::{MessageBody, message};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::queues::{CountBody, OutcomeBody, told};
use crate::http::request::Authenticated;
use crate::http::request::{At, Content, Parameters};
use crate::http::text::Object;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show))
        .routes(routes!(list))
        .routes(routes!(requeue_page))
        .routes(routes!(requeue))
        .routes(routes!(remove))
}

/// What waits for consumers, and a page of it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct QueueOfBody {
    /// Changes in line.
    ready: CountBody,
    /// Changes that wait for their next attempt.
    delayed: CountBody,
    /// Changes that consumers are being told of.
    claimed: CountBody,
    /// Dead letters.
    dead: CountBody,
    /// How long the first in line has waited, in milliseconds; null if there is none.
    oldest_ms: Option<i64>,
    /// Why consumers are told nothing; null if they are.
    paused: Option<String>,
    /// By the names of policies.
    items: Vec<MessageBody>,
    /// What to give as `after` for the next page; null at the end.
    next: Option<String>,
}

/// Shows what waits for the consumers of a registry, a page at a time by the names of policies.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}/queue",
    tag = "registries",
    operation_id = "queue",
    params(("registry" = String, Path, description = "The name of a registry"), super::PageOfNames),
    responses((status = 200, description = "What waits", body = QueueOfBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    Parameters(asked): Names,
) -> Answered {
    let (after, limit) = names(asked)?;
    let (stats, page) = queue::show(&who, &app, &name, after.as_deref(), limit).await?;
    let text = waiting(&stats)
        .list("items", page.items.iter().map(message))
        .optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}

/// Lists the changes that consumers could not be told of, by the names of policies, a page at a time.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}/dead-letters",
    tag = "registries",
    operation_id = "dead_letters",
    params(("registry" = String, Path, description = "The name of a registry"), super::PageOfNames),
    responses((status = 200, description = "A page; `next` is the next one's `after`", body = DeadLettersBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    Parameters(asked): Names,
) -> Answered {
    let (after, limit) = names(asked)?;
    let page = queue::dead_letters(&who, &app, &name, after.as_deref(), limit).await?;
    let items = page.items.iter().map(dead_letter);
    let text = Object::new().list("items", items).optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}

/// Puts a change back in line, with its attempts counted anew.
#[utoipa::path(
    post,
    path = "/v1/registries/{registry}/dead-letters/{policy}/requeue",
    tag = "registries",
    params(
        ("registry" = String, Path, description = "The name of a registry"),
        ("policy" = String, Path, description = "The name of a policy"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses((status = 200, description = "It is in line", body = OutcomeBody), ProblemAnswers),
)]
async fn requeue(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, policy)): At<(String, String)>,
    content: Content,
) -> Answered {
    let mark = content.mark(&who)?;
    Ok(told(&queue::requeue(&who, &app, &name, &policy, mark.as_ref()).await?))
}

/// Which dead letters to put back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RequeueOfBody {
    /// At most so many.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of an earlier request.
    #[schema(max_length = 500)]
    after: Option<String>,
}

/// Puts all changes that consumers could not be told of back in line, one after the other, some at a time.
#[utoipa::path(
    post,
    path = "/v1/registries/{registry}/dead-letters/requeue",
    tag = "registries",
    params(("registry" = String, Path, description = "The name of a registry")),
    request_body = RequeueOfBody,
    responses((status = 200, description = "How many were put back; `next` is where to go on", body = RequeuedBody), ProblemAnswers),
)]
async fn requeue_page(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    let RequeueOfBody { limit, after } = content.read()?;
    content.without_mark(&who)?;
    let (after, limit) = (super::after(after)?, page_limit(limit)?);
    let done = queue::requeue_page(&who, &app, &name, after.as_deref(), limit).await?;
    let text = Object::new()
        .raw("requeued", &done.requeued.to_string())
        .optional("next", done.next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}

/// Removes a change that consumers could not be told of, for good.
#[utoipa::path(
    delete,
    path = "/v1/registries/{registry}/dead-letters/{policy}",
    tag = "registries",
    params(
        ("registry" = String, Path, description = "The name of a registry"),
        ("policy" = String, Path, description = "The name of a policy"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses((status = 204, description = "It is not there"), ProblemAnswers),
)]
async fn remove(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, policy)): At<(String, String)>,
    content: Content,
) -> Answered {
    let mark = content.mark(&who)?;
    let once = queue::remove(&who, &app, &name, &policy, mark.as_ref()).await?;
    let mut response = empty(StatusCode::NO_CONTENT);
    mark_replayed(&mut response, once.replayed);
    Ok(response)
}
