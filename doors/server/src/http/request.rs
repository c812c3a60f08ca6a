//! Taking requests apart: paths, parameters, bodies. What is wrong with them is told as a problem.

use std::fmt::Display;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use keyward::{Code, Json, Key, Prefix};
use serde::de::DeserializeOwned;

use super::body::too_large;
use super::content_type;
use crate::app::App;
use crate::auth::Identity;
use crate::http::problem::Refused;
use crate::idempotency::Mark;
use crate::problem::{Problem, Result};

/// The variables of the path.
pub(crate) struct At<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for At<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let Path(found) = Path::from_request_parts(parts, state).await.map_err(unclear)?;
        Ok(Self(found))
    }
}

/// The parameters after the question mark.
pub(crate) struct Parameters<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        let Query(found) = Query::try_from_uri(&parts.uri).map_err(unclear)?;
        Ok(Self(found))
    }
}

fn unclear(error: impl Display) -> Problem {
    Problem::invalid(error.to_string())
}

/// The caller, whom the gate has identified.
pub(crate) struct Authenticated(pub Identity);

impl<S: Send + Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        parts.extensions.get::<Identity>().cloned().map(Self).ok_or_else(|| {
            Problem::new(Code::Internal, "this route is not behind the check of credentials").into()
        })
    }
}

/// The whole body, with the rest of the request that tells one from another.
pub(crate) struct Content {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    bytes: Bytes,
}

impl FromRequest<App> for Content {
    type Rejection = Refused;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refused> {
        Ok(Self::within(request, app.limits().body_bytes_max).await?)
    }
}

/// A body that may be larger than others: an agent's entry of the largest size, with what is said about
/// it, and what stands around both.
pub(crate) struct Roomy(pub Content);

/// What stands around a value and its metadata.
const ROOM_BYTES: usize = 8 * 1024;

/// How large a body may be that holds an agent's entry.
pub(crate) fn roomy_bytes_max(app: &App) -> usize {
    let entry = app.agents().map_or(0, |(_, agents)| {
        let options = agents.options();
        options.value_bytes_max.saturating_add(options.metadata_bytes_max)
    });
    app.limits().body_bytes_max.max(entry).saturating_add(ROOM_BYTES)
}

/// By how much a text may be longer in a message than it is stored: `é` is stored in two bytes, and may be
/// written as `\u00e9`.
const ESCAPED_TIMES: usize = 3;
/// What stands around the value and the metadata in an agent's message.
const MESSAGE_ROOM_BYTES: usize = 64 * 1024;

/// How large an agent's message may be: one with the largest value, written in any way, is not too large. That
/// the value is not larger than it may be is checked by whatever stores it.
pub(crate) fn message_bytes_max(app: &App) -> usize {
    let (value, metadata) = app.agents().map_or((0, 0), |(_, agents)| {
        let options = agents.options();
        (options.value_bytes_max, options.metadata_bytes_max)
    });
    let value = app.limits().body_bytes_max.max(value);
    let entry = value.saturating_add(metadata).saturating_mul(ESCAPED_TIMES);
    entry.saturating_add(MESSAGE_ROOM_BYTES)
}

impl FromRequest<App> for Roomy {
    type Rejection = Refused;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refused> {
        Ok(Self(Content::within(request, roomy_bytes_max(app)).await?))
    }
}

impl Content {
    /// The whole body, which has at most so many bytes.
    async fn within(request: Request, bytes_max: usize) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let bytes = whole(body, bytes_max).await?;
        Ok(Self { method: parts.method, uri: parts.uri, headers: parts.headers, bytes })
    }
}

/// The body of a request that passed the gate, where it has arrived as a whole.
pub(crate) async fn whole(body: Body, bytes_max: usize) -> Result<Bytes> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(bytes_max)),
        Err(error) => Err(unclear(error)),
    }
}

impl Content {
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn require_type(&self, known: &[&str]) -> Result<()> {
        // Nothing is of no type.
        if self.bytes.is_empty() && content_type::declared(&self.headers).is_none() {
            return Ok(());
        }
        content_type::require(&self.headers, known).map(drop)
    }

    /// The body as a value that can be stored.
    pub fn json(&self) -> Result<Json> {
        self.require_type(&["application/json"])?;
        stored(self.bytes.clone())
    }

    /// The body as something that is understood here.
    pub fn read<'b, T: serde::Deserialize<'b>>(&'b self) -> Result<T> {
        self.require_type(&["application/json"])?;
        self.understood()
    }

    /// The body as JSON Merge Patches of several parts.
    pub fn read_patch<'b, T: serde::Deserialize<'b>>(&'b self) -> Result<T> {
        self.require_type(&["application/merge-patch+json", "application/json"])?;
        self.understood()
    }

    /// What is understood here are objects: members without their names are taken for nothing.
    fn understood<'b, T: serde::Deserialize<'b>>(&'b self) -> Result<T> {
        if self.bytes.trim_ascii_start().first() == Some(&b'[') {
            return Err(Problem::invalid("the body is a list")
                .hint("Send an object, with the names of its members; nothing was done."));
        }
        serde_json::from_slice(&self.bytes)
            .map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))
    }

    /// What is to be remembered, if the client asks for it.
    pub fn mark(&self, who: &Identity) -> Result<Option<Mark>> {
        let Some(chosen) = self.headers.get("idempotency-key") else { return Ok(None) };
        let Ok(chosen) = chosen.to_str() else {
            return Err(Problem::invalid("an idempotency key has visible ASCII characters only"));
        };
        let condition = |name| self.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        let parts = [
            self.method.as_str().as_bytes(),
            self.uri.path().as_bytes(),
            self.uri.query().unwrap_or_default().as_bytes(),
            condition(header::IF_MATCH),
            condition(header::IF_NONE_MATCH),
            &self.bytes,
        ];
        Mark::new(who, chosen, &parts).map(Some)
    }

    /// Refuses an idempotency key where what is asked for is not done in one commit, and is the same when
    /// it is done again.
    pub fn without_mark(&self, who: &Identity) -> Result<()> {
        match self.mark(who)? {
            None => Ok(()),
            Some(_) => {
                Err(Problem::invalid("an idempotency key is for what is done in one commit")
                    .hint("Leave out Idempotency-Key: what is done is not done again."))
            }
        }
    }
}

fn stored(bytes: Bytes) -> Result<Json> {
    Json::parse(bytes).map_err(|error| Problem::invalid(format!("the body is {error}")))
}

/// A key in the text of a request.
pub(crate) fn key(text: &str) -> Result<Key> {
    Key::parse(text).map_err(|error| Problem::unreadable("key", &error))
}

/// A prefix in the text of a request.
pub(crate) fn prefix(text: &str) -> Result<Prefix> {
    Prefix::parse(text).map_err(|error| Problem::unreadable("prefix", &error))
}
