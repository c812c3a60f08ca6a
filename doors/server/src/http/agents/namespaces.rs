//! Namespaces: `/v1/agents/namespaces`.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use keyward::agents::Settings;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::answer::json;
use super::super::entries::page_limit;
use super::super::request::{At, Content, Parameters};
use super::super::stores::answer;
use super::super::text::{Object, quoted};
use super::document::AgentNames;
use super::life::SECONDS_MAX;
use super::{Acting, ActingHeaders, OfUser};
use crate::api::agents::namespaces;
use crate::api::agents::reach;
use crate::api::clearing::{Cleared, Confirmation};
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(namespaces))
        .routes(routes!(stats, clear))
        .routes(routes!(settings, configure))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NamespacesParameters {
    /// Whose namespaces, for a credential that is bound to no user.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page ended.
    cursor: Option<String>,
}

/// Lists the namespaces that have entries, in order, a page at a time. A page may be short, even empty,
/// and still have a next one.
#[utoipa::path(
    get,
    path = "/v1/agents/namespaces",
    tag = "agents",
    params(NamespacesParameters, ActingHeaders),
    responses((status = 200, description = "A page", body = AgentNames), ProblemAnswers),
)]
async fn namespaces(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    Parameters(asked): Parameters<NamespacesParameters>,
) -> Answered {
    let limit = page_limit(asked.limit)?;
    let behalf = acting.for_user(asked.user);
    let page = namespaces::list(&who, &app, &behalf, asked.cursor, limit).await?;
    let body = Object::new()
        .list("items", page.namespaces.iter().map(|name| quoted(name)))
        .optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, body.finish()))
}

/// How much a namespace holds.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentStats {
    namespace: String,
    /// How many entries there are.
    #[schema(rename = "recordCount")]
    record_count: u64,
    /// How many bytes their values and metadata have, as JSON text.
    #[schema(rename = "sizeBytes")]
    size_bytes: u64,
    /// The agents that made entries or accessed them last, at most 1000.
    agents: Vec<String>,
    /// Whether there are more agents than are named.
    #[schema(rename = "moreAgents", required = false)]
    more_agents: bool,
    /// When an entry was last updated.
    #[schema(rename = "updatedAt")]
    updated_at: Option<String>,
    /// How many documents a list leaves out, where a store has `layout=document`; left out if none.
    skipped: Option<u64>,
    /// The id of the last of them.
    #[schema(rename = "lastSkipped")]
    last_skipped: Option<String>,
}

/// Says how much a namespace holds. All of it is read.
#[utoipa::path(
    get,
    path = "/v1/agents/namespaces/{namespace}",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
    ),
    responses((status = 200, description = "How much", body = AgentStats), ProblemAnswers),
)]
async fn stats(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<OfUser>,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let stats = namespaces::stats(&who, &reached).await?;
    Ok(json(StatusCode::OK, stats.to_json().to_bytes()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ClearParameters {
    /// Whose entries, for a credential that is bound to no user.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
    /// Only entries whose keys start with this.
    #[serde(default)]
    prefix: String,
    /// How many entries are to be removed. Refused if it is another number, or none is said.
    confirm: Option<usize>,
    /// Whether only to say how many entries would be removed.
    #[serde(default)]
    dry_run: bool,
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
struct AgentCleared {
    /// How many entries there were.
    count: usize,
    /// How many are gone.
    removed: usize,
}

/// Removes all entries of a namespace. How many these are must be confirmed: without `confirm`, or with
/// another number, nothing is removed, and the problem `unconfirmed` says in `count` how many it would be.
#[utoipa::path(
    delete,
    path = "/v1/agents/namespaces/{namespace}",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ClearParameters,
        ActingHeaders,
    ),
    responses((status = 200, description = "They are gone", body = AgentCleared), ProblemAnswers),
)]
async fn clear(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<ClearParameters>,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let confirmation = Confirmation::of(asked.dry_run, asked.confirm);
    let cleared = namespaces::clear(&who, &reached, &asked.prefix, confirmation).await?;
    let Cleared { count, removed } = cleared;
    answer(&AgentCleared { count, removed })
}

/// What holds for the entries of a namespace when a request says nothing else.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentSettings {
    /// For how many seconds entries live; for ever, if it is null or left out.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3162240000u64)]
    ttl: Option<u64>,
    /// Whether reading an entry past half of its life makes its life begin anew.
    #[serde(default)]
    sliding: bool,
    /// Whether `ttl_seconds` in an entry's metadata says for how many seconds it lives.
    #[serde(default)]
    honour_ttl_seconds: bool,
}

impl From<Settings> for AgentSettings {
    fn from(Settings { ttl, sliding, honour_ttl_seconds }: Settings) -> Self {
        // Times are whole seconds here, and not shorter than they are.
        let seconds = |ttl: Duration| ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        Self { ttl: ttl.map(seconds), sliding, honour_ttl_seconds }
    }
}

/// Shows what holds for the entries of a namespace.
#[utoipa::path(
    get,
    path = "/v1/agents/namespaces/{namespace}/settings",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
    ),
    responses((status = 200, description = "What holds", body = AgentSettings), ProblemAnswers),
)]
async fn settings(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<OfUser>,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    answer(&AgentSettings::from(namespaces::settings(&who, &reached).await?))
}

/// Changes what holds for the entries of a namespace. Entries that are there keep their ends until they
/// are set again.
#[utoipa::path(
    put,
    path = "/v1/agents/namespaces/{namespace}/settings",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
    ),
    request_body = AgentSettings,
    responses((status = 200, description = "What holds now", body = AgentSettings), ProblemAnswers),
)]
async fn configure(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<OfUser>,
    content: Content,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let body: AgentSettings = content.read()?;
    if body.ttl.is_some_and(|ttl| !(1..=SECONDS_MAX).contains(&ttl)) {
        return Err(Problem::invalid(format!("a ttl is from 1 to {SECONDS_MAX} seconds"))
            .hint("Leave out ttl for entries that live for ever.")
            .into());
    }
    let AgentSettings { ttl, sliding, honour_ttl_seconds } = body;
    let settings = Settings { ttl: ttl.map(Duration::from_secs), sliding, honour_ttl_seconds };
    namespaces::configure(&who, &reached, settings).await?;
    answer(&AgentSettings::from(settings))
}
