//! The pages of a workspace.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::agreements::BodyFormat;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::agreements::pages::{self, Listed, Text};
use crate::api::agreements::reach;
use crate::app::App;
use crate::auth::Need;
use crate::http::answer::{empty, json};
use crate::http::names::{Names, PageOfNames, names};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Content, Parameters};
use crate::http::text::{Object, told};
use crate::problem::Result;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show, put, delete))
}

/// A page in a list of them.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct PageSummaryBody {
    id: String,
    title: String,
}

/// Pages.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct PagesBody {
    /// By id.
    items: Vec<PageSummaryBody>,
    /// What to give as `after` for the next ones; null at the end.
    next: Option<String>,
}

/// Lists pages by id, some at a time.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages",
    tag = "agreements",
    operation_id = "pages",
    params(("workspace" = String, Path, description = "The name of a workspace"), PageOfNames),
    responses((status = 200, description = "Some of them", body = PagesBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    Parameters(asked): Names,
) -> Answered {
    let (after, limit) = names(asked)?;
    let listed = pages::list(&who, &app, &name, after.as_deref(), limit).await?;
    Ok(json(StatusCode::OK, pages_text(&listed)?))
}

/// Pages, as text.
pub(crate) fn pages_text(listed: &Listed) -> Result<String> {
    let items = listed.items.iter().map(told).collect::<Result<Vec<_>>>()?;
    let text = Object::new().list("items", items).optional("next", listed.next.as_deref());
    Ok(text.finish())
}

/// An agreement under work.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
#[schema(rename_all = "camelCase")]
struct AgreementBody {
    id: String,
    title: String,
    /// Its text.
    body: String,
    /// What its text is written in: `markdown` or `html`. It is told as it was given: make it harmless
    /// before it is shown.
    body_format: String,
    updated: String,
    /// The policies.
    attachments: Vec<super::attachments::AttachmentBody>,
}

/// Shows a page, with what is attached to it.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}",
    tag = "agreements",
    operation_id = "page",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
    ),
    responses((status = 200, description = "The page", body = AgreementBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
) -> Answered {
    let page = pages::show(&who, &app, &name, &page).await?;
    Ok(json(StatusCode::OK, told(&page)?))
}

/// What a page says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PutPageBody {
    /// What people call it.
    #[schema(max_length = 1000)]
    title: String,
    /// Its text.
    #[serde(default)]
    body: String,
    /// What its text is written in: `markdown`, if it is left out, or `html`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    body_format: BodyFormat,
}

/// Puts a page, or replaces its title and its text. What is attached to it stays.
///
/// Only where pages are uploaded: those of a folder or a wiki are changed there (409 `read-only`).
#[utoipa::path(
    put,
    path = "/v1/agreements/{workspace}/pages/{page}",
    tag = "agreements",
    operation_id = "put_page",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
    ),
    request_body = PutPageBody,
    responses((status = 200, description = "The page", body = AgreementBody), ProblemAnswers),
)]
async fn put(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    let PutPageBody { title, body, body_format: format } = content.read()?;
    content.without_mark(&who)?;
    let text = Text { title: &title, body: &body, format };
    let page = pages::put(&who, &app, &name, &page, &text).await?;
    Ok(json(StatusCode::OK, told(&page)?))
}

/// Deletes a page, and what is attached to it. What was made of it is removed later, and its issues with it,
/// unless it is put again before.
#[utoipa::path(
    delete,
    path = "/v1/agreements/{workspace}/pages/{page}",
    tag = "agreements",
    operation_id = "delete_page",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
    ),
    responses((status = 204, description = "It is not there any more"), ProblemAnswers),
)]
async fn delete(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
) -> Answered {
    // Deleted now or before: it is not there.
    pages::delete(&who, &app, &name, &page).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
