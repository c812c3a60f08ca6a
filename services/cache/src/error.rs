use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Code, Coded, Error as StoreError};
use keyward_key::Key;
use keyward_locks::Error as LockError;

/// The result of a cache operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock under which results are computed could not be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The computation failed, now or a short while ago.
    #[error(
        "computing {key} failed at {at:.6}: {message} (the next attempt is allowed in {} s)",
        retry_after.as_secs_f64().ceil()
    )]
    Failed {
        /// The key.
        key: Key,
        /// What the computation said.
        message: String,
        /// When it failed.
        at: Timestamp,
        /// How often it failed in a row.
        times: u32,
        /// From when on it is tried again, counted from now.
        retry_after: Duration,
    },
    /// The lock was lost while the result was computed: others took this process for dead.
    #[error("the lock on {key} was lost while it was computed")]
    Lost {
        /// The key.
        key: Key,
    },
    /// Others computed it, and it did not come in time.
    #[error("{key} did not come within {waited:?}; others are computing it")]
    TimedOut {
        /// The key.
        key: Key,
        /// How long was waited.
        waited: Duration,
    },
    /// The key holds something that no cache has put there.
    #[error("the key {key} holds something that was not cached")]
    ForeignValue {
        /// The key.
        key: Key,
    },
    /// The request makes no sense as it is.
    #[error("{0}")]
    BadRequest(String),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::Lock(error) => error.code(),
            Self::Failed { .. } => Code::ComputationFailed,
            Self::Lost { .. } => Code::LockLost,
            Self::TimedOut { .. } => Code::Computing,
            Self::ForeignValue { .. } => Code::ForeignValue,
            Self::BadRequest(_) => Code::Invalid,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Store(error) => error.hint(),
            Self::Lock(error) => error.hint(),
            Self::Failed { .. } => {
                "Fix what failed, then ask again after the pause, or at once: keyward cache run --retry."
            }
            Self::Lost { .. } => "Ask again: somebody else computes it by now, or has.",
            Self::ForeignValue { .. } => "Choose another key for the cached value.",
            Self::TimedOut { .. } | Self::BadRequest(_) => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.retryable(),
            Self::Lock(error) => error.retryable(),
            Self::Failed { .. } | Self::Lost { .. } | Self::TimedOut { .. } => true,
            Self::ForeignValue { .. } | Self::BadRequest(_) => false,
        }
    }
}
