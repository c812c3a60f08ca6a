//! Earlier versions of records: `/v1/spaces/{space}/history` and `/v1/spaces/{space}/restore`.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::moment_text;
use keyward::records::Past;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{changed, json};
use super::conditional::precondition;
use super::entries::{Stored, page_limit};
use super::request::{At, Content, Parameters, key};
use super::stores::tier;
use super::text::Object;
use crate::api::queries;
use crate::api::records::{self, Change};
use crate::api::spaces::reach;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(history)).routes(routes!(restore))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct HistoryParameters {
    /// At most so many versions.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only versions before the one with this number: the `next` of the page before.
    before: Option<u64>,
}

/// A page of the versions of a record.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct HistoryPage {
    /// The newest first.
    items: Vec<PastBody>,
    /// What to give as `before` for the next page; null at the end.
    next: Option<u64>,
    /// What the store's engine makes of it.
    guarantee: String,
}

/// A version of a record.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct PastBody {
    /// Later ones are higher.
    number: u64,
    /// `put`, `merge`, `update`, `restore` or `delete`.
    act: String,
    /// When.
    at: String,
    /// The user who did it.
    user: Option<String>,
    /// The agent that did it.
    agent: Option<String>,
    /// The value, unless the record was deleted.
    value: Option<serde_json::Value>,
    /// What was said about the value.
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Shows earlier versions of a record, the newest first; also of one that was deleted.
#[utoipa::path(
    get,
    path = "/v1/spaces/{space}/history/{key}",
    tag = "records",
    params(
        ("space" = String, Path, description = "The name of a space"),
        ("key" = String, Path, description = "The whole key: segments with colons between them"),
        HistoryParameters,
    ),
    responses((status = 200, description = "A page", body = HistoryPage), ProblemAnswers),
)]
async fn history(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((space, at)): At<(String, String)>,
    Parameters(asked): Parameters<HistoryParameters>,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let limit = page_limit(asked.limit)?;
    let page = queries::history(&who, &app, &reached, key(&at)?, asked.before, limit).await?;
    let next = page.next.map_or_else(|| "null".to_owned(), |next| next.to_string());
    let page = Object::new()
        .list("items", page.versions.iter().map(past))
        .raw("next", &next)
        .text("guarantee", tier(reached.space.guarantee()));
    Ok(json(StatusCode::OK, page.finish()))
}

/// A version of a record, as JSON.
pub(super) fn past(past: &Past) -> String {
    Object::new()
        .raw("number", &past.seq.to_string())
        .text("act", past.act.as_str())
        .text("at", &moment_text(past.at))
        .optional("user", past.user.as_deref())
        .optional("agent", past.agent.as_deref())
        .json("value", past.value.as_ref())
        .json("metadata", past.metadata.as_ref())
        .finish()
}

/// A version to go back to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RestoreBody {
    /// Its number, as the history shows it.
    to: u64,
}

/// Gives a record what it had in an earlier version, as a new version.
#[utoipa::path(
    post,
    path = "/v1/spaces/{space}/restore/{key}",
    tag = "records",
    params(
        ("space" = String, Path, description = "The name of a space"),
        ("key" = String, Path, description = "The whole key: segments with colons between them"),
        ("If-Match" = Option<String>, Header, description = "Only if the record has this version, or, with *, is there"),
        ("If-None-Match" = Option<String>, Header, description = "With *: only if there is no record"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = RestoreBody,
    responses(
        (status = 200, description = "It is stored", body = Stored),
        (status = 201, description = "It is stored, and was not there", body = Stored),
        ProblemAnswers,
    ),
)]
async fn restore(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((space, at)): At<(String, String)>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let key = key(&at)?;
    let RestoreBody { to } = content.read()?;
    let expected = precondition(content.headers())?;
    let mark = content.mark(&who)?;
    let change = Change::Restore(to);
    let done = records::change(&who, &reached, &key, &change, &expected, mark.as_ref()).await?;
    changed(&key, done)
}
