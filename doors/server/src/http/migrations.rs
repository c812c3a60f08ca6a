//! Long work on a store: `/v1/stores/{store}/migrations` and `/v1/stores/{store}/doctor`.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use keyward::Code;
use keyward::migrate::{Definition, Migration, Plan, Report};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entries::page_limit;
use super::request::{At, Content, Parameters};
use super::stores::answer;
use crate::api::migrations;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};
use crate::work::Standing;

/// The most indexes that are dropped at once.
const DROPPED_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, run)).routes(routes!(report, examine))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LedgerParameters {
    /// At most so many migrations.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only migrations before the one with this id: the `next` of the page before.
    before: Option<String>,
}

/// What a store knows about its migrations.
#[derive(Debug, Serialize, ToSchema)]
struct LedgerBody {
    /// Whether this server is running the plan now.
    running: bool,
    /// Why the last run of this server ended too early.
    problem: Option<Value>,
    /// What the store's indexes lack to be those of the schema.
    plan: PlanBody,
    /// The newest first.
    #[schema(value_type = Vec<Value>)]
    items: Vec<Migration>,
    /// What to give as `before` for the next page; null at the end.
    next: Option<String>,
}

/// What the store's indexes lack to be those of the schema.
#[derive(Debug, Serialize, ToSchema)]
struct PlanBody {
    /// Indexes to make, to go on making, or to make anew.
    #[schema(value_type = Vec<Value>)]
    build: Vec<Definition>,
    /// Indexes of declared spaces that the schema does not declare; they stay until they are dropped
    /// by name.
    #[schema(value_type = Vec<Value>)]
    undeclared: Vec<Definition>,
    /// Indexes of spaces that the schema does not declare.
    #[schema(value_type = Vec<Value>)]
    foreign: Vec<Definition>,
    /// Declared indexes whose name another space's index has.
    taken: Vec<Value>,
    /// Declared spaces that have other keys in the store.
    differing: Vec<Value>,
}

impl From<Plan> for PlanBody {
    fn from(plan: Plan) -> Self {
        let taken = plan
            .taken
            .iter()
            .map(|it| value!({ "index": it.index, "space": it.space, "holder": it.holder }));
        let differing = plan
            .differing
            .iter()
            .map(|it| value!({ "space": it.space, "declared": it.declared, "keys": it.keys }));
        Self {
            taken: taken.collect(),
            differing: differing.collect(),
            build: plan.build,
            undeclared: plan.undeclared,
            foreign: plan.foreign,
        }
    }
}

/// Shows the migrations of a store, and what is to be done.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/migrations",
    tag = "maintenance",
    params(("store" = String, Path, description = "The name of a store"), LedgerParameters),
    responses((status = 200, description = "The ledger and the plan", body = LedgerBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    Parameters(asked): Parameters<LedgerParameters>,
) -> Answered {
    let limit = page_limit(asked.limit)?;
    let served = app.store(&store)?;
    let (mut items, plan) = migrations::look(&who, served).await?;
    if let Some(before) = &asked.before {
        items.retain(|migration| migration.id < *before);
    }
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| last.id.clone());
    let Standing { running, failed, .. } = served.migrations.standing();
    answer(&LedgerBody { running, problem: failed.map(told), plan: plan.into(), items, next })
}

/// How the plan of a store is run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunBody {
    /// Indexes to drop first, which the schema does not declare.
    #[serde(default)]
    drop: Vec<String>,
    /// At most so many records each second.
    #[schema(value_type = Option<u32>, minimum = 1)]
    rate: Option<NonZeroU32>,
    /// For how many seconds to wait for its end; half of the time that an answer may take, at most.
    wait: Option<u64>,
}

/// What a run of the plan did.
#[derive(Debug, Serialize, ToSchema)]
struct RunAnswer {
    /// Whether it goes on: ask again then.
    running: bool,
    /// What was done so far, step by step.
    #[schema(value_type = Vec<Value>)]
    migrations: Vec<Migration>,
}

/// Brings a store's indexes to what the schema declares, while others use it.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/migrations",
    tag = "maintenance",
    params(("store" = String, Path, description = "The name of a store")),
    request_body = RunBody,
    responses(
        (status = 200, description = "It has ended", body = RunAnswer),
        (status = 202, description = "It goes on: Location tells where to ask", body = RunAnswer),
        ProblemAnswers,
    ),
)]
async fn run(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let RunBody { drop, rate, wait } = content.read()?;
    if drop.len() > DROPPED_MAX {
        return Err(
            Problem::invalid(format!("up to {DROPPED_MAX} indexes are dropped at once")).into()
        );
    }
    let served = app.store(&store)?;
    migrations::begin(&who, served, &drop, rate).await?;
    let standing = served.migrations.ended(waiting(&app, wait)).await;
    let (running, reached) = outcome(standing)?;
    let body = RunAnswer { running, migrations: reached.unwrap_or_default() };
    under_way(answer(&body)?, running, &store, "migrations")
}

/// How the store is to be examined.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExamineBody {
    /// Whether to mend what can be mended without touching a record.
    #[serde(default)]
    repair: bool,
    /// For how many seconds to wait for its end; half of the time that an answer may take, at most.
    wait: Option<u64>,
}

/// What an examination found.
#[derive(Debug, Serialize, ToSchema)]
struct ReportBody {
    /// Whether it goes on: ask again then.
    running: bool,
    /// How many things are not as they should be, the mended ones not counted.
    left: u64,
    /// `keys` that were looked at, `counts` by code, how many were `repaired`, those `found`, the first
    /// thousand, and how many `expired` entries still took space, of which so many were `reclaimed`.
    #[serde(flatten)]
    #[schema(value_type = Value)]
    report: Report,
}

/// Looks through a whole store for what is not as it should be.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/doctor",
    tag = "maintenance",
    params(("store" = String, Path, description = "The name of a store")),
    request_body = ExamineBody,
    responses(
        (status = 200, description = "It has ended", body = ReportBody),
        (status = 202, description = "It goes on: Location tells where to ask", body = ReportBody),
        ProblemAnswers,
    ),
)]
async fn examine(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let ExamineBody { repair, wait } = content.read()?;
    let served = app.store(&store)?;
    migrations::examine(&who, served, repair)?;
    let standing = served.examination.ended(waiting(&app, wait)).await;
    let (running, report) = outcome(standing)?;
    let report = report.unwrap_or_default();
    let body = ReportBody { running, left: report.left(), report };
    under_way(answer(&body)?, running, &store, "doctor")
}

/// Shows what the last examination by this server found, or finds.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/doctor",
    tag = "maintenance",
    params(("store" = String, Path, description = "The name of a store")),
    responses((status = 200, description = "The report", body = ReportBody), ProblemAnswers),
)]
async fn report(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
) -> Answered {
    let served = app.store(&store)?;
    migrations::admit(&who, served)?;
    let (running, report) = outcome(served.examination.standing())?;
    if !running && report.is_none() {
        return Err(Problem::not_found("this server has not examined the store since it started")
            .hint("POST to this path examines it.")
            .into());
    }
    let report = report.unwrap_or_default();
    answer(&ReportBody { running, left: report.left(), report })
}

/// How long to wait for the end of long work.
fn waiting(app: &App, asked: Option<u64>) -> Duration {
    let time_max = app.limits().answer_time_max / 2;
    asked.map_or(time_max, |seconds| Duration::from_secs(seconds).min(time_max))
}

fn outcome<P>(standing: Standing<P>) -> Result<(bool, Option<P>)> {
    match standing.failed {
        Some(problem) => Err(problem),
        None => Ok((standing.running, standing.reached)),
    }
}

fn told(problem: Problem) -> Value {
    value!({ "code": problem.code(), "detail": problem.detail() })
}

/// The answer, which says where to ask again while the work goes on.
fn under_way(mut answer: Response<Body>, running: bool, store: &str, path: &str) -> Answered {
    if running {
        *answer.status_mut() = StatusCode::ACCEPTED;
        let place = HeaderValue::try_from(format!("/v1/stores/{store}/{path}")).map_err(|_| {
            Problem::new(Code::Internal, "this store's name cannot stand in a path")
        })?;
        answer.headers_mut().insert(header::LOCATION, place);
    }
    Ok(answer)
}
