//! Entries as documents, as the description tells of them.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode};
use keyward::Code;
use keyward::agents::AgentEntry;
use keyward::moment_text;
use utoipa::ToSchema;

use super::super::answer::{json, located, mark_replayed};
use super::super::conditional::etag;
use super::super::text::Object;
use crate::api::agents::Reached;
use crate::api::records::Changed;
use crate::http::problem::Answered;
use crate::problem::{Problem, Result};

/// An entry of the agent data store.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct AgentDocument {
    /// `{userId}:{namespace}:{key in URL-safe base64}`; a colon or percent sign of the user's is
    /// percent-encoded.
    #[schema(rename = "_id", example = "ada:default:Z3JlZXRpbmc=")]
    id: String,
    /// Its version.
    #[schema(rename = "_rev")]
    rev: Option<String>,
    #[schema(rename = "userId")]
    user_id: String,
    namespace: String,
    key: String,
    /// Any JSON, with the digits it was given.
    value: serde_json::Value,
    /// What was said about the value.
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
    /// The agent that made the entry.
    #[schema(rename = "createdByAgent")]
    created_by_agent: Option<String>,
    /// The agent that read or wrote it last.
    #[schema(rename = "lastAccessedByAgent")]
    last_accessed_by_agent: Option<String>,
    /// How often agents read it.
    #[schema(rename = "accessCount")]
    access_count: u64,
    #[schema(rename = "createdAt")]
    created_at: String,
    /// When its value or metadata were last set.
    #[schema(rename = "updatedAt")]
    updated_at: String,
    #[schema(rename = "lastAccessedAt")]
    last_accessed_at: Option<String>,
}

/// A page of entries.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct AgentDocuments {
    /// In order.
    items: Vec<AgentDocument>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// A page of names.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct AgentNames {
    /// In the order of their bytes.
    items: Vec<String>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// An entry that was written.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct AgentStored {
    namespace: String,
    key: String,
    /// The new version.
    version: String,
    /// Whether it was not there before.
    created: bool,
}

/// An entry, or its value alone, with its version and its end in headers.
pub(super) fn shown(entry: &AgentEntry, value_alone: bool) -> Answered {
    let body = match value_alone {
        true => entry.value.clone(),
        false => entry.to_document_with_rev(),
    };
    let mut response = json(StatusCode::OK, body.to_bytes());
    described(&mut response, entry)?;
    Ok(response)
}

/// Says the version and the end of an entry in headers.
pub(super) fn described(response: &mut Response<Body>, entry: &AgentEntry) -> Result<()> {
    let (name, tag) = etag(&entry.version)?;
    response.headers_mut().insert(name, tag);
    if let Some(expires) = entry.expires
        && let Ok(value) = HeaderValue::try_from(moment_text(expires))
    {
        response.headers_mut().insert("keyward-expires", value);
    }
    Ok(())
}

/// What is said about an entry that was written.
pub(super) fn stored(reached: &Reached<'_>, key: &str, done: &Changed) -> Answered {
    let Some(version) = &done.version else {
        return Err(Problem::new(Code::Internal, "what was written has no version").into());
    };
    let status = if done.created { StatusCode::CREATED } else { StatusCode::OK };
    let body = Object::new()
        .text("namespace", reached.name())
        .text("key", key)
        .text("version", &version.to_string())
        .raw("created", if done.created { "true" } else { "false" });
    let mut response = json(status, body.finish());
    let (name, tag) = etag(version)?;
    response.headers_mut().insert(name, tag);
    if done.created {
        let place = ["v1", "agents", "namespaces", reached.name(), "entries", key];
        let (name, place) = located(&place)?;
        response.headers_mut().insert(name, place);
    }
    mark_replayed(&mut response, done.replayed);
    Ok(response)
}
