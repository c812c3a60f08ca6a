use std::time::Duration;

use keyward_engine::{Code, Coded, Error as StoreError, ErrorKind};
use keyward_key::Key;

use crate::Loss;

/// The result of a lock operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a lock operation was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine cannot do this.
    #[error("{0}")]
    Unsupported(String),
    /// The path cannot be one.
    #[error("{path:?} is not a path that can be locked: {reason}")]
    BadPath {
        /// The path, or its beginning.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The request makes no sense as it is.
    #[error("{0}")]
    BadRequest(String),
    /// The schema's lock tree has no such path.
    #[error("{0}")]
    OutsideTree(String),
    /// The time to wait is over.
    #[error("waited {waited:?} for {path} of {root}, which is held by {holder}")]
    TimedOut {
        /// The root.
        root: Key,
        /// What was asked for.
        path: String,
        /// How long.
        waited: Duration,
        /// Who is in the way, in words.
        holder: String,
    },
    /// The caller holds something below what it asks for, and would wait for itself.
    #[error("{asked} of {root} cannot be asked for while {held} is held by the same owner")]
    WouldDeadlock {
        /// The root.
        root: Key,
        /// What was asked for.
        asked: String,
        /// What is held.
        held: String,
    },
    /// The lock is no longer the caller's. What was to be written was not.
    #[error("the lock {token} on {root} is lost: {loss}")]
    Lost {
        /// The root.
        root: Key,
        /// The lock's token.
        token: u64,
        /// How it was lost.
        loss: Loss,
    },
    /// The ticket was replaced by a later one of the same lock. What was to be written was not.
    #[error("the ticket of the lock {token} on {root} was replaced by a later one")]
    OldTicket {
        /// The root.
        root: Key,
        /// The lock's token.
        token: u64,
    },
    /// A request of this name asked for something else.
    #[error("a request of the same name asked for another lock on {root}")]
    IdTaken {
        /// The root.
        root: Key,
    },
    /// The root's key holds something that is not a catalog of locks.
    #[error("the key {root} holds a value that is not a catalog of locks; it was left alone")]
    ForeignValue {
        /// The root.
        root: Key,
    },
    /// The key was written under the locks of another root.
    #[error("the key {key} is written under the locks of {other}, not of {root}")]
    ForeignFence {
        /// The key.
        key: Key,
        /// The guard's root.
        root: Key,
        /// The root whose locks the key was written under.
        other: String,
    },
    /// There are as many as there can be.
    #[error("{root} has {count_max} {what}, which is the most")]
    Full {
        /// The root.
        root: Key,
        /// Holders or waiters.
        what: &'static str,
        /// How many fit.
        count_max: usize,
    },
    /// Nobody holds what should be broken.
    #[error("nobody holds {what} of {root}; held is {held}")]
    NotHeld {
        /// The root.
        root: Key,
        /// What was to be broken.
        what: String,
        /// What is held, in words.
        held: String,
    },
    /// Others changed the same entry again and again.
    #[error("others kept changing {key} at the same time; gave up after {attempts} attempts")]
    Contended {
        /// The entry.
        key: Key,
        /// How often it was tried.
        attempts: usize,
    },
    /// What is kept about the locks makes no sense.
    #[error("what the store keeps about the locks of {root} is damaged: {reason}")]
    Damaged {
        /// The root.
        root: Key,
        /// What is wrong.
        reason: String,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::Unsupported(_) => Code::Unsupported,
            Self::BadPath { .. } => Code::BadPath,
            Self::BadRequest(_) => Code::Invalid,
            Self::OutsideTree(_) => Code::OutsideTree,
            Self::TimedOut { .. } => Code::TimedOut,
            Self::WouldDeadlock { .. } => Code::WouldDeadlock,
            Self::Lost { .. } => Code::LockLost,
            Self::OldTicket { .. } => Code::OldTicket,
            Self::IdTaken { .. } => Code::IdTaken,
            Self::ForeignValue { .. } => Code::ForeignValue,
            Self::ForeignFence { .. } => Code::ForeignFence,
            Self::Full { .. } => Code::TooManyLocks,
            Self::NotHeld { .. } => Code::NotHeld,
            Self::Contended { .. } => Code::Contended,
            Self::Damaged { .. } => Code::Corrupt,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Store(error) => error.hint(),
            Self::BadPath { .. } => {
                "Write segments with colons between them; leave it out for all."
            }
            Self::TimedOut { .. } => "Wait longer, or look who holds it with keyward lock list.",
            Self::IdTaken { .. } => "Choose a new name for each lock that is asked for.",
            Self::ForeignValue { .. } => "Choose another root: a root's key belongs to its locks.",
            Self::Damaged { .. } => "Keep a copy of the store, and look at the root's entry.",
            _ => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.retryable(),
            Self::TimedOut { .. } | Self::Full { .. } | Self::Contended { .. } => true,
            _ => false,
        }
    }
}

impl Error {
    /// Whether the store could not be asked or did not answer: asking again may help.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Store(error)
            if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::OutcomeUnknown))
    }
}
