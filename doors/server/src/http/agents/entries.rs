//! Entries: `/v1/agents/namespaces/{namespace}/entries`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use keyward::agents::{Patch, Set};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::answer::{empty, json, mark_replayed};
use super::super::conditional::{is_known, precondition};
use super::super::entries::{page_limit, stored as stored_json};
use super::super::request::{At, Content, Parameters, Roomy};
use super::super::text::{Object, quoted};
use super::document::{AgentDocuments, AgentNames, AgentStored, described, shown, stored};
use super::life::{LifeText, life, life_schema};
use super::{Acting, ActingHeaders, OfUser};
use crate::api::agents::entries::{self, Part, missing};
use crate::api::agents::{Terms, reach};
use crate::app::App;
use crate::auth::Identity;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Result;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get, put, patch, delete))
        .routes(routes!(value))
        .routes(routes!(keys))
        .routes(routes!(all))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AgentShape {
    /// Whose entries, for a credential that is bound to no user.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
    /// Whether the answer is the value alone.
    #[serde(default)]
    value: bool,
}

/// Reads an entry. It counts as accessed by the agent that the request names.
///
/// The entity tag is the entry's version: it stands for the value and the metadata, and stays the same
/// while accesses are counted.
#[utoipa::path(
    get,
    path = "/v1/agents/namespaces/{namespace}/entries/{key}",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ("key" = String, Path, description = "The key, percent-encoded as one segment"),
        AgentShape,
        ActingHeaders,
        ("If-None-Match" = Option<String>, Header, description = "Answered only if the version is another one"),
    ),
    responses(
        (status = 200, description = "The entry as `AgentDocument`, or its value", body = serde_json::Value, headers(
            ("ETag" = String, description = "The version"),
        )),
        (status = 304, description = "The client has this version"),
        ProblemAnswers,
    ),
)]
async fn get(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At((namespace, key)): At<(String, String)>,
    Parameters(asked): Parameters<AgentShape>,
    headers: HeaderMap,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let found = entries::get(&who, &reached, &key).await?;
    let entry = found.ok_or_else(|| missing(&key))?;
    if is_known(&headers, &entry.version)? {
        let mut response = empty(StatusCode::NOT_MODIFIED);
        described(&mut response, &entry)?;
        return Ok(response);
    }
    shown(&entry, asked.value)
}

/// Reads the value of an entry, and nothing else about it: the quickest read. It counts as accessed by
/// the agent that the request names.
#[utoipa::path(
    get,
    path = "/v1/agents/namespaces/{namespace}/entries/{key}/value",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ("key" = String, Path, description = "The key, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
    ),
    responses((status = 200, description = "The value", body = serde_json::Value), ProblemAnswers),
)]
async fn value(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At((namespace, key)): At<(String, String)>,
    Parameters(asked): Parameters<OfUser>,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let value = entries::value(&who, &reached, &key).await?;
    let value = value.ok_or_else(|| missing(&key))?;
    Ok(json(StatusCode::OK, value.to_bytes()))
}

/// An entry to be set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentSetBody<'b> {
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
}

/// What is to be set, as a client gives it.
pub(super) fn drafted(
    value: &RawValue,
    metadata: Option<&RawValue>,
    ttl: Option<LifeText>,
    sliding: bool,
) -> Result<Set> {
    let mut set = Set::new(stored_json(value)?);
    set.metadata = metadata.map(stored_json).transpose()?;
    set.life = life(ttl, sliding)?;
    Ok(set)
}

/// What a change depends on.
pub(super) fn terms(who: &Identity, content: &Content) -> Result<Terms> {
    Ok(Terms { expected: precondition(content.headers())?, mark: content.mark(who)? })
}

/// Sets an entry: makes it, or gives it a new value. Metadata are merged into what it has, who made it
/// and when stays.
#[utoipa::path(
    put,
    path = "/v1/agents/namespaces/{namespace}/entries/{key}",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ("key" = String, Path, description = "The key, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
        ("If-Match" = Option<String>, Header, description = "Only if the entry has this version, or, with *, is there"),
        ("If-None-Match" = Option<String>, Header, description = "With *: only if there is no entry"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = AgentSetBody<'_>,
    responses(
        (status = 200, description = "It is stored", body = AgentStored),
        (status = 201, description = "It is stored, and was not there", body = AgentStored),
        ProblemAnswers,
    ),
)]
async fn put(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At((namespace, key)): At<(String, String)>,
    Parameters(asked): Parameters<OfUser>,
    Roomy(content): Roomy,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let AgentSetBody { value, metadata, ttl, sliding } = content.read()?;
    let set = drafted(value, metadata, ttl, sliding)?;
    let done = entries::set(&who, &reached, &key, &set, &terms(&who, &content)?).await?;
    stored(&reached, &key, &done)
}

/// Parts to merge into an entry.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentPatchBody<'b> {
    /// Merged into the value (RFC 7396): null removes a member.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schema(value_type = serde_json::Value, required = false)]
    value: Option<&'b RawValue>,
    /// Merged into the metadata (RFC 7396): null removes a member.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schema(value_type = serde_json::Map<String, serde_json::Value>, required = false)]
    metadata: Option<&'b RawValue>,
}

/// What is given, null as well.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Merges parts into an entry, which must be there. Its end stays.
#[utoipa::path(
    patch,
    path = "/v1/agents/namespaces/{namespace}/entries/{key}",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ("key" = String, Path, description = "The key, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
        ("If-Match" = Option<String>, Header, description = "Only if the entry has this version, or, with *, is there"),
        ("If-None-Match" = Option<String>, Header, description = "With *: only if there is no entry"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body(content = AgentPatchBody<'_>, content_type = "application/merge-patch+json"),
    responses(
        (status = 200, description = "It is stored", body = AgentStored),
        ProblemAnswers,
    ),
)]
async fn patch(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At((namespace, key)): At<(String, String)>,
    Parameters(asked): Parameters<OfUser>,
    Roomy(content): Roomy,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let AgentPatchBody { value, metadata } = content.read_patch()?;
    let part = |raw: Option<&RawValue>| raw.map(stored_json).transpose();
    let patch = Patch { value: part(value)?, metadata: part(metadata)?, ..Patch::new() };
    let done = entries::patch(&who, &reached, &key, &patch, &terms(&who, &content)?).await?;
    stored(&reached, &key, &done)
}

/// Whether something was removed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentDeleted {
    /// Whether it was there.
    deleted: bool,
}

/// Removes an entry; removing what is not there changes nothing.
#[utoipa::path(
    delete,
    path = "/v1/agents/namespaces/{namespace}/entries/{key}",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        ("key" = String, Path, description = "The key, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
        ("If-Match" = Option<String>, Header, description = "Only if the entry has this version, or, with *, is there"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    responses(
        (status = 200, description = "It is not there any more", body = AgentDeleted),
        ProblemAnswers,
    ),
)]
async fn delete(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At((namespace, key)): At<(String, String)>,
    Parameters(asked): Parameters<OfUser>,
    content: Content,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let done = entries::delete(&who, &reached, &key, &terms(&who, &content)?).await?;
    let body = Object::new().raw("deleted", if done.deleted { "true" } else { "false" });
    let mut response = json(StatusCode::OK, body.finish());
    mark_replayed(&mut response, done.replayed);
    Ok(response)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AgentListParameters {
    /// Whose entries, for a credential that is bound to no user.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
    /// What keys start with.
    #[serde(default)]
    prefix: String,
    /// At most so many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page of the same listing ended.
    cursor: Option<String>,
}

impl AgentListParameters {
    fn part(self) -> Result<(Option<String>, Part)> {
        let Self { user, prefix, limit, cursor } = self;
        Ok((user, Part { prefix, cursor, limit: page_limit(limit)? }))
    }
}

/// Lists the keys of a namespace in order, a page at a time. A page may be short, even empty, and still
/// have a next one.
#[utoipa::path(
    get,
    path = "/v1/agents/namespaces/{namespace}/keys",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        AgentListParameters,
        ActingHeaders,
    ),
    responses((status = 200, description = "A page", body = AgentNames), ProblemAnswers),
)]
async fn keys(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<AgentListParameters>,
) -> Answered {
    let (user, part) = asked.part()?;
    let reached = reach(&who, &app, &acting.for_user(user), &namespace)?;
    let page = entries::keys(&who, &reached, part).await?;
    let body = Object::new()
        .list("items", page.keys.iter().map(|key| quoted(key)))
        .optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, body.finish()))
}

/// Reads all entries of a namespace in the order of their keys, a page at a time. They do not count as
/// accessed.
#[utoipa::path(
    get,
    path = "/v1/agents/namespaces/{namespace}/entries",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        AgentListParameters,
        ActingHeaders,
    ),
    responses((status = 200, description = "A page", body = AgentDocuments), ProblemAnswers),
)]
async fn all(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<AgentListParameters>,
) -> Answered {
    let (user, part) = asked.part()?;
    let reached = reach(&who, &app, &acting.for_user(user), &namespace)?;
    let page = entries::all(&who, &reached, part).await?;
    let body = Object::new()
        .list("items", page.entries.iter().map(|entry| entry.to_document_with_rev().to_string()))
        .optional("next", page.next.as_deref());
    Ok(json(StatusCode::OK, body.finish()))
}
