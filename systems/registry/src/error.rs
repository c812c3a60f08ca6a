use keyward_engine::{Code, Coded, Error as StoreError, Tier};
use keyward_locks::Error as LockError;
use keyward_queue::Error as QueueError;

use crate::SettingsProblem;

/// The result of an operation of a registry.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed. A run that fails has deleted nothing that is in the
/// repository, and has not moved `metadata:sync:lastCommit`; the next one finishes what it began.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue of changes refused or failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The lock of the run was refused, or was lost to another process.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The engine cannot write an entry and its message together.
    #[error(
        "a registry needs commits of several keys, and the {engine} engine has the {tier} tier: \
         a change could be written and nobody be told of it"
    )]
    NeedsAtomic {
        /// The engine.
        engine: &'static str,
        /// Its tier.
        tier: Tier,
    },
    /// The settings make no sense.
    #[error("the settings of the registry {registry} cannot be used: {}", told(.problems))]
    Settings {
        /// The registry.
        registry: String,
        /// All that is wrong.
        problems: Vec<SettingsProblem>,
    },
    /// A secret cannot be read.
    #[error("{0}")]
    Secret(String),
    /// The repository cannot be reached, or cannot be read whole. Nothing was changed.
    #[error("{message}")]
    Source {
        /// What happened.
        message: String,
        /// Whether it may be different the next time.
        retryable: bool,
    },
    /// A run would delete more than it may. Nothing was changed.
    #[error(
        "{deletes} of {entries} policies would be deleted, which is more than {percent_max}%; \
         nothing was changed"
    )]
    MassDelete {
        /// How many would be deleted.
        deletes: u64,
        /// How many there are.
        entries: u64,
        /// The most of them, in percent.
        percent_max: u8,
    },
    /// Another registry keeps its policies under the same keys.
    #[error(
        "the registry {other} keeps its policies under the same keys of this store; each would \
         delete what the other has"
    )]
    Occupied {
        /// The registry.
        other: String,
    },
    /// The request makes no sense as it is.
    #[error("{0}")]
    Invalid(String),
    /// There is no consumer of this name.
    #[error("the registry {registry} has no consumer {consumer:?}")]
    UnknownConsumer {
        /// The registry.
        registry: String,
        /// The name.
        consumer: String,
    },
    /// A consumer could not be told, or could not be put right.
    #[error("consumer {consumer}: {reason}")]
    Consumer {
        /// Its name.
        consumer: String,
        /// What happened.
        reason: String,
    },
    /// What is stored makes no sense.
    #[error("what the store keeps at {key} is not what a registry wrote: {reason}")]
    Damaged {
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::Queue(error) => error.code(),
            Self::Lock(error) => error.code(),
            Self::NeedsAtomic { .. } => Code::Unsupported,
            Self::Settings { .. } => Code::BadSettings,
            Self::Secret(_) => Code::NoSecret,
            Self::Source { .. } => Code::SourceFailed,
            Self::MassDelete { .. } => Code::MassDelete,
            Self::Occupied { .. } => Code::Occupied,
            Self::Invalid(_) => Code::Invalid,
            Self::UnknownConsumer { .. } => Code::UnknownConsumer,
            Self::Consumer { .. } => Code::ConsumerFailed,
            Self::Damaged { .. } => Code::Corrupt,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Store(error) => error.hint(),
            Self::Queue(error) => error.hint(),
            Self::Lock(LockError::Lost { .. }) => {
                "Another process goes on with the run, or the next one finishes it."
            }
            Self::Lock(error) => error.hint(),
            Self::NeedsAtomic { tier: Tier::Advisory, .. } => {
                "Name a coordinator for the store, or use one of the atomic tier, such as embedded."
            }
            Self::NeedsAtomic { .. } => {
                "Keep the registry in a store of the atomic tier, such as embedded."
            }
            Self::Source { retryable: false, .. } => {
                "Look at the repository, the branch and the credentials; nothing was changed."
            }
            Self::Occupied { .. } => "Give one of the two a prefix, or a store of its own.",
            Self::Damaged { .. } => "Look at the key, and delete it if nobody needs it.",
            _ => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.retryable(),
            Self::Queue(error) => error.retryable(),
            Self::Lock(error) => error.retryable(),
            Self::Source { retryable, .. } => *retryable,
            Self::Consumer { .. } => true,
            _ => false,
        }
    }
}

impl Error {
    pub(crate) fn damaged(key: impl ToString, reason: impl ToString) -> Self {
        Self::Damaged { key: key.to_string(), reason: reason.to_string() }
    }
}

fn told(problems: &[SettingsProblem]) -> String {
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    told.join("; ")
}
