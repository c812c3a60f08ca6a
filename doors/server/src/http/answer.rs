//! Putting answers together.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use keyward::Key;

use super::conditional::etag;
use super::text::Object;
use crate::api::entries::Written;
use crate::api::records::Changed;
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

/// What is said about a change that was made to a key.
pub(crate) fn written(status: StatusCode, key: &str, done: &Written) -> Result<Response<Body>> {
    let mut response = match &done.version {
        Some(version) => {
            let text = Object::new().text("key", key).text("version", &version.to_string());
            let mut response = json(status, text.finish());
            let (name, value) = etag(version)?;
            response.headers_mut().insert(name, value);
            response
        }
        None => empty(StatusCode::NO_CONTENT),
    };
    mark_replayed(&mut response, done.replayed);
    Ok(response)
}

/// What is said about a change that was made to a record.
pub(crate) fn changed(key: &Key, done: Changed) -> Result<Response<Body>> {
    let status = if done.created { StatusCode::CREATED } else { StatusCode::OK };
    let Changed { version, replayed, .. } = done;
    written(status, &key.to_string(), &Written { version, replayed })
}

/// The header that says where a record is.
pub(crate) fn location(space: &str, key: &Key) -> Result<(HeaderName, HeaderValue)> {
    located(&["v1", "spaces", space, "records", &key.to_string()])
}

/// The header that says where something is.
pub(crate) fn located(segments: &[&str]) -> Result<(HeaderName, HeaderValue)> {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        path.push_str(&path_segment(segment));
    }
    let value = HeaderValue::try_from(path)
        .map_err(|_| Problem::new("internal", "this key cannot stand in a path"))?;
    Ok((header::LOCATION, value))
}

/// A segment of a path, percent-encoded; colons may stand in one as they are.
pub(crate) fn path_segment(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) => {
                path.push(char::from(byte));
            }
            byte => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// Says in an answer whether an earlier request did it.
pub(crate) fn mark_replayed(response: &mut Response<Body>, replayed: bool) {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}
