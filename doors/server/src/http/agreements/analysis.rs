//! Having a model look for issues.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::agreements::Task;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tasks::submitted;
use crate::api::agreements::{analysis, page_id, reach};
use crate::app::App;
use crate::auth::Need;
use crate::http::answer::json;
use crate::http::jobs::JobBody;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Content};
use crate::http::text::told;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(analyze, last))
}

/// How a page is analysed.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AnalyzeBody {
    /// Whether also if nothing has changed since the last time.
    #[serde(default)]
    again: bool,
}

/// Has a model compare a page with its policies, in the background, and keeps the issues that it finds.
///
/// Known issues are told to it, and not reported again.
#[utoipa::path(
    post,
    path = "/v1/agreements/{workspace}/pages/{page}/analysis",
    tag = "agreements",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once: the key gives the job its id"),
    ),
    request_body = AnalyzeBody,
    responses(
        (status = 202, description = "It is in its queue: Location tells where to ask for the job", body = JobBody),
        ProblemAnswers,
    ),
)]
async fn analyze(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    let AnalyzeBody { again } = content.read()?;
    let mark = content.mark(&who)?;
    analysis::check(&who, &app, &name, &page).await?;
    let task = Task::Analyze { page: page_id(&page)?, again };
    submitted(&who, &app, &name, task, mark.as_ref()).await
}

/// What an analysis came to.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AnalysisBody {
    /// When it was done.
    at: String,
    /// Who wanted it.
    by: String,
    /// Issues that are new.
    found: u64,
    /// Known issues that were seen again and brought up to date.
    refreshed: u64,
    /// How many policies were compared.
    policies: u64,
    /// Policies that could not be read: `source` and `reason`; left out, if there are none.
    unread: Option<Vec<serde_json::Value>>,
    /// Who compared them, and what it cost: `prompt` and `receipt`.
    made: Option<serde_json::Value>,
    /// What it was made of: the same again is not analysed again.
    fingerprint: String,
    /// Whether this is what an earlier one came to.
    unchanged: bool,
}

/// Shows what the last analysis of a page came to.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/analysis",
    tag = "agreements",
    operation_id = "last_analysis",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
    ),
    responses((status = 200, description = "The last one", body = AnalysisBody), ProblemAnswers),
)]
async fn last(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
) -> Answered {
    let found = analysis::last(&who, &app, &name, &page).await?;
    Ok(json(StatusCode::OK, told(&found)?))
}
