//! Issues for other programs and for paper.

use axum::extract::State;
use keyward::agreements::{export_csv, export_markdown};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::agreements::issues;
use crate::app::App;
use crate::http::answer::harmless;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Parameters};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(export))
}

/// The forms of an export.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    #[default]
    Csv,
    Markdown,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportParameters {
    /// In which form; as CSV, if it is left out.
    #[serde(default)]
    #[param(inline)]
    format: ExportFormat,
}

/// Gives out all issues of a page, archived ones too, as CSV or as Markdown.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/issues/export",
    tag = "agreements",
    operation_id = "export_issues",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ExportParameters,
    ),
    responses(
        (status = 200, description = "All of them", content((String = "text/csv"), (String = "text/markdown"))),
        ProblemAnswers,
    ),
)]
async fn export(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
    Parameters(asked): Parameters<ExportParameters>,
) -> Answered {
    let all = issues::all(&who, &app, &name, &page).await?;
    Ok(match asked.format {
        ExportFormat::Csv => harmless("text/csv; charset=utf-8", export_csv(&all)?),
        ExportFormat::Markdown => harmless("text/markdown; charset=utf-8", export_markdown(&all)),
    })
}
