//! Agreements: `/v1/agreements`.
//!
//! What comes from a workspace has the names that it has in the store.

mod analysis;
mod attachments;
mod documents;
mod export;
mod filter;
mod issues;
mod pages;
mod policies;
mod tasks;

use axum::extract::State;
use axum::http::StatusCode;
use keyward::agreements::source::SourceSettings;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::queues::{WaitingBody, waiting};
use super::request::At;
use super::text::Object;
use crate::agreements::Kept;
use crate::api::agreements;
use crate::app::App;
use crate::auth::Need;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;

pub(crate) use filter::FilterParameters;
pub(crate) use issues::{ChangeBody, issue_text, listed};
pub(crate) use pages::pages_text;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .merge(pages::routes())
        .merge(attachments::routes())
        .merge(policies::routes())
        .merge(issues::routes())
        .merge(export::routes())
        .merge(analysis::routes())
        .merge(tasks::routes())
}

/// A workspace.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct WorkspaceBody {
    name: String,
    /// The store that it is in.
    store: String,
    /// Where its pages come from: `folder`, `uploads` or `confluence`.
    source: String,
    /// Whose model translates and analyses; null if none is set.
    provider: Option<String>,
    /// The model; null if none is set.
    model: Option<String>,
}

fn workspace(kept: &Kept) -> Object {
    Object::new()
        .text("name", kept.name())
        .text("store", kept.store())
        .text("source", source(&kept.settings.pages))
        .optional("provider", kept.models().map(|models| models.provider()))
        .optional("model", kept.models().map(|models| models.model()))
}

/// Where pages come from, in a word.
fn source(settings: &SourceSettings) -> &'static str {
    match settings {
        SourceSettings::Folder(_) => "folder",
        SourceSettings::Uploads(_) => "uploads",
        SourceSettings::Confluence(_) => "confluence",
    }
}

/// Workspaces.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct WorkspacesBody {
    /// By name.
    items: Vec<WorkspaceBody>,
}

/// Lists the workspaces that the caller reaches.
#[utoipa::path(
    get,
    path = "/v1/agreements",
    tag = "agreements",
    responses((status = 200, description = "Workspaces, by name", body = WorkspacesBody), ProblemAnswers),
)]
async fn list(State(app): State<App>, Authenticated(who): Authenticated) -> Answered {
    let items = agreements::list(&who, &app, Need::Read).map(|kept| workspace(kept).finish());
    Ok(json(StatusCode::OK, Object::new().list("items", items).finish()))
}

/// A workspace, and how it stands.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct WorkspaceStandingBody {
    #[schema(inline)]
    #[serde(flatten)]
    workspace: WorkspaceBody,
    /// Its tasks: those that wait, are worked on (`claimed`), or were given up (`dead`).
    tasks: WaitingBody,
}

/// Shows a workspace: where its pages come from, which model is asked, what of its tasks waits.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}",
    tag = "agreements",
    params(("workspace" = String, Path, description = "The name of a workspace")),
    responses((status = 200, description = "How it stands", body = WorkspaceStandingBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
) -> Answered {
    let (kept, stats) = agreements::status(&who, &app, &name).await?;
    let text = workspace(kept).raw("tasks", &waiting(&stats).finish());
    Ok(json(StatusCode::OK, text.finish()))
}
