use keyward_engine::{Error, ErrorKind};
use keyward_http::{Response, StatusCode};
use serde::Deserialize;

/// How much of an answer stands in a message.
const REASON_CHARS_MAX: usize = 200;

/// How CouchDB says what is wrong.
#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(default)]
    error: String,
    #[serde(default)]
    reason: String,
}

fn problem(response: &Response) -> Problem {
    serde_json::from_slice(&response.body).unwrap_or_else(|_| Problem {
        error: String::new(),
        reason: String::from_utf8_lossy(&response.body).trim().to_owned(),
    })
}

/// Whether it is the document that was not found, and not its database.
pub(crate) fn is_absent(response: &Response) -> bool {
    let absent = ["missing", "deleted"];
    response.status == StatusCode::NOT_FOUND && absent.contains(&problem(response).reason.as_str())
}

/// The error of a response that says that nothing was done.
pub(crate) fn refused(response: &Response, database: &str) -> Error {
    let Problem { error, reason } = problem(response);
    let reason = if reason.is_empty() { error } else { reason };
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    match response.status {
        StatusCode::UNAUTHORIZED => {
            let message =
                format!("CouchDB refused the credentials for the database {database}: {reason}");
            Error::new(ErrorKind::Forbidden, message).advise(
                "Write USER:PASSWORD@ into the URL, percent-encoded, or set KEYWARD_COUCHDB_USER and KEYWARD_COUCHDB_PASSWORD.",
            )
        }
        StatusCode::FORBIDDEN => {
            let message =
                format!("CouchDB did not allow this in the database {database}: {reason}");
            Error::new(ErrorKind::Forbidden, message)
        }
        StatusCode::NOT_FOUND => {
            let message = format!("the CouchDB database {database} was not found: {reason}");
            Error::new(ErrorKind::Misplaced, message)
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message = format!(
                "the document is larger than the CouchDB database {database} takes: {reason}"
            );
            Error::new(ErrorKind::LimitExceeded, message)
                .advise("Store less, or raise max_document_size in the [couchdb] section of the server's configuration.")
        }
        status => {
            let message = format!("the CouchDB database {database} answered {status}: {reason}");
            Error::new(ErrorKind::Internal, message)
        }
    }
}

/// The error of a response that makes no sense. What it answers is read again, if it was a read.
pub(crate) fn unreadable(what: &str, error: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("the answer of CouchDB to {what} cannot be read: {error}"),
    )
}
