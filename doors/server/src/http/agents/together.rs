//! Several entries at once: `/v1/agents/namespaces/{namespace}/get` and `…/set`.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::Version;
use keyward::agents::Set;
use keyward::records::Precondition;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::answer::{json, mark_replayed};
use super::super::request::{At, Content, Parameters, Roomy};
use super::super::text::Object;
use super::entries::drafted;
use super::life::{LifeText, life_schema};
use super::{Acting, ActingHeaders, OfUser};
use crate::api::agents::{entries, reach};
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_many)).routes(routes!(set_many))
}

/// Which entries to read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentKeys {
    /// Up to 1000.
    #[schema(max_items = 1000)]
    keys: Vec<String>,
}

/// Entries that were read.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentValues {
    /// In the order of the keys.
    items: Vec<AgentValue>,
}

/// An entry that was read.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentValue {
    key: String,
    /// Whether there is such an entry.
    found: bool,
    /// Its value, if there is one.
    #[schema(required = false)]
    value: serde_json::Value,
}

/// Reads the values of some entries. They count as accessed by the agent that the request names.
#[utoipa::path(
    post,
    path = "/v1/agents/namespaces/{namespace}/get",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
    ),
    request_body = AgentKeys,
    responses((status = 200, description = "What there is", body = AgentValues), ProblemAnswers),
)]
async fn get_many(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<OfUser>,
    content: Content,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let AgentKeys { keys } = content.read()?;
    let values = entries::get_many(&who, &reached, &keys).await?;
    let items = keys.iter().zip(&values).map(|(key, value)| {
        let found = if value.is_some() { "true" } else { "false" };
        Object::new().text("key", key).raw("found", found).json("value", value.as_ref()).finish()
    });
    Ok(json(StatusCode::OK, Object::new().list("items", items).finish()))
}

/// Entries to be set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentSetManyBody<'b> {
    /// Up to 1000, each with another key.
    #[serde(borrow)]
    #[schema(min_items = 1, max_items = 1000)]
    entries: Vec<AgentSetOneBody<'b>>,
}

/// One of several entries to be set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentSetOneBody<'b> {
    #[schema(min_length = 1)]
    key: String,
    /// Any JSON.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    /// What to say about the value: members are added to those there are, or take their place.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    metadata: Option<&'b RawValue>,
    #[serde(default)]
    #[schema(schema_with = life_schema, required = false)]
    ttl: Option<LifeText>,
    /// Whether its life begins anew each time it is read past half of it.
    #[serde(default)]
    sliding: bool,
    /// The version it must have; `*`, if it must only be there.
    if_match: Option<String>,
    /// Whether it must not be there.
    #[serde(default)]
    create: bool,
}

impl AgentSetOneBody<'_> {
    fn set(self) -> Result<(String, Set)> {
        let expect = match (self.if_match.as_deref(), self.create) {
            (None, false) => Precondition::Any,
            (None, true) => Precondition::Absent,
            (Some("*"), false) => Precondition::Present,
            (Some(version), false) => Precondition::Version(Version::parse(version)),
            (Some(_), true) => {
                return Err(Problem::invalid("an entry has if_match or create, not both"));
            }
        };
        let set = drafted(self.value, self.metadata, self.ttl, self.sliding)?;
        Ok((self.key, set.expecting(expect)))
    }
}

/// Entries that were set.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentSetMany {
    /// In the order given.
    items: Vec<AgentSetOne>,
}

/// An entry that was set.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentSetOne {
    key: String,
    /// The new version.
    version: String,
}

/// Sets some entries: all in one commit, or none if one of them expects what is not so.
///
/// On engines without commits of several keys they are set one after the other; a problem then says in
/// `done` how many were.
#[utoipa::path(
    post,
    path = "/v1/agents/namespaces/{namespace}/set",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = AgentSetManyBody<'_>,
    responses((status = 200, description = "They are set", body = AgentSetMany), ProblemAnswers),
)]
async fn set_many(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<OfUser>,
    Roomy(content): Roomy,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let body: AgentSetManyBody<'_> = content.read()?;
    let sets: Vec<_> = body.entries.into_iter().map(AgentSetOneBody::set).collect::<Result<_>>()?;
    let mark = content.mark(&who)?;
    let done = entries::set_many(&who, &reached, &sets, mark.as_ref()).await?;
    let items = sets.iter().zip(&done.versions).map(|((key, _), version)| {
        Object::new().text("key", key).text("version", &version.to_string()).finish()
    });
    let mut response = json(StatusCode::OK, Object::new().list("items", items).finish());
    mark_replayed(&mut response, done.replayed);
    Ok(response)
}
