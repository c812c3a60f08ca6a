//! Runs of a registry.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use keyward::registry::{Run, SyncOptions};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::plans::LeftBody;
use super::{Names, names, told};
use crate::api::registries::reach;
use crate::api::registries::runs::{self, Begun};
use crate::app::App;
use crate::auth::Need;
use crate::http::answer::{json, located};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Content, Parameters};
use crate::http::text::Object;
use crate::problem::Result;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(begin, list)).routes(routes!(show))
}

/// How a registry is run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BeginBody {
    /// Whether the whole tree is compared, also where only what changed would do.
    #[serde(default)]
    full: bool,
    /// Whether more may be deleted than the settings say. Needs `admin`.
    #[serde(default)]
    allow_mass_delete: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BeginParameters {
    /// Whether to wait for its end: 25 seconds at most, and five sixths of the time that an answer may
    /// take.
    #[serde(default)]
    wait: bool,
}

/// A run that was begun.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct BegunBody {
    /// `running`, `ended`, or `unchanged` if the registry was at the newest commit.
    outcome: String,
    /// The run's id; null if there was none, or if it is not known yet.
    id: Option<String>,
    /// The commit that the registry is at, of `unchanged`.
    commit: Option<String>,
    /// The run, of one that has ended.
    run: Option<RegistryRunBody>,
}

/// What a run did, or does.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
#[schema(rename_all = "camelCase")]
pub(super) struct RegistryRunBody {
    /// Later runs have larger ones.
    id: String,
    /// `hand`, `schedule` or `webhook`.
    trigger: String,
    started_at: String,
    ended_at: Option<String>,
    /// `running`, `success`, `partial` or `failed`.
    status: String,
    /// The commit it looked at.
    commit: Option<String>,
    /// The commit that the registry was at before.
    previous_commit: Option<String>,
    scanned: u64,
    added: u64,
    updated: u64,
    deleted: u64,
    /// Whether the whole tree was compared, or only what changed since the last run.
    whole: bool,
    blobs_read: u64,
    duration_ms: u64,
    /// How many files and policies were left alone, and whether the run itself failed.
    error_count: u64,
    /// The first hundred of them.
    errors: Vec<LeftBody>,
}

/// A run, as text.
pub(crate) fn run_text(run: &Run) -> Result<String> {
    told(run)
}

/// What became of a request to run, as text.
pub(crate) fn begun_text(begun: &Begun) -> Result<String> {
    let object =
        |outcome, id: Option<&str>| Object::new().text("outcome", outcome).optional("id", id);
    Ok(match begun {
        Begun::Running(id) => {
            object("running", id.as_deref()).raw("commit", "null").raw("run", "null")
        }
        Begun::Ended(run) => object("ended", Some(&run.id))
            .optional("commit", run.commit.as_deref())
            .raw("run", &run_text(run)?),
        Begun::Unchanged { commit } => {
            object("unchanged", None).text("commit", commit).raw("run", "null")
        }
    }
    .finish())
}

/// Begins a run, which goes on in the background.
///
/// While one is under way, here or elsewhere, another is refused (409 `busy`).
#[utoipa::path(
    post,
    path = "/v1/registries/{registry}/runs",
    tag = "registries",
    operation_id = "run",
    params(("registry" = String, Path, description = "The name of a registry"), BeginParameters),
    request_body = BeginBody,
    responses(
        (status = 200, description = "It has ended, or there was nothing to do", body = BegunBody),
        (status = 202, description = "It goes on: Location tells where to ask", body = BegunBody),
        ProblemAnswers,
    ),
)]
async fn begin(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    Parameters(asked): Parameters<BeginParameters>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    let BeginBody { full, allow_mass_delete } = content.read()?;
    content.without_mark(&who)?;
    let wait = match asked.wait {
        true => app.waits().at_most(app.limits().answer_time_max),
        false => Duration::ZERO,
    };
    let options = SyncOptions { full, allow_mass_delete };
    let begun = runs::begin(&who, &app, &name, options, wait).await?;
    let text = begun_text(&begun)?;
    let Begun::Running(id) = begun else { return Ok(json(StatusCode::OK, text)) };
    let mut response = json(StatusCode::ACCEPTED, text);
    let place = ["v1", "registries", &name, "runs"];
    let (header, place) = match &id {
        Some(id) => located(&[&place[..], &[id]].concat())?,
        None => located(&place)?,
    };
    response.headers_mut().insert(header, place);
    Ok(response)
}

/// A page of runs.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RunsBody {
    /// The newest first.
    items: Vec<RegistryRunBody>,
    /// What to give as `after` for the next page; null at the end.
    next: Option<String>,
}

/// Lists what runs did, the newest first, a page at a time.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}/runs",
    tag = "registries",
    operation_id = "runs",
    params(("registry" = String, Path, description = "The name of a registry"), super::PageOfNames),
    responses((status = 200, description = "A page", body = RunsBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    Parameters(asked): Names,
) -> Answered {
    let (after, limit) = names(asked)?;
    let page = runs::list(&who, &app, &name, after.as_deref(), limit).await?;
    let items = page.items.iter().map(run_text).collect::<Result<Vec<_>>>()?;
    let text = Object::new().list("items", items).optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}

/// Shows what a run did, or how far it is known to be.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}/runs/{id}",
    tag = "registries",
    operation_id = "run_of",
    params(
        ("registry" = String, Path, description = "The name of a registry"),
        ("id" = String, Path, description = "The id of a run"),
    ),
    responses((status = 200, description = "The run", body = RegistryRunBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, id)): At<(String, String)>,
) -> Answered {
    let run = runs::show(&who, &app, &name, &id).await?;
    Ok(json(StatusCode::OK, run_text(&run)?))
}
