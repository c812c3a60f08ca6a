//! What changes, as it happens: `/v1/stores/{store}/watch`, as server-sent events.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use futures_util::{Stream, StreamExt};
use keyward::{ChangeKind, Code, Event, Revision};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::event_stream::{answer, event, problem_event};
use super::request::{At, Parameters, prefix};
use super::text::Object;
use crate::api::watching;
use crate::app::App;
use crate::auth::Identity;
use crate::feed::Told;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::metrics::Counted;
use crate::problem::{Problem, Result};
use crate::shares::{Full, Holder, Place};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(watch))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WatchParameters {
    /// Below which prefix: segments with colons between and after them; everything, if left out.
    #[serde(default)]
    prefix: String,
    /// After which revision; from now on, if left out.
    since: Option<u64>,
}

/// One event of the stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as lines")]
pub(super) struct WatchEvent {
    /// What kind of event it is.
    #[schema(value_type = WatchEventKind)]
    event: String,
    /// The revision that it brings the watch to; `too-old` and `problem` have none.
    id: Option<String>,
    /// JSON: `revision` of `reached`; `revision` and `changes` (each with `key` and `kind`: `put`,
    /// `deleted` or `expired`) of `changed`; `earliest` of `too-old`; `code` and `detail` of
    /// `problem`.
    data: String,
}

/// The kinds of events.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) enum WatchEventKind {
    Reached,
    Changed,
    TooOld,
    Problem,
}

/// Tells which keys change, as server-sent events.
///
/// - `reached`: everything up to this revision has been told. The first event is one of these: list
///   then, and nothing is missed.
/// - `changed`: the keys that one commit changed. Read them for their values.
/// - `too-old`: the history that was asked for is no longer kept. List again, and watch from now.
///
/// The id of an event is its revision: sent back as `Last-Event-ID`, the watch goes on there.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}/watch",
    tag = "entries",
    params(
        ("store" = String, Path, description = "The name of a store"),
        WatchParameters,
        ("Last-Event-ID" = Option<u64>, Header, description = "The id of the last event that was received"),
    ),
    responses(
        (status = 200, description = "Events, for as long as the client listens", content_type = "text/event-stream", body = WatchEvent),
        ProblemAnswers,
    ),
)]
async fn watch(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    Parameters(asked): Parameters<WatchParameters>,
    headers: HeaderMap,
) -> Answered {
    let since = resumed(&headers)?.or(asked.since).map(Revision);
    let events = watching::watch(&who, app.store(&store)?, &prefix(&asked.prefix)?, since)?;
    let open = Open::new(&app, &who)?;
    Ok(told(app, open, events, headers))
}

/// The revision that a client has come to, if it comes back.
pub(super) fn resumed(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let id = id.to_str().ok().and_then(|id| id.parse().ok());
    id.map(Some).ok_or_else(|| Problem::invalid("Last-Event-ID is no revision"))
}

/// Sends events for as long as the client reads, the server runs and the credential is valid.
pub(super) fn told(
    app: App,
    open: Open,
    events: impl Stream<Item = Result<Told>> + Send + 'static,
    headers: HeaderMap,
) -> Response<Body> {
    let texts = events.map(|event| match event {
        Ok(told) => told.text(sent),
        Err(problem) => problem_event(&problem),
    });
    answer(&app, open, texts, over(app.clone(), headers))
}

/// A watch that is open, until this is dropped.
pub(crate) struct Open {
    place: Place,
    _counted: Counted,
}

impl Open {
    /// Who has it open.
    pub fn holder(&self) -> &Holder {
        self.place.holder()
    }

    /// Refused where as many are open as the server holds, or as one credential may have open.
    pub fn new(app: &App, who: &Identity) -> Result<Self> {
        let place = app.watches().take(&Holder::of(who)).map_err(|full| {
            let (detail, hint) = match full {
                Full::All => ("as many watches are open as this server holds", "Try again later."),
                Full::Part => (
                    "this credential has as many watches open as one may have",
                    "Close some that are no longer needed.",
                ),
            };
            Problem::new(Code::Overloaded, detail).hint(hint).retryable()
        })?;
        Ok(Self { place, _counted: Counted::new(&app.metrics().watches) })
    }
}

/// Waits until a watch must end: the server stops, or the credential is no longer valid.
pub(crate) async fn over(app: App, headers: HeaderMap) {
    let recheck = app.auth().recheck(&headers);
    tokio::select! {
        () = recheck.invalid(app.auth(), &headers, app.limits().recheck_interval) => {}
        () = app.lifecycle().stopping() => {}
    }
}

fn sent(told: &Event) -> Bytes {
    match told {
        Event::Reached(revision) => {
            let data = Object::new().raw("revision", &revision.to_string());
            event("reached", Some(revision.0), &data.finish())
        }
        Event::Changed { revision, changes } => {
            let changes = changes.iter().map(|change| {
                let kind = match change.kind {
                    ChangeKind::Put => "put",
                    ChangeKind::Deleted => "deleted",
                    ChangeKind::Expired => "expired",
                };
                Object::new().text("key", &change.key.to_string()).text("kind", kind).finish()
            });
            let data =
                Object::new().raw("revision", &revision.to_string()).list("changes", changes);
            event("changed", Some(revision.0), &data.finish())
        }
        Event::TooOld { earliest } => {
            let data = Object::new().raw("earliest", &earliest.to_string());
            event("too-old", None, &data.finish())
        }
    }
}
