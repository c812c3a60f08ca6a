//! From Firestore's refusals to kinds of errors.

use keyward_engine::{Error, ErrorKind};
use keyward_http::StatusCode;
use serde::Deserialize;

/// A request that Firestore refused. It changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Refusal {
    /// The name of the code, such as `ABORTED`.
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub message: String,
}

#[derive(Deserialize)]
struct Envelope {
    error: Refusal,
}

impl Refusal {
    /// The refusal in the body of a response. Requests that are answered by a stream have it in an array.
    pub fn read(status: StatusCode, body: &[u8]) -> Self {
        // First the array: as the only field of an envelope, its element would be taken for the error.
        if let Ok([Envelope { error }]) = serde_json::from_slice::<[_; 1]>(body) {
            return error;
        }
        if let Ok(Envelope { error }) = serde_json::from_slice(body) {
            return error;
        }
        let said: String = String::from_utf8_lossy(body).trim().chars().take(200).collect();
        Self { status: String::new(), message: format!("it answered {status}: {said}") }
    }

    /// Whether a precondition of the request did not hold.
    pub fn is_unmet(&self) -> bool {
        matches!(self.status.as_str(), "FAILED_PRECONDITION" | "ALREADY_EXISTS" | "NOT_FOUND")
    }

    /// Whether others wrote at the same time, so that it may succeed the next time.
    pub fn is_contended(&self) -> bool {
        self.status == "ABORTED"
    }

    pub fn into_error(self, doing: &str) -> Error {
        let Self { status, message } = self;
        let kind = match status.as_str() {
            "UNAUTHENTICATED" | "PERMISSION_DENIED" => ErrorKind::Forbidden,
            "NOT_FOUND" | "FAILED_PRECONDITION" | "" => ErrorKind::Misplaced,
            "INVALID_ARGUMENT" | "OUT_OF_RANGE" => {
                let is_too_large = ["longer than", "exceeds", "too large", "maximum"]
                    .iter()
                    .any(|words| message.contains(words));
                if is_too_large { ErrorKind::LimitExceeded } else { ErrorKind::Invalid }
            }
            "ABORTED" | "UNAVAILABLE" | "RESOURCE_EXHAUSTED" | "DEADLINE_EXCEEDED" | "INTERNAL"
            | "CANCELLED" => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        let error = Error::new(kind, format!("cannot {doing} Firestore: {message}"));
        match status.as_str() {
            "NOT_FOUND" => error.advise(
                "Make the database with `gcloud firestore databases create`, or change the URL: \
                 firestore://PROJECT/DATABASE/COLLECTION, where DATABASE is usually (default).",
            ),
            "PERMISSION_DENIED" => error.advise(
                "Grant the account the role roles/datastore.user, and enable the Firestore API in the project.",
            ),
            "FAILED_PRECONDITION" if message_names_index(&error) => {
                error.advise("Create the index that the message names.")
            }
            "" => error.advise("Check that the address is that of Firestore or its emulator."),
            _ => error,
        }
    }
}

fn message_names_index(error: &Error) -> bool {
    error.message().contains("index")
}

/// Something that Firestore should not have answered to a read.
pub(crate) fn garbled(reason: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("Firestore's answer cannot be read: {reason}"))
}

/// A document that nobody should have written.
pub(crate) fn corrupt(id: &str, reason: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the document {id:?} is no entry of a store: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_from_both_forms() {
        for body in [
            r#"{"error":{"code":409,"message":"m","status":"ABORTED"}}"#,
            r#"[{"error":{"code":409,"message":"m","status":"ABORTED"}}]"#,
        ] {
            let refusal = Refusal::read(StatusCode::CONFLICT, body.as_bytes());
            assert!(refusal.is_contended());
            assert_eq!(refusal.into_error("write to").kind(), ErrorKind::Unavailable);
        }
        let other = Refusal::read(StatusCode::NOT_FOUND, b"Not Found\n").into_error("read from");
        assert_eq!(other.kind(), ErrorKind::Misplaced);
        assert!(other.message().contains("404 Not Found: Not Found"), "{other}");
    }

    #[test]
    fn kinds_say_what_to_do() {
        for (status, message, kind) in [
            ("PERMISSION_DENIED", "m", ErrorKind::Forbidden),
            ("NOT_FOUND", "The database (default) does not exist", ErrorKind::Misplaced),
            ("FAILED_PRECONDITION", "The query requires an index.", ErrorKind::Misplaced),
            ("INVALID_ARGUMENT", "exceeds the limit: 10485760 bytes", ErrorKind::LimitExceeded),
            ("INVALID_ARGUMENT", "m", ErrorKind::Invalid),
            ("UNKNOWN", "m", ErrorKind::Internal),
        ] {
            let refusal = Refusal { status: status.to_owned(), message: message.to_owned() };
            assert_eq!(refusal.into_error("write to").kind(), kind, "{status} {message}");
        }
    }
}
