use keyward_cache::Error as CacheError;
use keyward_engine::{Code, Coded, Error as StoreError, Tier};
use keyward_extract::Error as ExtractError;
use keyward_locks::Error as LockError;
use keyward_models::Error as ModelError;
use keyward_queue::Error as QueueError;

/// The result of an operation of a workspace.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A lock was refused, or was lost to another process.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A result could not be computed.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The queue of jobs refused or failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A file could not be made Markdown of.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// A model was not asked, or gave no answer that could be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The engine cannot write a record together with the fence of its lock.
    #[error(
        "a workspace needs commits of several keys, and the {engine} engine has the {tier} tier: \
         two people could change one issue at once"
    )]
    NeedsAtomic {
        /// The engine.
        engine: &'static str,
        /// Its tier.
        tier: Tier,
    },
    /// The store has what was made of the pages of another source.
    #[error(
        "this store has what was made of the pages of {other}; they would be taken for gone here, and \
         removed"
    )]
    Occupied {
        /// The other source.
        other: String,
    },
    /// Where pages come from cannot be reached, or cannot be read. Nothing was changed.
    #[error("{message}")]
    Source {
        /// What happened.
        message: String,
        /// Whether it may be different the next time.
        retryable: bool,
    },
    /// There is no such page: where pages come from was asked, and said so.
    #[error("there is no page {page}")]
    UnknownPage {
        /// The page.
        page: String,
    },
    /// The page has no such attachment.
    #[error("the page {page} has no policy {source_id}")]
    UnknownPolicy {
        /// The page.
        page: String,
        /// The policy.
        source_id: String,
    },
    /// The page has no such issue.
    #[error("the page {page} has no issue {issue}")]
    UnknownIssue {
        /// The page.
        page: String,
        /// The issue.
        issue: String,
    },
    /// An issue cannot go from its state to another one.
    #[error("the issue is {from}, and cannot become {to}; from there it can become {allowed}")]
    Transition {
        /// Its state.
        from: String,
        /// The state that was asked for.
        to: String,
        /// Those that can be asked for.
        allowed: String,
    },
    /// An issue was put away, and takes no change but to be brought back.
    #[error("the issue {issue} is archived; nothing of it can be changed until it is brought back")]
    Archived {
        /// The issue.
        issue: String,
    },
    /// Somebody else changed the issue meanwhile.
    #[error("the issue was changed meanwhile: {message}")]
    Moved {
        /// Who did what, and when.
        message: String,
    },
    /// The request makes no sense as it is.
    #[error("{0}")]
    Invalid(String),
    /// What is stored makes no sense.
    #[error("what the store keeps at {key} is not what a workspace wrote: {reason}")]
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
            Self::Lock(error) => error.code(),
            Self::Cache(error) => error.code(),
            Self::Queue(error) => error.code(),
            Self::Extract(error) => error.code(),
            Self::Model(error) => error.code(),
            Self::NeedsAtomic { .. } => Code::Unsupported,
            Self::Occupied { .. } => Code::Occupied,
            Self::Source { .. } => Code::SourceFailed,
            Self::UnknownPage { .. } => Code::UnknownPage,
            Self::UnknownPolicy { .. } => Code::UnknownPolicy,
            Self::UnknownIssue { .. } => Code::UnknownIssue,
            Self::Transition { .. } => Code::TransitionRefused,
            Self::Archived { .. } => Code::IssueArchived,
            Self::Moved { .. } => Code::IssueMoved,
            Self::Invalid(_) => Code::Invalid,
            Self::Damaged { .. } => Code::Corrupt,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Store(error) => error.hint(),
            Self::Lock(error) => error.hint(),
            Self::Cache(error) => error.hint(),
            Self::Queue(error) => error.hint(),
            Self::Extract(error) => error.hint(),
            Self::Model(error) => error.hint(),
            Self::NeedsAtomic { tier: Tier::Advisory, .. } => {
                "Name a coordinator for the store, or use one of the atomic tier, such as embedded."
            }
            Self::NeedsAtomic { .. } => {
                "Keep the workspace in a store of the atomic tier, such as embedded."
            }
            Self::Occupied { .. } => {
                "Use a store of its own; or delete the key system:agreements, if the pages have moved."
            }
            Self::Source { retryable: false, .. } => {
                "Look at the settings of the workspace; nothing was changed."
            }
            Self::Damaged { .. } => "Look at the key, and delete it if nobody needs it.",
            _ => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.retryable(),
            Self::Lock(error) => error.retryable(),
            Self::Cache(error) => error.retryable(),
            Self::Queue(error) => error.retryable(),
            Self::Extract(error) => error.retryable(),
            Self::Model(error) => error.retryable(),
            Self::Source { retryable, .. } => *retryable,
            _ => false,
        }
    }
}

impl Error {
    pub(crate) fn damaged(key: impl ToString, reason: impl ToString) -> Self {
        Self::Damaged { key: key.to_string(), reason: reason.to_string() }
    }
}
