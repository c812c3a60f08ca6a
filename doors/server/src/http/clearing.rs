//! Deleting all records below a prefix: `DELETE /v1/spaces/{space}/records`.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::json;
use super::request::{At, Content, Parameters, prefix};
use super::text::told;
use super::variables::leading;
use crate::api::clearing::{self, Cleared, Confirmation};
use crate::api::spaces::reach;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ClearBelowParameters {
    /// Below which prefix: segments with colons between and after them; empty for everything.
    prefix: String,
    /// How many are to be removed. Refused if it is another number, or left out.
    confirm: Option<usize>,
    /// Whether only to say how many would be removed.
    #[serde(default)]
    dry_run: bool,
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClearedBelow {
    /// How many there were.
    count: usize,
    /// How many were deleted.
    deleted: usize,
}

fn answer(Cleared { count, removed }: Cleared) -> Answered {
    Ok(json(StatusCode::OK, told(&ClearedBelow { count, deleted: removed })?))
}

/// Removes all records below a prefix of the space's keys. Their number must be confirmed: without `confirm`, or
/// with another number, nothing is removed, and the problem `unconfirmed` says in `count` how many it would be.
/// Many are removed in several commits; sent again, the request goes on with what an error left behind.
#[utoipa::path(
    delete,
    path = "/v1/spaces/{space}/records",
    tag = "records",
    params(("space" = String, Path, description = "The name of a space"), ClearBelowParameters),
    responses((status = 200, description = "They are gone", body = ClearedBelow), ProblemAnswers),
)]
pub(super) async fn clear_records(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
    Parameters(asked): Parameters<ClearBelowParameters>,
    content: Content,
) -> Answered {
    content.without_mark(&who)?;
    let reached = reach(&who, app.stores(), &space)?;
    let values = leading(&reached.space.declaration().key, &prefix(&asked.prefix)?)?;
    let confirmation = Confirmation::of(asked.dry_run, asked.confirm);
    answer(clearing::clear_records(&who, &app, &reached, values, confirmation).await?)
}
