//! Tasks of a workspace, and the jobs that do them.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use keyward::agreements::Task;
use keyward::queue::Job;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::agreements::{reach, tasks};
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::answer::{json, located, mark_replayed};
use crate::http::jobs::{JobBody, JobEvent, job, watched};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::queues::{OutcomeBody, told};
use crate::http::request::Authenticated;
use crate::http::request::{At, Content};
use crate::http::watch::Open;
use crate::idempotency::Mark;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(submit))
        .routes(routes!(show, cancel))
        .routes(routes!(watch))
}

/// Something to be done: `task` says what, the rest with what.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is read elsewhere")]
#[schema(rename_all = "camelCase")]
struct TaskBody {
    /// `policies`, `policy`, `analyze`, `issues`, `classify`, `annotate`, `transition`, `archive`; with
    /// `admin` also `clear` and `purge`.
    task: String,
    /// The page. Only a `purge` of all pages has none.
    page: Option<String>,
    /// The policy, of `policy`.
    source: Option<String>,
    /// The language, of `policy`.
    language: Option<String>,
    /// Whether it is made again, also if it is there and up to date, of `policy`.
    redo: Option<bool>,
    /// Whether also if nothing has changed since the last time, of `analyze`.
    again: Option<bool>,
    /// Which issues, of `issues`.
    filter: Option<serde_json::Value>,
    /// The issue, of `classify`, `annotate`, `transition` and `archive`.
    issue: Option<String>,
    /// 1, 2 or 3, of `classify`.
    severity: Option<u8>,
    /// In Markdown, of `annotate`.
    annotations: Option<String>,
    /// The state, of `transition`.
    to: Option<String>,
    /// Why, of `transition`.
    why: Option<String>,
    /// Whether it is put away, of `archive`.
    archived: Option<bool>,
    /// Whether also if it was done a short while ago, of `purge`.
    now: Option<bool>,
}

/// The answer to what is done by a job: where to ask for it.
pub(super) fn accepted(workspace: &str, accepted: &Job) -> Answered {
    let mut response = json(StatusCode::ACCEPTED, job(accepted)?);
    let (name, place) = located(&["v1", "agreements", workspace, "jobs", &accepted.id])?;
    response.headers_mut().insert(name, place);
    Ok(response)
}

/// Submits a task, which is done in the background.
#[utoipa::path(
    post,
    path = "/v1/agreements/{workspace}/tasks",
    tag = "agreements",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once: the key gives the job its id"),
    ),
    request_body = TaskBody,
    responses(
        (status = 202, description = "It is in its queue: Location tells where to ask for the job", body = JobBody),
        ProblemAnswers,
    ),
)]
async fn submit(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    let task: Task = content.read()?;
    let mark = content.mark(&who)?;
    submitted(&who, &app, &name, task, mark.as_ref()).await
}

/// Submits a task, and tells of its job.
pub(super) async fn submitted(
    who: &Identity,
    app: &App,
    name: &str,
    task: Task,
    mark: Option<&Mark>,
) -> Answered {
    let wanted = tasks::submit(who, app, name, task, mark).await?;
    let mut response = accepted(name, &wanted.job)?;
    mark_replayed(&mut response, wanted.replayed);
    Ok(response)
}

/// Shows a job with its status: an activity, a result or a trace.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/jobs/{job}",
    tag = "agreements",
    operation_id = "job",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("job" = String, Path, description = "The id of a job"),
    ),
    responses((status = 200, description = "The job", body = JobBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, id)): At<(String, String)>,
) -> Answered {
    let found = tasks::show(&who, &app, &name, &id).await?;
    Ok(json(StatusCode::OK, job(&found)?))
}

/// Cancels a job: what it does is dropped, and its status is a trace. One that had ended stays as it is
/// (`finished`).
#[utoipa::path(
    delete,
    path = "/v1/agreements/{workspace}/jobs/{job}",
    tag = "agreements",
    operation_id = "cancel",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("job" = String, Path, description = "The id of a job"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses((status = 200, description = "`cancelled` or `finished`", body = OutcomeBody), ProblemAnswers),
)]
async fn cancel(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, id)): At<(String, String)>,
    content: Content,
) -> Answered {
    let mark = content.mark(&who)?;
    Ok(told(&tasks::cancel(&who, &app, &name, &id, mark.as_ref()).await?))
}

/// Tells the statuses of a job from now on, as server-sent events called `status`.
///
/// The data of each is an object with `activity`, `result` or `trace`. The stream ends when the job has
/// ended.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/jobs/{job}/watch",
    tag = "agreements",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("job" = String, Path, description = "The id of a job"),
    ),
    responses(
        (status = 200, description = "Events, until the job has ended", content_type = "text/event-stream", body = JobEvent),
        ProblemAnswers,
    ),
)]
async fn watch(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, id)): At<(String, String)>,
    headers: HeaderMap,
) -> Answered {
    let statuses = tasks::watch(&who, &app, &name, &id).await?;
    let open = Open::new(&app, &who)?;
    Ok(watched(app, open, statuses, headers))
}
