//! What PostgreSQL says, as kinds that tell the caller what to do.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use keyward_engine::{Error, ErrorKind};
use tokio_postgres::error::{Error as PostgresError, Severity, SqlState};

use crate::Options;

/// An error where nothing was done, or nothing that matters: a read, a connection, a commit that was
/// not sent.
pub(crate) fn from_postgres(doing: &str, error: PostgresError) -> Error {
    let Some(said) = error.as_db_error() else {
        return Error::new(client_kind(&error), format!("{doing}: {}", causes(&error)));
    };
    let (kind, hint) = explain(said.code());
    let mut message = format!("{doing}: {}", said.message());
    if !hint.is_empty() {
        message = format!("{message}; {hint}");
    }
    Error::new(kind, message)
}

/// An error after a commit was sent. It was rolled back only if the server says so in answer to it:
/// a connection that ends, or that the server ends, says nothing.
pub(crate) fn of_commit(error: PostgresError) -> Error {
    let severity = error.as_db_error().and_then(|said| said.parsed_severity());
    if severity == Some(Severity::Error) {
        return from_postgres("the commit was rolled back", error);
    }
    let message = format!("no answer to the commit: {}", causes(&error));
    Error::new(ErrorKind::OutcomeUnknown, message)
}

/// Whether the server gave up a transaction for the sake of another: the same commit may succeed
/// now.
pub(crate) fn lost_to_another(error: &PostgresError) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE
    })
}

/// Whether a connection is of no more use after an error: it has ended, or its server has become a
/// replica, and another connection may find the new one.
pub(crate) fn ends_connection(error: &PostgresError) -> bool {
    match error.as_db_error() {
        Some(said) => {
            said.parsed_severity() != Some(Severity::Error)
                || *said.code() == SqlState::READ_ONLY_SQL_TRANSACTION
        }
        None => error.is_closed() || client_kind(error) == ErrorKind::Unavailable,
    }
}

/// An error of getting a connection: nothing was sent.
pub(crate) fn from_pool(doing: &str, error: PoolError, options: &Options) -> Error {
    let Options { pool_max, connect_timeout, .. } = options;
    let unavailable = |message| Error::new(ErrorKind::Unavailable, format!("{doing}: {message}"));
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            from_postgres(doing, error)
        }
        PoolError::Timeout(TimeoutType::Wait) => unavailable(format!(
            "all {pool_max} connections were in use for {connect_timeout:?}; send less at once, or \
             raise pool_max"
        )),
        PoolError::Timeout(_) => unavailable(no_connection(*connect_timeout)),
        other => unavailable(other.to_string()),
    }
}

pub(crate) fn no_connection(waited: Duration) -> String {
    format!("the server gave no connection within {waited:?} (connect_timeout)")
}

/// What was read makes no sense.
pub(crate) fn corrupt(error: PostgresError) -> Error {
    let message = format!("what the database holds cannot be read: {}", causes(&error));
    Error::new(ErrorKind::Corrupt, message)
}

/// What an error of the client's own means. The client keeps its kinds to itself; its words are
/// all there is to tell them by.
fn client_kind(error: &PostgresError) -> ErrorKind {
    let said = error.to_string();
    let begins = |word: &&str| said.starts_with(word);
    if begins(&"error performing TLS") {
        // What is wrong with a certificate is told as invalid data; anything else of this kind is
        // the network, which may end in the middle of a handshake as well.
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        match cause {
            Some(cause) if cause.kind() != io::ErrorKind::InvalidData => ErrorKind::Unavailable,
            _ => ErrorKind::Misplaced,
        }
    } else if ["invalid configuration", "authentication"].iter().any(begins) {
        ErrorKind::Misplaced
    } else if ["error serializing", "error deserializing", "expected"].iter().any(begins) {
        ErrorKind::Internal
    } else {
        ErrorKind::Unavailable
    }
}

fn explain(code: &SqlState) -> (ErrorKind, &'static str) {
    use ErrorKind::{Corrupt, Full, Internal, LimitExceeded, Misplaced, Unavailable};
    match code.code() {
        "28P01" | "28000" => (Misplaced, "check user, password and sslmode in the store's URL"),
        "3D000" => (Misplaced, "create it with createdb, or name another in the store's URL"),
        "42501" => (
            Misplaced,
            "the user must be allowed to create the schema keyward (GRANT CREATE ON DATABASE), or \
             to use it once it is there",
        ),
        "25006" => (Unavailable, "the server only reads: it is or has become a replica"),
        "3F000" | "42P01" | "42883" => {
            (Misplaced, "the schema keyward was removed or changed; open the store again")
        }
        // Raised by keyward.enter.
        "KW001" => (Misplaced, "open the store again"),
        "53100" => (Full, "the server's disk is full"),
        "57014" => (Unavailable, "it took longer than statement_timeout"),
        "53300" => (Unavailable, "lower pool_max, or raise the server's max_connections"),
        "XX001" | "XX002" => (Corrupt, ""),
        code => match code.get(..2) {
            // Connections, resources, operators, lost races, locks, and faults of the machine.
            Some("08" | "40" | "53" | "55" | "57" | "58") => (Unavailable, ""),
            Some("54") => (LimitExceeded, ""),
            _ => (Internal, ""),
        },
    }
}

/// An error with what caused it: the client's own words alone say little.
pub(crate) fn causes(error: &PostgresError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
