//! The policies of a page.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::documents::shown;
use super::tasks::accepted;
use crate::api::agreements::policies::{self, Asked, Wanted};
use crate::app::App;
use crate::auth::Identity;
use crate::http::answer::json;
use crate::http::jobs::JobBody;
use crate::http::request::{At, Parameters};
use crate::http::text::{Object, told};
use crate::problem::{ProblemAnswers, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WaitParameters {
    /// For how many milliseconds to wait for what has to be made: up to 25 seconds, and five sixths of the
    /// time that an answer may take; as long as that, if it is left out.
    wait_ms: Option<u64>,
}

/// How long a request waits.
fn wait(app: &App, asked: Option<u64>) -> Duration {
    app.waits().at_most(asked.map_or(app.limits().answer_time_max, Duration::from_millis))
}

/// What is known of a policy.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct ListedBody {
    /// What the document calls itself, once it was extracted; until then the name of its file.
    title: String,
    /// The name of its file.
    name: String,
    /// When this state of it came to be.
    created: String,
    /// The language it was written in, once that is known.
    language: Option<String>,
    /// Whether its text is there.
    extracted: bool,
    /// Which translations are there.
    translations: Vec<String>,
}

/// The policies of a page.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct CatalogBody {
    /// By their ids.
    policies: BTreeMap<String, ListedBody>,
}

/// Lists the policies of a page. What was made of attachments that have changed or are gone is removed.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/policies",
    tag = "agreements",
    operation_id = "policies",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        WaitParameters,
    ),
    responses(
        (status = 200, description = "By their ids", body = CatalogBody),
        (status = 202, description = "Others work on them: Location tells where to ask for the job", body = JobBody),
        ProblemAnswers,
    ),
)]
async fn list(
    State(app): State<App>,
    who: Identity,
    At((name, page)): At<(String, String)>,
    Parameters(asked): Parameters<WaitParameters>,
) -> Result<Response<Body>> {
    let wait = wait(&app, asked.wait_ms);
    match policies::catalog(&who, &app, &name, &page, wait).await? {
        Asked::Made(catalog) => {
            let text = Object::new().raw("policies", &told(&catalog)?);
            Ok(json(StatusCode::OK, text.finish()))
        }
        Asked::Making(job) => accepted(&name, &job),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PolicyOfParameters {
    /// In which language: a code of ISO 639-1, such as `fr`. The one it was written in, if it is left out.
    language: Option<String>,
    /// For how many milliseconds to wait for what has to be made: up to 25 seconds, and five sixths of the
    /// time that an answer may take; as long as that, if it is left out.
    wait_ms: Option<u64>,
}

/// A policy as Markdown.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct DocumentBody {
    /// Whether it is in the language that it was written in.
    original: bool,
    /// Its language, if it could be told.
    language: Option<String>,
    /// The attachment that it comes from.
    source: String,
    /// When it was made.
    created: String,
    title: String,
    /// Its text, in Markdown.
    content: String,
    /// Which state of the attachment it was made of.
    modified: String,
    /// How a model made it: `prompt` and `receipt`; left out, if none did.
    made: Option<serde_json::Value>,
}

/// Gives out a policy, in a language if one is named: as JSON, as Markdown, or as HTML of which nothing runs,
/// as `Accept` says.
///
/// What is not there yet is extracted, and translated if need be: once, however many ask for it. If that
/// takes longer than is waited, the answer is 202 with the job that does it.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/policies/{source}",
    tag = "agreements",
    operation_id = "policy",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("source" = String, Path, description = "The id of a policy"),
        PolicyOfParameters,
        ("If-None-Match" = Option<String>, Header, description = "Answer only if the document is another one"),
    ),
    responses(
        (status = 200, description = "The document", headers(
            ("ETag" = String, description = "What tells this document from others"),
        ), content(
            (DocumentBody = "application/json"),
            (String = "text/markdown"),
            (String = "text/html"),
        )),
        (status = 202, description = "It is being made: Location tells where to ask for the job", body = JobBody),
        (status = 304, description = "The client has this document"),
        ProblemAnswers,
    ),
)]
async fn show(
    State(app): State<App>,
    who: Identity,
    At((name, page, source)): At<(String, String, String)>,
    Parameters(asked): Parameters<PolicyOfParameters>,
    headers: HeaderMap,
) -> Result<Response<Body>> {
    let wait = wait(&app, asked.wait_ms);
    let wanted = Wanted { page: &page, source: &source, language: asked.language.as_deref() };
    match policies::document(&who, &app, &name, wanted, wait).await? {
        Asked::Made(document) => shown(&headers, &document).await,
        Asked::Making(job) => accepted(&name, &job),
    }
}
