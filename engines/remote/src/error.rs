//! From what a server says to what a caller can do.

use std::time::Duration;

use hyper::StatusCode;
use keyward_engine::{Code, Error, ErrorKind};
use serde::Deserialize;

/// What is asked of a server: whether it matters if it is done twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// To look: it may be asked again.
    Looks,
    /// To change something: once it was sent, nobody knows whether it was done until it is answered.
    Changes,
}

/// What a server says when something did not work, as RFC 9457 has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    pub code: String,
    pub detail: String,
    pub hint: String,
    pub retryable: bool,
    /// The checks of a commit that did not hold.
    pub failed: Vec<Failed>,
}

impl Problem {
    /// The code. `None`, if this version does not know it.
    pub fn known_code(&self) -> Option<Code> {
        Code::from_name(&self.code)
    }

    fn kind(&self) -> ErrorKind {
        self.known_code().map_or(ErrorKind::Invalid, kind)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Failed {
    #[serde(default)]
    pub check: usize,
}

/// A refusal, as far as it can be read.
pub(crate) struct Refusal {
    pub status: StatusCode,
    /// None, if it is not Keyward that says so.
    pub problem: Option<Problem>,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// Whether certainly nothing was done, and the same may be asked again.
    pub fn may_be_repeated(&self) -> bool {
        self.problem
            .as_ref()
            .is_some_and(|problem| problem.retryable && problem.kind() == ErrorKind::Unavailable)
    }

    /// What the caller is told.
    pub fn told(self, asks: Asks, has_key: bool) -> Error {
        let Some(problem) = self.problem else { return foreign(self.status, asks, has_key) };
        if problem.known_code() == Some(Code::Unauthenticated) {
            return unknown_key(has_key);
        }
        let kind = match (problem.kind(), asks) {
            // What only looks has no outcome that could be unknown.
            (ErrorKind::OutcomeUnknown, Asks::Looks) => ErrorKind::Unavailable,
            // A fault of the server leaves open what was done before it.
            (ErrorKind::Internal, Asks::Changes) => ErrorKind::OutcomeUnknown,
            (kind, _) => kind,
        };
        let message = match (kind, problem.hint.as_str()) {
            (_, "") => problem.detail,
            (ErrorKind::Forbidden | ErrorKind::Misplaced, hint) => {
                format!("{}. {}", problem.detail, hint.trim_end_matches('.'))
            }
            _ => problem.detail,
        };
        Error::new(kind, message)
    }
}

fn unknown_key(has_key: bool) -> Error {
    let message = match has_key {
        true => "the server does not take this API key: it is wrong, has ended or was revoked",
        false => "the server asks for an API key, and none was given: set KEYWARD_KEY",
    };
    Error::new(ErrorKind::Forbidden, message)
}

/// What something between us and a server says, or something that is no Keyward server.
fn foreign(status: StatusCode, asks: Asks, has_key: bool) -> Error {
    let message = format!("something that is no Keyward server answered with {status}");
    let kind = match status.as_u16() {
        401 => return unknown_key(has_key),
        403 | 407 => ErrorKind::Forbidden,
        413 => ErrorKind::LimitExceeded,
        429 => ErrorKind::Unavailable,
        // It may have passed the request on.
        500.. if asks == Asks::Changes => ErrorKind::OutcomeUnknown,
        500.. => ErrorKind::Unavailable,
        _ => ErrorKind::Misplaced,
    };
    Error::new(kind, message)
}

fn kind(code: Code) -> ErrorKind {
    match code {
        Code::LimitExceeded | Code::ValueTooLarge | Code::HeadersTooLarge => {
            ErrorKind::LimitExceeded
        }
        Code::Unauthenticated | Code::Forbidden | Code::CrossOrigin => ErrorKind::Forbidden,
        Code::Reserved => ErrorKind::Reserved,
        Code::UnknownStore | Code::NotFound | Code::MethodNotAllowed | Code::Misplaced => {
            ErrorKind::Misplaced
        }
        Code::Unsupported => ErrorKind::Unsupported,
        Code::Unavailable
        | Code::Overloaded
        | Code::Stopping
        | Code::RateLimited
        | Code::OverQuota
        | Code::Timeout => ErrorKind::Unavailable,
        Code::OutcomeUnknown => ErrorKind::OutcomeUnknown,
        Code::Full => ErrorKind::Full,
        Code::Corrupt => ErrorKind::Corrupt,
        Code::Internal => ErrorKind::Internal,
        _ => ErrorKind::Invalid,
    }
}

/// What a watch is told before it ends.
pub(crate) fn of_watch(problem: Problem) -> Error {
    match problem.kind() {
        ErrorKind::OutcomeUnknown => Error::new(ErrorKind::Unavailable, problem.detail),
        kind => Error::new(kind, problem.detail),
    }
}

/// An answer that makes no sense.
pub(crate) fn senseless(reason: impl std::fmt::Display) -> Error {
    let message = format!("the server's answer cannot be read: {reason}");
    Error::new(ErrorKind::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> Refusal {
        let status = StatusCode::from_u16(status).unwrap();
        Refusal { status, problem: serde_json::from_str(body).ok(), retry_after: None }
    }

    #[test]
    fn codes_become_what_a_caller_can_do() {
        for (code, looks, changes) in [
            ("limit-exceeded", ErrorKind::LimitExceeded, ErrorKind::LimitExceeded),
            ("reserved", ErrorKind::Reserved, ErrorKind::Reserved),
            ("unknown-store", ErrorKind::Misplaced, ErrorKind::Misplaced),
            ("over-quota", ErrorKind::Unavailable, ErrorKind::Unavailable),
            ("outcome-unknown", ErrorKind::Unavailable, ErrorKind::OutcomeUnknown),
            ("full", ErrorKind::Full, ErrorKind::Full),
            ("bad-cursor", ErrorKind::Invalid, ErrorKind::Invalid),
        ] {
            let body = format!(r#"{{"code":"{code}","detail":"so it is"}}"#);
            for (asks, expected) in [(Asks::Looks, looks), (Asks::Changes, changes)] {
                let error = refusal(400, &body).told(asks, true);
                assert_eq!((error.kind(), error.message()), (expected, "so it is"), "{code}");
            }
        }
    }

    #[test]
    fn what_is_not_keyward_is_not_taken_for_it() {
        let proxy = |asks| refusal(502, "<html>").told(asks, false).kind();
        assert_eq!(proxy(Asks::Looks), ErrorKind::Unavailable);
        assert_eq!(proxy(Asks::Changes), ErrorKind::OutcomeUnknown);
        assert_eq!(refusal(404, "").told(Asks::Looks, true).kind(), ErrorKind::Misplaced);
        assert!(!refusal(503, "busy").may_be_repeated());
    }

    #[test]
    fn a_missing_key_and_a_wrong_one_are_told_apart() {
        let body = r#"{"code":"unauthenticated","detail":"no"}"#;
        let told = |has_key| refusal(401, body).told(Asks::Looks, has_key).to_string();
        assert!(told(false).contains("set KEYWARD_KEY"));
        assert!(told(true).contains("wrong, has ended or was revoked"));
    }
}
