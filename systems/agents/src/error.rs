use keyward_engine::{Error as StoreError, ErrorKind};
use keyward_records::Error as RecordsError;

/// The result of an operation of the agent data store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed. Unless it is the store's own error, or says otherwise,
/// nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The records below refused or failed.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The request makes no sense as it is.
    #[error("{0}")]
    Invalid(String),
    /// More entries than one request may have.
    #[error("{given} entries were given at once; at most {given_max} are taken")]
    TooMany {
        /// How many were given.
        given: usize,
        /// How many there may be.
        given_max: usize,
    },
    /// A document is not what an entry of this user looks like.
    #[error("document {number} cannot be taken: {reason}")]
    BadDocument {
        /// Which of those that were given, counted from one.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Some entries were written before one failed, on an engine that cannot write several together.
    #[error("{done} entries were written, then one failed: {source}")]
    Partly {
        /// How many were written: the first ones.
        done: usize,
        /// Why the next one was not.
        source: Box<Error>,
    },
    /// The store has no space for agents' entries.
    #[error("{0}")]
    Unprepared(String),
    /// What was gathered about accesses could not be written; it is still held.
    #[error("{accesses} accesses and {lines} lines of the log are not written yet: {source}")]
    Unflushed {
        /// Accesses that are held.
        accesses: u64,
        /// Lines of operations logs that are held.
        lines: usize,
        /// What the last attempt met.
        source: Box<Error>,
    },
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Records(error.into())
    }
}

impl Error {
    /// The stable code shown by every door.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Records(error) => error.code(),
            Self::Invalid(_) => ErrorKind::Invalid.code(),
            Self::TooMany { .. } => ErrorKind::LimitExceeded.code(),
            Self::BadDocument { .. } => "bad-document",
            Self::Partly { source, .. } | Self::Unflushed { source, .. } => source.code(),
            Self::Unprepared(_) => "unknown-space",
        }
    }

    /// What to do next, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Records(error) => error.hint(),
            Self::Invalid(_) => "Change the request; nothing was done.",
            Self::TooMany { .. } => "Send them in several requests.",
            Self::BadDocument { .. } => {
                "Correct the document; documents before it may have been taken."
            }
            Self::Partly { .. } => "Send the rest again; writing an entry again does no harm.",
            Self::Unprepared(_) => {
                "Declare the space agent_data_store, with the key agents:{user}:{namespace}:{key}."
            }
            Self::Unflushed { .. } => "Try again when the store answers.",
        }
    }

    /// Whether the same request may succeed later, without a risk of doing it twice.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Records(error) => error.retryable(),
            Self::Partly { source, .. } => source.retryable(),
            Self::Unflushed { .. } => true,
            _ => false,
        }
    }
}

/// What is stored makes no sense.
pub(crate) fn damaged(what: impl Into<String>) -> RecordsError {
    RecordsError::Damaged(what.into())
}
