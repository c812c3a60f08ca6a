//! Putting answers together.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use keyward::{Code, Version};
use keyward_operations::location::path;

use super::conditional::{etag, is_known};
use crate::http::problem::Answered;
use crate::problem::{Problem, Result};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Tells that an earlier request with the same idempotency key did it.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// JSON that is there as text.
pub(crate) fn json(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// What a browser does with a document that somebody else wrote: it shows it, and runs nothing of it.
const HARMLESS: [(HeaderName, &str); 3] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// A document that somebody else wrote.
pub(crate) fn harmless(kind: &'static str, content: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(content.into());
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    for (name, value) in HARMLESS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The answer with its tag, without a body if the client has it.
pub(crate) fn tagged(
    headers: &HeaderMap,
    tag: &Version,
    whole: impl FnOnce() -> Response<Body>,
) -> Answered {
    let mut response = match is_known(headers, tag)? {
        true => empty(StatusCode::NOT_MODIFIED),
        false => whole(),
    };
    let (name, value) = etag(tag)?;
    response.headers_mut().insert(name, value);
    Ok(response)
}

/// The header that says where something is.
pub(crate) fn located(segments: &[&str]) -> Result<(HeaderName, HeaderValue)> {
    location(path(segments.iter().copied()))
}

/// The header with a path that is percent-encoded already.
pub(crate) fn location(path: String) -> Result<(HeaderName, HeaderValue)> {
    let value = HeaderValue::try_from(path)
        .map_err(|_| Problem::new(Code::Internal, "this key cannot stand in a path"))?;
    Ok((header::LOCATION, value))
}

/// Says in an answer whether an earlier request did it.
pub(crate) fn mark_replayed(response: &mut Response<Body>, replayed: bool) {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}
