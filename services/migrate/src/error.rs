use keyward_engine::Error as StoreError;
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
            Self::Refused(_) | Self::NoSource { .. } => "refused",
            Self::Overtaken { .. } | Self::Running { .. } => "overtaken",
            Self::Damaged(_) => "corrupt",
        }
    }

    /// What to do next, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Records(error) => error.hint(),
            Self::Refused(_) => "Change the migration or the schema; nothing was done.",
            Self::NoSource { .. } => {
                "Name a variable of the old key, or a field of the value; nothing was done."
            }
            Self::Overtaken { .. } => "Leave it to the other process, or end that one first.",
            Self::Running { .. } => {
                "Wait for its end, or end that process: a few seconds later, running this again goes on."
            }
            Self::Damaged(_) => "Look at the keys below system:migration.",
        }
    }
}
