//! What Forge's refusals mean to a caller.

use keyward_engine::{Error, ErrorKind};
use keyward_http::{Response, StatusCode};
use serde::Deserialize;

const TEMPORARY: [&str; 4] =
    ["TOO_MANY_REQUESTS", "RATE_LIMIT_EXCEEDED", "REQUEST_THROTTLED", "CONDITIONAL_CHECK_FAILED"];

/// The body of every response that is no success.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Refusal {
    pub code: String,
    pub message: String,
}

impl Refusal {
    pub fn of(response: &Response) -> Self {
        serde_json::from_slice(&response.body).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&response.body);
            Self { code: "no code".to_owned(), message: text.trim().chars().take(200).collect() }
        })
    }

    /// Whether there is nothing under the key.
    pub fn is_absent(&self) -> bool {
        matches!(self.code.as_str(), "KEY_NOT_FOUND" | "NOT_FOUND")
    }

    /// Whether nothing was done, and the same may succeed a little later: too much was asked for at once, or a
    /// transaction met another one on the same keys.
    pub fn is_temporary(&self) -> bool {
        TEMPORARY.contains(&self.code.as_str())
    }
}

/// The error of a request that was refused.
pub(crate) fn refused(status: StatusCode, refusal: &Refusal) -> Error {
    let Refusal { code, message } = refusal;
    let shown = format!("Forge refused the request: {code}: {message} ({status})");
    let kind = match (status, code.as_str()) {
        _ if refusal.is_temporary() => ErrorKind::Unavailable,
        (_, "KEY_TOO_LONG" | "MAX_SIZE" | "MAX_DEPTH") | (StatusCode::PAYLOAD_TOO_LARGE, _) => {
            ErrorKind::LimitExceeded
        }
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
            return Error::new(ErrorKind::Forbidden, shown).advise(
                "Pass the app system token of a recent invocation; the app needs the scopes storage:app and read:app-system-token.",
            );
        }
        (StatusCode::BAD_REQUEST, _) => ErrorKind::Invalid,
        (status, _) if status == StatusCode::NOT_FOUND || status.is_redirection() => {
            return Error::new(ErrorKind::Misplaced, shown).advise(
                "Check the api option: the storage API of Forge is at https://api.atlassian.com/forge/storage/kvs.",
            );
        }
        _ => ErrorKind::Internal,
    };
    Error::new(kind, shown)
}

/// An answer that is not of the documented shape.
pub(crate) fn unreadable(what: &str, error: serde_json::Error) -> Error {
    let message = format!("Forge's answer to {what} is not of the documented shape");
    Error::new(ErrorKind::Internal, message).caused_by(error)
}
