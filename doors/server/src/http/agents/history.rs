//! Earlier versions of entries: `/v1/agents/namespaces/{namespace}/entries/{key}/history`.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::agents::PastEntry;
use keyward::moment_text;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::answer::json;
use super::super::entries::page_limit;
use super::super::request::{At, Content, Parameters};
use super::super::stores::answer;
use super::super::text::Object;
use super::document::{AgentStored, stored};
use super::entries::terms;
use super::{Acting, ActingHeaders, OfUser};
use crate::api::agents::{history as past, reach};
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(history)).routes(routes!(restore)).routes(routes!(redact))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AgentHistoryParameters {
    /// Whose entries, for a credential that is bound to no user.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
    /// At most so many versions.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only versions before the one with this number: the `next` of the page before.
    before: Option<u64>,
}

/// A page of the versions of an entry.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentHistory {
    /// The newest first.
    items: Vec<AgentVersion>,
    /// What to give as `before` for the next page; null at the end.
    next: Option<u64>,
}

/// A version of an entry.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentVersion {
    /// Later ones are higher.
    number: u64,
    /// `update`, `restore` or `delete`.
    act: String,
    /// When.
    at: String,
    /// The user for whom it was done.
    user: Option<String>,
    /// The agent that did it.
    agent: Option<String>,
    /// In which run of the agent.
    run: Option<String>,
    /// The value, unless the entry was deleted or the version redacted.
    #[schema(required = false)]
    value: serde_json::Value,
    /// What was said about the value.
    #[schema(required = false)]
    metadata: serde_json::Map<String, serde_json::Value>,
    /// Who took value and metadata away, if anybody did.
    redacted: Option<AgentRedaction>,
}

/// Who took away what a version said.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentRedaction {
    at: String,
    user: Option<String>,
    agent: Option<String>,
    run: Option<String>,
}

/// Shows earlier versions of an entry, the newest first; also of one that was deleted.
#[utoipa::path(
    get,
    path = "/v1/agents/namespaces/{namespace}/entries/{key}/history",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ("key" = String, Path, description = "The key, percent-encoded as one segment"),
        AgentHistoryParameters,
        ActingHeaders,
    ),
    responses((status = 200, description = "A page", body = AgentHistory), ProblemAnswers),
)]
async fn history(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At((namespace, key)): At<(String, String)>,
    Parameters(asked): Parameters<AgentHistoryParameters>,
) -> Answered {
    let limit = page_limit(asked.limit)?;
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let page = past::history(&who, &reached, &key, asked.before, limit).await?;
    let next = page.next.map_or_else(|| "null".to_owned(), |next| next.to_string());
    let body = Object::new().list("items", page.versions.iter().map(version)).raw("next", &next);
    Ok(json(StatusCode::OK, body.finish()))
}

fn version(past: &PastEntry) -> String {
    let redacted = past.redacted.as_ref().map(|by| {
        let object = Object::new().text("at", &moment_text(by.at));
        let object = object.optional("user", by.user.as_deref());
        let object = object.optional("agent", by.agent.as_deref());
        object.optional("run", by.run.as_deref()).finish()
    });
    let object = Object::new()
        .raw("number", &past.seq.to_string())
        .text("act", past.act.as_str())
        .text("at", &moment_text(past.at))
        .optional("user", past.user.as_deref())
        .optional("agent", past.agent.as_deref())
        .optional("run", past.run.as_deref())
        .json("value", past.value.as_ref())
        .json("metadata", past.metadata.as_ref());
    match redacted {
        Some(redacted) => object.raw("redacted", &redacted),
        None => object,
    }
    .finish()
}

/// Gives an entry the value and metadata it had in an earlier version, as a new version.
#[utoipa::path(
    post,
    path = "/v1/agents/namespaces/{namespace}/entries/{key}/history/{number}/restore",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ("key" = String, Path, description = "The key, percent-encoded as one segment"),
        ("number" = u64, Path, description = "The number of the version, as the history shows it"),
        OfUser,
        ActingHeaders,
        ("If-Match" = Option<String>, Header, description = "Only if the entry has this version, or, with *, is there"),
        ("If-None-Match" = Option<String>, Header, description = "With *: only if there is no entry"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses(
        (status = 200, description = "It is stored", body = AgentStored),
        (status = 201, description = "It is stored, and was not there", body = AgentStored),
        ProblemAnswers,
    ),
)]
async fn restore(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At((namespace, key, number)): At<(String, String, u64)>,
    Parameters(asked): Parameters<OfUser>,
    content: Content,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let done = past::restore(&who, &reached, &key, number, &terms(&who, &content)?).await?;
    stored(&reached, &key, &done)
}

/// Whether something was taken away.
#[derive(Debug, Serialize, ToSchema)]
struct AgentRedacted {
    /// False if it was gone before, or the entry was deleted in this version.
    redacted: bool,
}

/// Takes the value and metadata of an earlier version away, for good. That there was one, when, and by
/// whom stays. The version that the entry has now is refused.
#[utoipa::path(
    post,
    path = "/v1/agents/namespaces/{namespace}/entries/{key}/history/{number}/redact",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ("key" = String, Path, description = "The key, percent-encoded as one segment"),
        ("number" = u64, Path, description = "The number of the version, as the history shows it"),
        OfUser,
        ActingHeaders,
    ),
    responses((status = 200, description = "It is gone", body = AgentRedacted), ProblemAnswers),
)]
async fn redact(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At((namespace, key, number)): At<(String, String, u64)>,
    Parameters(asked): Parameters<OfUser>,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let redacted = past::redact(&who, &reached, &key, number).await?;
    answer(&AgentRedacted { redacted })
}
