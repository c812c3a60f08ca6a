use keyward_engine::{Code, Coded, Error as StoreError};
use keyward_records::Error as RecordsError;

/// The result of a migration.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a migration was refused, or stopped. What it had done is done, and running it again goes on
/// from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The records service refused or failed.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The migration makes no sense for this schema or store. Nothing was done.
    #[error("{0}")]
    Refused(String),
    /// The new key has a variable of which nobody says where it comes from. Nothing was done.
    #[error("the old key {from} has no variable {source_name} that {variable} could come from")]
    NoSource {
        /// The variable of the new key.
        variable: String,
        /// The variable of the old key that it would come from.
        source_name: String,
        /// The old pattern.
        from: String,
    },
    /// Another process goes on with the same migration.
    #[error("the migration {id} is being run by another process")]
    Overtaken {
        /// The migration.
        id: String,
    },
    /// Another run of the same migration, or of one about the same index, is alive.
    #[error("the migration {id} is being run by {by} since {since}")]
    Running {
        /// The migration.
        id: String,
        /// Who runs it.
        by: String,
        /// Since when.
        since: jiff::Timestamp,
    },
    /// What the store keeps about its migrations makes no sense.
    #[error("what the store keeps about its migrations is damaged: {0}")]
    Damaged(String),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Records(error) => error.code(),
            Self::Refused(_) | Self::NoSource { .. } => Code::Refused,
            Self::Overtaken { .. } | Self::Running { .. } => Code::Overtaken,
            Self::Damaged(_) => Code::Corrupt,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Records(error) => error.hint(),
            Self::NoSource { .. } => {
                "Name a variable of the old key, or a field of the value; nothing was done."
            }
            Self::Running { .. } => {
                "Wait for its end, or end that process: a few seconds later, running this again goes on."
            }
            Self::Damaged(_) => "Look at the keys below system:migration.",
            Self::Refused(_) | Self::Overtaken { .. } => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        matches!(self, Self::Records(error) if error.retryable())
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Records(error.into())
    }
}
