//! Messages: `/v1/stores/{store}/queues/{queue}/messages`.

use keyward::Code;
use keyward::moment_text;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use keyward::queue::{Enqueued, Queue, QueuedMessage, State as MessageState};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{empty, json, mark_replayed};
use super::entries::{page_limit, stored};
use super::request::{At, Content, Parameters};
use super::text::Object;
use crate::api::messages::{self, Draft};
use crate::api::queues::{Paging, reach};
use crate::app::App;
use crate::auth::Need;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

/// The longest delay, retention or other time that is asked for: a year.
const TIME_MAX_MS: u64 = 366 * 24 * 60 * 60 * 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(enqueue, list)).routes(routes!(show, remove))
}

/// A time that was asked for, if it is not too long.
pub(super) fn time(name: &str, asked_ms: u64) -> Result<Duration> {
    match asked_ms {
        ..=TIME_MAX_MS => Ok(Duration::from_millis(asked_ms)),
        _ => Err(Problem::invalid(format!("{name} is at most {TIME_MAX_MS}"))),
    }
}

/// A message to be enqueued.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageDraft<'b> {
    /// Any JSON.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    pub payload: &'b RawValue,
    /// An id of one's own, an idempotency key: the same content under the same id is a duplicate, as
    /// long as it is in the queue or among the dead letters, and for ten minutes after its end; other
    /// content is refused.
    #[schema(max_length = 500)]
    pub id: Option<String>,
    /// The version of its content.
    pub version: Option<String>,
    /// Not to be claimed before this time has passed.
    pub delay_ms: Option<u64>,
    /// Whether it takes the place of a message with its id and other content, also of one that is
    /// being worked on.
    #[serde(default)]
    pub replace: bool,
}

impl MessageDraft<'_> {
    pub fn draft(self, queue: &str) -> Result<Draft> {
        Ok(Draft {
            queue: queue.to_owned(),
            payload: stored(self.payload)?,
            id: self.id,
            version: self.version,
            delay: self.delay_ms.map(|ms| time("delay_ms", ms)).transpose()?,
            replaces: self.replace,
        })
    }
}

/// Messages to be enqueued.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EnqueueBody<'b> {
    /// Up to 1000, in this order.
    #[serde(borrow)]
    #[schema(max_items = 1000)]
    messages: Vec<MessageDraft<'b>>,
}

/// Messages that were enqueued.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct EnqueuedBody {
    /// In the order of the request.
    messages: Vec<EnqueuedMessage>,
}

/// What became of a message.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct EnqueuedMessage {
    id: String,
    /// `added`, `duplicate` (it was there, or was done lately), or `replaced` (it took the place of
    /// another).
    outcome: String,
}

pub(super) fn fate(fate: &Enqueued) -> String {
    let outcome = match fate {
        Enqueued::Added { .. } => "added",
        Enqueued::Duplicate { .. } => "duplicate",
        Enqueued::Replaced { .. } => "replaced",
    };
    Object::new().text("id", fate.id()).text("outcome", outcome).finish()
}

/// Enqueues messages in one commit, all or none.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/messages",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = EnqueueBody<'_>,
    responses((status = 200, description = "What became of each", body = EnqueuedBody), ProblemAnswers),
)]
async fn enqueue(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue)): At<(String, String)>,
    content: Content,
) -> Answered {
    let served = app.store(&store)?;
    reach(&who, served, Need::Write)?;
    let asked: EnqueueBody<'_> = content.read()?;
    if asked.messages.len() > Queue::ENQUEUE_MAX {
        let detail = format!("up to {} messages are enqueued at once", Queue::ENQUEUE_MAX);
        return Err(Problem::new(Code::LimitExceeded, detail)
            .hint("Enqueue some of them at a time.")
            .into());
    }
    let drafts = asked.messages.into_iter().map(|message| message.draft(&queue));
    let drafts = drafts.collect::<Result<Vec<_>>>()?;
    let mark = content.mark(&who)?;
    let done = messages::enqueue(&who, served, &queue, drafts, mark.as_ref()).await?;
    let text = Object::new().list("messages", done.fates.iter().map(fate));
    let mut response = json(StatusCode::OK, text.finish());
    mark_replayed(&mut response, done.replayed);
    Ok(response)
}

/// A message that is in its queue.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct MessageBody {
    id: String,
    payload: serde_json::Value,
    /// The version of its content.
    version: Option<String>,
    /// `ready`, `delayed` or `claimed`.
    state: String,
    /// How many attempts ended without a completion.
    retry_count: u32,
    /// When it was enqueued.
    created: String,
    /// Until when it waits; of a claimed one, when its lease was to end at first.
    due: Option<String>,
    /// Who has it in hand.
    holder: Option<String>,
    /// Why the last attempt failed.
    error: Option<String>,
    /// Whether it is a job.
    job: bool,
}

pub(super) fn message(message: &QueuedMessage) -> String {
    Object::new()
        .text("id", &message.id)
        .raw("payload", message.payload.as_str())
        .optional("version", message.version.as_deref())
        .text("state", &message.state.to_string())
        .raw("retry_count", &message.retry_count.to_string())
        .text("created", &moment_text(message.created))
        .optional("due", message.due.map(moment_text).as_deref())
        .optional("holder", message.holder.as_deref())
        .optional("error", message.error.as_deref())
        .raw("job", &message.is_job.to_string())
        .finish()
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MessageParameters {
    /// Only messages that are `ready`, `delayed` or `claimed`.
    #[param(value_type = Option<String>)]
    state: Option<MessageState>,
    /// At most so many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page of the same listing ended.
    cursor: Option<String>,
}

/// A page of messages.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct MessagesBody {
    /// By id.
    items: Vec<MessageBody>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// Lists the messages of a queue by id, a page at a time. A page may be short, even empty, and still
/// have a next one.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/queues/{queue}/messages",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        MessageParameters,
    ),
    responses((status = 200, description = "A page", body = MessagesBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue)): At<(String, String)>,
    Parameters(asked): Parameters<MessageParameters>,
) -> Answered {
    let paging = Paging { limit: page_limit(asked.limit)?, cursor: asked.cursor };
    let page = messages::list(&who, app.store(&store)?, &queue, asked.state, &paging).await?;
    let items = page.items.iter().map(message);
    let text = Object::new().list("items", items).optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}

/// Shows a message that is in its queue.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/queues/{queue}/messages/{id}",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a message"),
    ),
    responses((status = 200, description = "The message", body = MessageBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue, id)): At<(String, String, String)>,
) -> Answered {
    let found = messages::show(&who, app.store(&store)?, &queue, &id).await?;
    Ok(json(StatusCode::OK, message(&found)))
}

/// Removes a message for good, also one that is being worked on; its completion is refused then.
#[utoipa::path(
    delete,
    path = "/v1/stores/{store}/queues/{queue}/messages/{id}",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a message"),
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
    let once = messages::remove(&who, app.store(&store)?, &queue, &id, mark.as_ref()).await?;
    let mut response = empty(StatusCode::NO_CONTENT);
    mark_replayed(&mut response, once.replayed);
    Ok(response)
}
