use keyward_engine::{Code, Coded, Error as StoreError};
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
    /// A document is not one that can be imported.
    #[error("document {number}{} cannot be imported: {reason}", at(*line))]
    BadDocument {
        /// Which one of the input, counted from one.
        number: usize,
        /// The line of the input in which it begins, if it was read from a text.
        line: Option<usize>,
        /// What is wrong with it.
        reason: String,
    },
    /// A document belongs to another user than the one it is imported for.
    #[error("document {number}{} cannot be imported: it belongs to user {user:?}, not {owner:?}", at(*line))]
    OtherUser {
        /// Which one of the input, counted from one.
        number: usize,
        /// The line of the input in which it begins, if it was read from a text.
        line: Option<usize>,
        /// The user it belongs to.
        user: String,
        /// The user it is imported for.
        owner: String,
    },
    /// A document is longer than any that can be imported.
    #[error("document {number} (line {line}) must be at most {bytes_max} bytes long")]
    LongDocument {
        /// Which one of the input, counted from one.
        number: usize,
        /// The line of the input in which it begins.
        line: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A document was read, and its entry refused.
    #[error("document {number}{} cannot be imported: {source}", at(*line))]
    InDocument {
        /// Which one of the input, counted from one.
        number: usize,
        /// The line of the input in which it begins, if it was read from a text.
        line: Option<usize>,
        /// Why.
        source: Box<Error>,
    },
    /// Some entries were written before one failed.
    #[error("{done} entries were written, then one failed: {source}")]
    Partly {
        /// How many were written.
        done: usize,
        /// Why the next one was not.
        source: Box<Error>,
    },
    /// An entry could not be copied.
    #[error(
        "the entry {key:?} of user {user:?} in namespace {namespace:?} cannot be copied: {source}"
    )]
    InEntry {
        /// The user whose entry it is.
        user: String,
        /// The namespace.
        namespace: String,
        /// The key.
        key: String,
        /// Why.
        source: Box<Error>,
    },
    /// An entry that is to be copied has something else in the target, or changes there all the time.
    #[error("the target has another entry {key:?} of user {user:?} in namespace {namespace:?}")]
    Differs {
        /// The user whose entry it is.
        user: String,
        /// The namespace.
        namespace: String,
        /// The key.
        key: String,
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

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Records(error) => error.code(),
            Self::Invalid(_) => Code::Invalid,
            Self::TooMany { .. } | Self::LongDocument { .. } => Code::LimitExceeded,
            Self::BadDocument { .. } | Self::OtherUser { .. } => Code::BadDocument,
            Self::InDocument { source, .. }
            | Self::InEntry { source, .. }
            | Self::Partly { source, .. }
            | Self::Unflushed { source, .. } => source.code(),
            Self::Differs { .. } => Code::PreconditionFailed,
            Self::Unprepared(_) => Code::UnknownSpace,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Records(error) => error.hint(),
            Self::TooMany { .. } => "Send them in several requests.",
            Self::LongDocument { .. } => Code::BadDocument.hint(),
            Self::OtherUser { .. } => {
                "Import it for that user, or have an operator import documents of all users."
            }
            Self::InDocument { source, .. } | Self::InEntry { source, .. } => source.hint(),
            Self::Differs { .. } => {
                "Say which one counts: keep the target's, replace it, or take the newer one."
            }
            Self::Partly { source, .. } => match &**source {
                source @ (Self::BadDocument { .. }
                | Self::LongDocument { .. }
                | Self::OtherUser { .. }
                | Self::InDocument { .. }) => source.hint(),
                _ => "Send everything again; writing an entry again is safe.",
            },
            Self::Unprepared(_) => {
                "Declare the space agent_data_store, with the key agents:{user}:{namespace}:{key}."
            }
            Self::Unflushed { .. } => "Try again when the store answers.",
            Self::Invalid(_) | Self::BadDocument { .. } => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Records(error) => error.retryable(),
            Self::Partly { source, .. }
            | Self::InDocument { source, .. }
            | Self::InEntry { source, .. } => source.retryable(),
            Self::Unflushed { .. } => true,
            _ => false,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Records(error.into())
    }
}

impl Error {
    /// The document that is meant, and its line if it was read from a text.
    pub fn document(&self) -> Option<(usize, Option<usize>)> {
        match self {
            Self::BadDocument { number, line, .. }
            | Self::OtherUser { number, line, .. }
            | Self::InDocument { number, line, .. } => Some((*number, *line)),
            Self::LongDocument { number, line, .. } => Some((*number, Some(*line))),
            Self::Partly { source, .. } => source.document(),
            _ => None,
        }
    }
}

/// The line of a document, for messages.
fn at(line: Option<usize>) -> String {
    line.map(|line| format!(" (line {line})")).unwrap_or_default()
}

/// What is stored makes no sense.
pub(crate) fn damaged(what: impl Into<String>) -> RecordsError {
    RecordsError::Damaged(what.into())
}
