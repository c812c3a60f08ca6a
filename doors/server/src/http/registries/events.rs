//! Runs of a registry, as they happen.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use futures_util::StreamExt;
use keyward::Revision;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::told;
use crate::api::registries::runs::{self, Told};
use crate::app::App;
use crate::http::event_stream::{answer, event, problem_event};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Parameters};
use crate::http::text::Object;
use crate::http::watch::{Open, over, resumed};
use crate::problem::Result;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventParameters {
    /// After which revision of the store; from now on, if left out.
    since: Option<u64>,
}

/// One event of the stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as lines")]
struct RunEvent {
    /// What kind of event it is.
    #[schema(value_type = RunEventKind)]
    event: String,
    /// The revision that it brings the watch to, of `reached` and `run`.
    id: Option<String>,
    /// JSON: `revision` of `reached`; the run of `run`; `step` of `progress` (`fetching`, `comparing`,
    /// `reading`, `applying`) with how far it is; `earliest` of `too-old`; `code` and `detail` of
    /// `problem`.
    data: String,
}

/// The kinds of events.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
#[expect(dead_code, reason = "it describes what is written as text")]
enum RunEventKind {
    Reached,
    Run,
    Progress,
    TooOld,
    Problem,
}

/// Tells of runs as they begin and end, wherever they run, and how far those of this server are, as
/// server-sent events.
///
/// - `reached`: everything up to this revision has been told.
/// - `run`: a run began, or ended: it is told as it is now.
/// - `progress`: how far the run is that this server does. It has no id, and some may be left out.
/// - `too-old`: the history that was asked for is no longer kept. List runs, and watch from now.
///
/// The id of an event is its revision: sent back as `Last-Event-ID`, the watch goes on there.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}/runs/events",
    tag = "registries",
    operation_id = "run_events",
    params(
        ("registry" = String, Path, description = "The name of a registry"),
        EventParameters,
        ("Last-Event-ID" = Option<u64>, Header, description = "The id of the last event that was received"),
    ),
    responses(
        (status = 200, description = "Events, for as long as the client listens", content_type = "text/event-stream", body = RunEvent),
        ProblemAnswers,
    ),
)]
async fn events(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    Parameters(asked): Parameters<EventParameters>,
    headers: HeaderMap,
) -> Answered {
    let since = resumed(&headers)?.or(asked.since).map(Revision);
    let events = runs::watch(&who, &app, &name, since)?;
    let open = Open::new(&app, &who)?;
    Ok(answer(&app, open, events.map(sent), over(app.clone(), headers)))
}

fn sent(run: Result<Told>) -> Bytes {
    let text = run.and_then(|run| {
        Ok(match run {
            Told::Reached(revision) => {
                let data = Object::new().raw("revision", &revision.to_string());
                event("reached", Some(revision.0), &data.finish())
            }
            Told::Run { revision, run } => event("run", Some(revision.0), &told(&run)?),
            Told::Progress(progress) => event("progress", None, &told(&progress)?),
            Told::TooOld { earliest } => {
                let data = Object::new().raw("earliest", &earliest.to_string());
                event("too-old", None, &data.finish())
            }
        })
    });
    text.unwrap_or_else(|problem| problem_event(&problem))
}
