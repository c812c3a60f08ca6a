//! What the API answers, as kinds that tell the caller what to do.

use keyward_engine::{Error, ErrorKind};
use keyward_http::{Response, StatusCode};
use serde::Deserialize;

/// The longest text of the API's that is repeated.
const SAID_CHARS_MAX: usize = 200;
/// The codes for a key and for a namespace that do not exist.
const KEY_NOT_FOUND: u32 = 10_009;
const NAMESPACE_NOT_FOUND: u32 = 10_013;
/// The codes for a token that is missing, malformed, unknown or not allowed: some come with the status 400.
const TOKEN_REFUSED: [u32; 4] = [6_003, 9_106, 9_109, 10_000];

/// What every answer says besides its result.
#[derive(Debug, Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    errors: Vec<Said>,
}

#[derive(Debug, Default, Deserialize)]
struct Said {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    message: String,
}

impl Refusal {
    fn of(response: &Response) -> Self {
        serde_json::from_slice(&response.body).unwrap_or_default()
    }

    fn has(&self, code: u32) -> bool {
        self.errors.iter().any(|said| said.code == code)
    }

    fn is_about_token(&self, status: StatusCode) -> bool {
        [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status)
            || TOKEN_REFUSED.into_iter().any(|code| self.has(code))
    }
}

/// Whether an answer says that there is no such key; another one that is not found is an error.
pub(crate) fn is_key_not_found(response: &Response) -> bool {
    let refusal = Refusal::of(response);
    response.status == StatusCode::NOT_FOUND
        && (refusal.errors.is_empty() || refusal.has(KEY_NOT_FOUND))
}

/// Whether an answer says that there is no such namespace.
pub(crate) fn is_namespace_not_found(response: &Response) -> bool {
    Refusal::of(response).has(NAMESPACE_NOT_FOUND)
}

/// Whether the API understood a request and refused what it asks for: a smaller one may do.
pub(crate) fn is_about_content(response: &Response) -> bool {
    let status = response.status;
    let is_about_place = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status);
    status.is_client_error() && !is_about_place && !Refusal::of(response).is_about_token(status)
}

/// An answer that is none of those asked for. Nothing was done.
pub(crate) fn refused(doing: &str, response: &Response) -> Error {
    let status = response.status;
    let refusal = Refusal::of(response);
    let said: Vec<String> = refusal
        .errors
        .iter()
        .map(|said| format!("{} (code {})", said.message, said.code))
        .collect();
    let said = match said.is_empty() {
        true => String::from_utf8_lossy(&response.body).trim().to_owned(),
        false => said.join("; "),
    };
    let said: String = said.chars().take(SAID_CHARS_MAX).collect();
    let message = format!("cannot {doing}: Workers KV answered {status}: {said}");
    match status {
        status if refusal.is_about_token(status) => Error::new(ErrorKind::Forbidden, message)
            .advise(
                "Use an API token of this account with the permission Workers KV Storage: Edit.",
            ),
        StatusCode::NOT_FOUND => Error::new(ErrorKind::Misplaced, message)
            .advise("Check the ids of account and namespace in the store's URL."),
        StatusCode::PAYLOAD_TOO_LARGE => Error::new(ErrorKind::LimitExceeded, message),
        _ => Error::new(ErrorKind::Internal, message),
    }
}

/// An answer that is not what the API documents.
pub(crate) fn unreadable(doing: &str, error: impl std::fmt::Display) -> Error {
    let message = format!("cannot {doing}: the answer is not one of Workers KV's: {error}");
    Error::new(ErrorKind::Internal, message)
        .advise("Check that api in the store's URL is the base URL of Cloudflare's API.")
}

/// The same error for entries that were refused together, perhaps for the sake of one of them.
pub(crate) fn of_some(error: &Error, entries: usize) -> Error {
    let message = format!("{} (at least one of {entries} entries)", error.message());
    Error::new(error.kind(), message)
        .advise("Write fewer entries at a time to find the refused ones.")
}

/// The same error for another one who waits for the same request.
pub(crate) fn again(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.message());
    match error.advice() {
        Some(advice) => copy.advise(advice),
        None => copy,
    }
}
