//! What runs of agents did: `/v1/agents/runs`.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::answer::json;
use super::super::entries::page_limit;
use super::super::request::{At, Parameters};
use super::super::text::{Object, quoted};
use super::document::AgentNames;
use super::{Acting, ActingHeaders};
use keyward::Code;

use crate::api::agents::{reach_user, runs as logs};
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(runs)).routes(routes!(operations))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsParameters {
    /// Whose runs, for a credential that is bound to no user.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
    /// At most so many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page ended.
    cursor: Option<String>,
}

/// Lists the runs that have a log, a page at a time.
#[utoipa::path(
    get,
    path = "/v1/agents/runs",
    tag = "agents",
    params(RunsParameters, ActingHeaders),
    responses((status = 200, description = "A page", body = AgentNames), ProblemAnswers),
)]
async fn runs(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    Parameters(asked): Parameters<RunsParameters>,
) -> Answered {
    let limit = page_limit(asked.limit)?;
    let reached = reach_user(&who, &app, &acting.for_user(asked.user))?;
    let page = logs::list(&who, &reached, asked.cursor, limit).await?;
    let body = Object::new()
        .list("items", page.runs.iter().map(|run| quoted(run)))
        .optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, body.finish()))
}

/// A page of what a run did.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentOperations {
    /// In the order of time.
    items: Vec<AgentOperation>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// Something that a run did.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentOperation {
    /// What: `get`, `set`, `delete` …
    op: String,
    /// When.
    at: String,
    agent: Option<String>,
    namespace: Option<String>,
    key: Option<String>,
    /// Whether there was something.
    found: Option<bool>,
    /// That nothing was changed, because the entry was not as the change expected.
    refused: Option<bool>,
    /// How many it was about, where it was about several.
    count: Option<u64>,
    /// The beginning of the value that was read or written.
    preview: Option<String>,
}

/// Shows what a run did, in the order of time, a page at a time. A run that did nothing, or is not known,
/// has an empty log; what is older than 30 days is gone.
#[utoipa::path(
    get,
    path = "/v1/agents/runs/{run}/operations",
    tag = "agents",
    params(
        ("run" = String, Path, description = "The run, as Keyward-Run named it"),
        RunsParameters,
        ActingHeaders,
    ),
    responses((status = 200, description = "A page", body = AgentOperations), ProblemAnswers),
)]
async fn operations(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(run): At<String>,
    Parameters(asked): Parameters<RunsParameters>,
) -> Answered {
    let limit = page_limit(asked.limit)?;
    let reached = reach_user(&who, &app, &acting.for_user(asked.user))?;
    let page = logs::operations(&who, &reached, &run, asked.cursor, limit).await?;
    let lines = page.operations.iter().map(serde_json::to_string);
    let lines = lines.collect::<serde_json::Result<Vec<_>>>();
    let lines = lines.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let body = Object::new().list("items", lines).optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, body.finish()))
}
