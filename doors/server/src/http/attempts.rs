//! How attempts go on and end: `/v1/stores/{store}/queues/{queue}/messages/{id}/complete` and the like.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::queue::{Activity, Failure, Progress, Ticket};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{empty, json};
use super::claims::millis;
use super::entries::stored;
use super::messages::time;
use super::queues::{OutcomeBody, told};
use super::request::{At, Content};
use super::text::Object;
use keyward::Code;

use crate::api::claims::{self, End};
use crate::api::queues::reach;
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

/// The longest text that a worker says about what it is doing.
const SAID_BYTES_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(complete))
        .routes(routes!(retry))
        .routes(routes!(fail))
        .routes(routes!(release))
        .routes(routes!(heartbeat))
        .routes(routes!(progress))
}

/// An attempt that did its work.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CompleteBody<'b> {
    /// What names the attempt.
    nonce: String,
    /// What came of it: kept if it is a job. Any JSON.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<&'b RawValue>,
}

/// Completes a message: it leaves its queue.
///
/// Sent again by the same attempt, it is answered as done, for as long as the completion is remembered:
/// for a lease, for ten minutes where the message's id was given, for a day with an `Idempotency-Key`.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/messages/{id}/complete",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a message"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = CompleteBody<'_>,
    responses((status = 200, description = "It is done", body = OutcomeBody), ProblemAnswers),
)]
async fn complete(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(at): At<(String, String, String)>,
    content: Content,
) -> Answered {
    reach(&who, app.store(&at.0)?, Need::Write)?;
    let CompleteBody { nonce, result } = content.read()?;
    let end = End::Complete(result.map(stored).transpose()?);
    ended(&app, &who, at, nonce, end, &content).await
}

/// An attempt that failed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RetryBody {
    /// What names the attempt.
    nonce: String,
    /// What went wrong.
    reason: String,
    /// After which time it is tried again, rather than after the queue's own.
    after_ms: Option<u64>,
}

/// Fails an attempt: the message is tried again later, or becomes a dead letter if this was the last.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/messages/{id}/retry",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a message"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = RetryBody,
    responses((status = 200, description = "The attempt has ended", body = OutcomeBody), ProblemAnswers),
)]
async fn retry(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(at): At<(String, String, String)>,
    content: Content,
) -> Answered {
    reach(&who, app.store(&at.0)?, Need::Write)?;
    let RetryBody { nonce, reason, after_ms } = content.read()?;
    let failure = match after_ms {
        Some(ms) => Failure::new(reason).retry_after(time("after_ms", ms)?),
        None => Failure::new(reason),
    };
    ended(&app, &who, at, nonce, End::Fail(failure), &content).await
}

/// A message that cannot be worked off.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FailBody {
    /// What names the attempt.
    nonce: String,
    /// What is wrong.
    reason: String,
}

/// Fails a message for good: it becomes a dead letter at once.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/messages/{id}/fail",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a message"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = FailBody,
    responses((status = 200, description = "It is a dead letter", body = OutcomeBody), ProblemAnswers),
)]
async fn fail(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(at): At<(String, String, String)>,
    content: Content,
) -> Answered {
    reach(&who, app.store(&at.0)?, Need::Write)?;
    let FailBody { nonce, reason } = content.read()?;
    ended(&app, &who, at, nonce, End::Fail(Failure::permanent(reason)), &content).await
}

/// What names an attempt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AttemptBody {
    /// As the claim told it.
    nonce: String,
}

/// Gives a message back, as if it had not been claimed: for a worker that stops.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/messages/{id}/release",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a message"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = AttemptBody,
    responses((status = 200, description = "It is in line again", body = OutcomeBody), ProblemAnswers),
)]
async fn release(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(at): At<(String, String, String)>,
    content: Content,
) -> Answered {
    reach(&who, app.store(&at.0)?, Need::Write)?;
    let AttemptBody { nonce } = content.read()?;
    ended(&app, &who, at, nonce, End::Release, &content).await
}

async fn ended(
    app: &App,
    who: &Identity,
    (store, queue, id): (String, String, String),
    nonce: String,
    end: End,
    content: &Content,
) -> Answered {
    let mark = content.mark(who)?;
    let (served, ticket) = (app.store(&store)?, Ticket { id, nonce });
    let once = claims::end(who, served, &queue, &ticket, &end, mark.as_ref()).await?;
    Ok(told(&once))
}

/// A message that is still held.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct HeldBody {
    /// For how long it is held from now on.
    lease_ms: u64,
}

/// Gives a sign of life: the message is held for another lease. It may be sent as often as one likes.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/messages/{id}/heartbeat",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a message"),
    ),
    request_body = AttemptBody,
    responses((status = 200, description = "It is held", body = HeldBody), ProblemAnswers),
)]
async fn heartbeat(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue, id)): At<(String, String, String)>,
    content: Content,
) -> Answered {
    let served = app.store(&store)?;
    reach(&who, served, Need::Write)?;
    let AttemptBody { nonce } = content.read()?;
    let lease = claims::beat(&who, served, &queue, &Ticket { id, nonce }).await?;
    let text = Object::new().raw("lease_ms", &millis(Some(lease)));
    Ok(json(StatusCode::OK, text.finish()))
}

/// What a worker is doing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProgressBody {
    /// What names the attempt.
    nonce: String,
    /// In one word; `running`, if it is left out.
    activity: Option<String>,
    /// What there is to add.
    detail: Option<String>,
    /// So much is done.
    done: Option<u64>,
    /// Of so much, if that is known.
    total: Option<u64>,
}

impl ProgressBody {
    fn activity(self) -> Result<(String, Activity)> {
        let texts = [&self.activity, &self.detail];
        if texts.iter().any(|text| text.as_ref().is_some_and(|it| it.len() > SAID_BYTES_MAX)) {
            let detail = format!("an activity and its detail have up to {SAID_BYTES_MAX} bytes");
            return Err(Problem::new(Code::LimitExceeded, detail).hint("Say less."));
        }
        let progress = match (self.done, self.total) {
            (Some(done), total) => Some(Progress { done, total }),
            (None, None) => None,
            (None, Some(_)) => return Err(Problem::invalid("there is a total, and nothing done")),
        };
        let name = self.activity.unwrap_or_else(|| "running".to_owned());
        Ok((self.nonce, Activity { name, detail: self.detail, progress, attempt: 0 }))
    }
}

/// Says what is being done, for those who watch the job. Says nothing about messages that are no jobs.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/messages/{id}/progress",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
        ("id" = String, Path, description = "The id of a message"),
    ),
    request_body = ProgressBody,
    responses((status = 204, description = "It is told"), ProblemAnswers),
)]
async fn progress(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue, id)): At<(String, String, String)>,
    content: Content,
) -> Answered {
    let served = app.store(&store)?;
    reach(&who, served, Need::Write)?;
    let (nonce, activity) = content.read::<ProgressBody>()?.activity()?;
    claims::tell(&who, served, &queue, &Ticket { id, nonce }, activity).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
