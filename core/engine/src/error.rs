use std::error::Error as StdError;
use std::fmt;

use crate::{Code, Coded};

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as a kind that says what the caller can do, and a message that says what
/// happened.
///
/// A failed check or a missing key is not an error: those are outcomes.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<Box<str>>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What a caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense as it is. Nothing was done. Change it.
    Invalid,
    /// The request is larger than a limit allows. Nothing was done. Make it smaller.
    LimitExceeded,
    /// This engine cannot do that. Nothing was done. Use another engine or another operation.
    Unsupported,
    /// The store cannot be opened where or how it was asked for. Change the URL or the place.
    Misplaced,
    /// The credential that was shown does not allow this, or is none that is known. Nothing was
    /// done. Use another one.
    Forbidden,
    /// The key belongs to Keyward or to something that keeps it, and an ordinary write must leave it
    /// alone. Nothing was done. Write it through what keeps it.
    Reserved,
    /// The engine could not be reached or was busy. Nothing was done. Try again.
    Unavailable,
    /// The engine may or may not have done it. Read before trying again.
    OutcomeUnknown,
    /// There is no space left. Nothing was written, and nothing is lost. Make room.
    Full,
    /// The stored data is damaged. Stop, and restore a backup.
    Corrupt,
    /// A fault in Keyward or below it. Report it.
    Internal,
}

impl ErrorKind {
    /// The stable code shown by every door.
    pub fn code(self) -> Code {
        match self {
            Self::Invalid => Code::Invalid,
            Self::LimitExceeded => Code::LimitExceeded,
            Self::Unsupported => Code::Unsupported,
            Self::Misplaced => Code::Misplaced,
            Self::Forbidden => Code::Forbidden,
            Self::Reserved => Code::Reserved,
            Self::Unavailable => Code::Unavailable,
            Self::OutcomeUnknown => Code::OutcomeUnknown,
            Self::Full => Code::Full,
            Self::Corrupt => Code::Corrupt,
            Self::Internal => Code::Internal,
        }
    }

    /// What to do next, in one sentence.
    pub fn hint(self) -> &'static str {
        self.code().hint()
    }

    /// Whether the same request may succeed later, without a risk of doing it twice.
    pub fn retryable(self) -> bool {
        matches!(self, Self::Unavailable)
    }
}

impl Error {
    /// An error of a kind, with a message that says what happened.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    /// The same error, caused by another.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with a hint for its very case, instead of that of its kind.
    #[must_use]
    pub fn advise(mut self, hint: impl Into<Box<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to do next in this very case, if more is known than [`ErrorKind::hint`] says.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::LimitExceeded, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

/// The cause is part of the message, so it is not told again as a source.
impl StdError for Error {}

impl Coded for Error {
    fn code(&self) -> Code {
        self.kind.code()
    }

    fn hint(&self) -> &str {
        self.advice().unwrap_or(self.kind.hint())
    }

    fn retryable(&self) -> bool {
        self.kind.retryable()
    }
}
