//! Jobs: `/v1/stores/{store}/jobs`.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use futures_util::{Stream, StreamExt};
use keyward::moment_text;
use keyward::queue::{Job, JobOptions, Status};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{json, located, mark_replayed};
use super::entries::stored;
use super::event_stream::{answer, event, problem_event};
use super::messages::time;
use super::queues::{OutcomeBody, PageParameters, told};
use super::request::{At, Content, Parameters};
use super::text::Object;
use super::watch::{Open, over};
use crate::api::jobs;
use crate::api::queues::reach;
use crate::app::App;
use crate::auth::Need;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(submit, list))
        .routes(routes!(show))
        .routes(routes!(cancel))
        .routes(routes!(watch))
}

/// A job to be done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SubmitBody<'b> {
    /// The queue it is worked off from.
    queue: String,
    /// Any JSON.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    payload: &'b RawValue,
    /// An id of one's own, an idempotency key: the same job submitted again is a duplicate, other
    /// content is refused.
    #[schema(max_length = 500)]
    id: Option<String>,
    /// How long it is kept after its end; a day, if it is left out.
    #[schema(minimum = 1)]
    retention_ms: Option<u64>,
    /// How long one attempt may take.
    #[schema(minimum = 1)]
    timeout_ms: Option<u64>,
    /// Not to be begun before this time has passed.
    delay_ms: Option<u64>,
}

impl SubmitBody<'_> {
    fn options(&self) -> Result<JobOptions> {
        let time = |name, asked: Option<u64>| asked.map(|ms| time(name, ms)).transpose();
        let some_time = |name: &'static str, asked| match asked {
            Some(0) => Err(Problem::invalid(format!("{name} is at least 1"))
                .hint(format!("Leave out {name} for the usual."))),
            asked => time(name, asked),
        };
        let usual = JobOptions::default();
        Ok(JobOptions {
            id: self.id.clone(),
            retention: some_time("retention_ms", self.retention_ms)?.unwrap_or(usual.retention),
            timeout: some_time("timeout_ms", self.timeout_ms)?,
            delay: time("delay_ms", self.delay_ms)?,
        })
    }
}

/// A job that was submitted.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct SubmittedBody {
    id: String,
    /// `added`, or `duplicate`.
    outcome: String,
}

/// Submits a job: a message whose course and result are kept.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/jobs",
    tag = "jobs",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = SubmitBody<'_>,
    responses(
        (status = 200, description = "It was submitted before", body = SubmittedBody),
        (status = 201, description = "It is in its queue", body = SubmittedBody),
        ProblemAnswers,
    ),
)]
async fn submit(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let served = app.store(&store)?;
    reach(&who, served, Need::Write)?;
    let asked: SubmitBody<'_> = content.read()?;
    let (payload, options) = (stored(asked.payload)?, asked.options()?);
    let mark = content.mark(&who)?;
    let submitted = jobs::submit(&who, served, &asked.queue, &payload, &options, mark.as_ref());
    let (id, once) = submitted.await?;
    let status = if once.word == "added" { StatusCode::CREATED } else { StatusCode::OK };
    let text = Object::new().text("id", &id).text("outcome", &once.word);
    let mut response = json(status, text.finish());
    let (name, place) = located(&["v1", "stores", &store, "jobs", &id])?;
    response.headers_mut().insert(name, place);
    mark_replayed(&mut response, once.replayed);
    Ok(response)
}

/// A job.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct JobBody {
    id: String,
    /// The queue it is worked off from.
    queue: String,
    submitted: String,
    /// When it ended; null, if it has not.
    finished: Option<String>,
    status: StatusBody,
}

/// What a job is doing, or how it ended: exactly one of these, told apart by its name.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct StatusBody {
    /// It is under way.
    activity: Option<ActivityBody>,
    /// It is done; this came of it: any JSON.
    result: Option<serde_json::Value>,
    /// It came to no result.
    trace: Option<TraceBody>,
}

/// What a job is doing.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct ActivityBody {
    /// `scheduling` while it waits, `running`, or what its worker says.
    name: String,
    /// What there is to add.
    detail: Option<String>,
    /// How far it is.
    progress: Option<ProgressTold>,
    /// Which attempt is under way, or would be next, counted from 1.
    attempt: u32,
}

/// How far a job is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct ProgressTold {
    done: u64,
    total: Option<u64>,
}

/// Why a job came to no result.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct TraceBody {
    /// `failed`, `cancelled` or `dropped`.
    kind: String,
    message: String,
    attempts: u32,
}

/// A job, as text.
pub(crate) fn job(job: &Job) -> Result<String> {
    let text = Object::new()
        .text("id", &job.id)
        .text("queue", &job.queue)
        .text("submitted", &moment_text(job.submitted))
        .optional("finished", job.finished.map(moment_text).as_deref())
        .raw("status", job.status.to_json()?.as_str());
    Ok(text.finish())
}

/// A page of jobs.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct JobsBody {
    /// By id.
    items: Vec<JobBody>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// Lists jobs by id, a page at a time.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/jobs",
    tag = "jobs",
    params(("store" = String, Path, description = "The name of a store"), PageParameters),
    responses((status = 200, description = "A page", body = JobsBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    Parameters(asked): Parameters<PageParameters>,
) -> Answered {
    let page = jobs::list(&who, app.store(&store)?, &asked.paging()?).await?;
    let items = page.items.iter().map(job).collect::<Result<Vec<_>>>()?;
    let text = Object::new().list("items", items).optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}

/// Shows a job with its status: an activity, a result or a trace.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/jobs/{id}",
    tag = "jobs",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("id" = String, Path, description = "The id of a job"),
    ),
    responses((status = 200, description = "The job", body = JobBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, id)): At<(String, String)>,
) -> Answered {
    let found = jobs::show(&who, app.store(&store)?, &id).await?;
    Ok(json(StatusCode::OK, job(&found)?))
}

/// Cancels a job: it leaves its queue, and its status is a trace. One that had ended stays as it is
/// (`finished`).
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/jobs/{id}/cancel",
    tag = "jobs",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("id" = String, Path, description = "The id of a job"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses((status = 200, description = "`cancelled` or `finished`", body = OutcomeBody), ProblemAnswers),
)]
async fn cancel(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, id)): At<(String, String)>,
    content: Content,
) -> Answered {
    let mark = content.mark(&who)?;
    let once = jobs::cancel(&who, app.store(&store)?, &id, mark.as_ref()).await?;
    Ok(told(&once))
}

/// One event of the stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as lines")]
pub(super) struct JobEvent {
    /// `status`, or `problem` before an end that is none of the job's.
    event: String,
    /// JSON: an object with `activity`, `result` or `trace`; `code` and `detail` of a problem.
    data: String,
}

/// Tells the statuses of a job from now on, as server-sent events called `status`.
///
/// The data of each is an object with `activity`, `result` or `trace`. The stream ends when the job has
/// ended.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/jobs/{id}/watch",
    tag = "jobs",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("id" = String, Path, description = "The id of a job"),
    ),
    responses(
        (status = 200, description = "Events, until the job has ended", content_type = "text/event-stream", body = JobEvent),
        ProblemAnswers,
    ),
)]
async fn watch(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, id)): At<(String, String)>,
    headers: HeaderMap,
) -> Answered {
    let statuses = jobs::watch(&who, app.store(&store)?, &id).await?;
    let open = Open::new(&app, &who)?;
    Ok(watched(app, open, statuses, headers))
}

/// Tells the statuses of a job until it has ended, the server stops or the credential is no longer valid.
pub(super) fn watched(
    app: App,
    open: Open,
    statuses: impl Stream<Item = Result<Status>> + Send + 'static,
    headers: HeaderMap,
) -> Response<Body> {
    answer(&app, open, statuses.map(sent), over(app.clone(), headers))
}

fn sent(status: Result<Status>) -> Bytes {
    match status.and_then(|status| Ok(status.to_json()?)) {
        Ok(status) => event("status", None, status.as_str()),
        Err(problem) => problem_event(&problem),
    }
}
