//! The policies of a page.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::documents::shown;
use super::tasks::accepted;
use crate::api::agreements::policies::{self, Asked, Making, Wanted};
use crate::api::agreements::reach;
use crate::app::App;
use crate::auth::Need;
use crate::http::answer::json;
use crate::http::jobs::JobBody;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Content, Parameters};
use crate::http::text::{Object, told};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show, make))
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

/// Lists the policies of a page. Nothing is changed: what was made of an attachment that has changed since
/// counts as not extracted.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/policies",
    tag = "agreements",
    operation_id = "policies",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
    ),
    responses(
        (status = 200, description = "By their ids", body = CatalogBody),
        ProblemAnswers,
    ),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
) -> Answered {
    let catalog = policies::catalog(&who, &app, &name, &page).await?;
    let text = Object::new().raw("policies", &told(&catalog)?);
    Ok(json(StatusCode::OK, text.finish()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LanguageParameters {
    /// In which language: a code of ISO 639-1, such as `fr`. The one it was written in, if it is left out.
    language: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MakeParameters {
    /// In which language: a code of ISO 639-1, such as `fr`. The one it was written in, if it is left out.
    language: Option<String>,
    /// For how many milliseconds to wait for what has to be made: up to 25 seconds, and five sixths of the
    /// time that an answer may take; as long as that, if it is left out.
    wait_ms: Option<u64>,
    /// Whether it is made again, also if it is there and up to date. Other documents of the policy are kept:
    /// only an original that comes out with another text takes its translations along.
    redo: Option<bool>,
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

/// Returns a policy, in a language if one is named: as JSON, as Markdown, or as HTML of which nothing runs,
/// as `Accept` says.
///
/// Nothing is made: what has not been extracted or translated yet, or is out of date, is 404 `not-made`.
/// POST to the same path makes it.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/policies/{source}",
    tag = "agreements",
    operation_id = "policy",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("source" = String, Path, description = "The id of a policy"),
        LanguageParameters,
        ("If-None-Match" = Option<String>, Header, description = "Answered only if the document is another one"),
    ),
    responses(
        (status = 200, description = "The document", headers(
            ("ETag" = String, description = "What tells this document from others"),
        ), content(
            (DocumentBody = "application/json"),
            (String = "text/markdown"),
            (String = "text/html"),
        )),
        (status = 304, description = "The client has this document"),
        ProblemAnswers,
    ),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page, source)): At<(String, String, String)>,
    Parameters(asked): Parameters<LanguageParameters>,
    headers: HeaderMap,
) -> Answered {
    let wanted = Wanted { page: &page, source: &source, language: asked.language.as_deref() };
    shown(&headers, &policies::made(&who, &app, &name, wanted).await?).await
}

/// Extracts a policy, and translates it if a language is named; then returns it as GET does.
///
/// It is made once, however many ask for it, and not again while it is up to date, unless `redo` says so: then
/// what is there is given out until there is a new one, and stays if that cannot be made. If that takes longer than
/// is waited, the answer is 202 with the job that does it. A translation costs what the provider of the model
/// charges.
#[utoipa::path(
    post,
    path = "/v1/agreements/{workspace}/pages/{page}/policies/{source}",
    tag = "agreements",
    operation_id = "make_policy",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("source" = String, Path, description = "The id of a policy"),
        MakeParameters,
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
        ProblemAnswers,
    ),
)]
async fn make(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page, source)): At<(String, String, String)>,
    Parameters(asked): Parameters<MakeParameters>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    content.without_mark(&who)?;
    let making = Making { wait: wait(&app, asked.wait_ms), redo: asked.redo.unwrap_or_default() };
    let wanted = Wanted { page: &page, source: &source, language: asked.language.as_deref() };
    match policies::make(&who, &app, &name, wanted, making).await? {
        Asked::Made(document) => {
            // A precondition would turn the answer to a POST into 304, which is for reads.
            let mut headers = content.headers().clone();
            headers.remove(header::IF_NONE_MATCH);
            shown(&headers, &document).await
        }
        Asked::Making(job) => accepted(&name, &job),
    }
}
