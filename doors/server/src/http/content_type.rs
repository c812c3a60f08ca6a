//! What a body is declared to be.

use axum::http::{HeaderMap, header};
use keyward::Code;

use crate::problem::{Problem, Result};

/// The media type of a body, in lower case and without parameters; nothing, if none is declared.
pub(crate) fn declared(headers: &HeaderMap) -> Option<String> {
    let given = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    Some(given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Refuses a body that is not declared to be of a known type, and gives its type.
pub(crate) fn require(headers: &HeaderMap, known: &[&str]) -> Result<String> {
    let known_types = known.join(" or ");
    match declared(headers) {
        Some(given) if known.contains(&given.as_str()) => Ok(given),
        Some(given) => Err(unsupported(format!("the body is declared as {given:?}"), &known_types)),
        None => Err(missing(&known_types)),
    }
}

/// What is said to a body without a type. A browser would send one to another origin without asking
/// first.
pub(crate) fn missing(known: &str) -> Problem {
    unsupported("the body has no Content-Type".to_owned(), known)
}

fn unsupported(detail: String, known: &str) -> Problem {
    Problem::new(Code::UnsupportedMediaType, detail)
        .hint(format!("Send Content-Type: {known}; nothing was done."))
}
