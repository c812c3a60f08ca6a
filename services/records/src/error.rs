use keyward_engine::{Code, Coded, Error as StoreError, ErrorKind};
use keyward_key::{BuildError, Key};
use keyward_schema::Mismatches;

/// The result of a record operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a record operation was refused or failed. Unless it is the store's own error, nothing was
/// changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The schema declares no such space.
    #[error("there is no space called {name:?}; there are {known}")]
    UnknownSpace {
        /// The name asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The space has no such index.
    #[error("the space {space} has no index called {index:?}; it has {known}")]
    UnknownIndex {
        /// The space.
        space: String,
        /// The name asked for.
        index: String,
        /// Those there are.
        known: String,
    },
    /// The index is declared, but cannot be asked yet.
    #[error("the index {index} cannot be used: {reason}")]
    IndexNotReady {
        /// The index.
        index: String,
        /// What it is doing instead.
        reason: &'static str,
    },
    /// The key does not have the shape of the space's keys.
    #[error("the key {key} does not belong to the space {space}, whose keys are {pattern}")]
    ForeignKey {
        /// The space.
        space: String,
        /// The key.
        key: Key,
        /// The space's pattern.
        pattern: String,
    },
    /// Values that make no key of the space.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The caller may not do this.
    #[error("refused in the space {space}: {rule}")]
    Forbidden {
        /// The space.
        space: String,
        /// The rule that refused it.
        rule: String,
    },
    /// Another record has the same values in a unique index.
    #[error("the unique index {index} already holds {values}{}", holder_text(holder))]
    UniqueClash {
        /// The index.
        index: String,
        /// The values that clash.
        values: String,
        /// The record that has them, told only to those who may see it.
        holder: Option<Key>,
    },
    /// The value is not what the space's schema says.
    #[error("the value does not fit the schema of the space {space}: {mismatches}")]
    SchemaMismatch {
        /// The space.
        space: String,
        /// How it differs.
        mismatches: Mismatches,
    },
    /// The value is larger than the space allows.
    #[error("the value is {bytes} bytes; the space {space} takes at most {bytes_max}")]
    ValueTooLarge {
        /// The space.
        space: String,
        /// The value's size.
        bytes: usize,
        /// The most the space takes.
        bytes_max: usize,
    },
    /// A field cannot be indexed as it is.
    #[error("the field {field} cannot be indexed by {index}: {reason}")]
    Unindexable {
        /// The index.
        index: String,
        /// The field.
        field: String,
        /// What is wrong with its value.
        reason: String,
    },
    /// The question makes no sense as it is asked.
    #[error("{0}")]
    BadQuery(String),
    /// Answering would mean reading everything.
    #[error("the space {space} would have to be read from end to end to answer this")]
    NeedsScan {
        /// The space.
        space: String,
    },
    /// The query read as much as it may before it could be answered.
    #[error(
        "the query used up its budget (entries read: {entries}) with {found} of up to {limit} records \
         found"
    )]
    TooExpensive {
        /// How many entries were read.
        entries: usize,
        /// How many records were found among them.
        found: usize,
        /// How many were asked for.
        limit: usize,
    },
    /// The cursor was not given for this question, to this caller, lately.
    #[error("this cursor cannot be used: {0}")]
    BadCursor(&'static str),
    /// Others changed the same records again and again.
    #[error("others kept changing {key} at the same time; gave up after {attempts} attempts")]
    Contended {
        /// The record.
        key: Key,
        /// How often it was tried.
        attempts: usize,
    },
    /// The change that was asked for cannot be made to this value.
    #[error("{0}")]
    BadChange(String),
    /// Checks of the [rider](crate::Space::with_rider) did not hold, whatever else did not; nothing
    /// was changed.
    #[error(
        "what was to be done together with the change cannot be: of its checks, {} did not hold",
        numbers(failed)
    )]
    RiderRefused {
        /// Those that did not hold, as indices into the rider's checks.
        failed: Vec<usize>,
    },
    /// What is kept about the records makes no sense.
    #[error("what the store keeps about its records is damaged: {0}")]
    Damaged(String),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::UnknownSpace { .. } => Code::UnknownSpace,
            Self::UnknownIndex { .. } => Code::UnknownIndex,
            Self::IndexNotReady { .. } => Code::IndexNotReady,
            Self::ForeignKey { .. } | Self::Build(_) => Code::KeyMismatch,
            Self::Forbidden { .. } => Code::Forbidden,
            Self::UniqueClash { .. } => Code::UniqueClash,
            Self::SchemaMismatch { .. } => Code::SchemaMismatch,
            Self::ValueTooLarge { .. } => Code::ValueTooLarge,
            Self::Unindexable { .. } => Code::Unindexable,
            Self::BadQuery(_) => Code::BadQuery,
            Self::NeedsScan { .. } => Code::NeedsScan,
            Self::TooExpensive { .. } => Code::TooExpensive,
            Self::BadCursor(_) => Code::BadCursor,
            Self::Contended { .. } => Code::Contended,
            Self::BadChange(_) => Code::BadChange,
            Self::RiderRefused { .. } => Code::RiderRefused,
            Self::Damaged(_) => Code::Corrupt,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Store(error) => error.hint(),
            Self::IndexNotReady { .. } => {
                "Build it with keyward migrate, or wait until it is built."
            }
            Self::Forbidden { .. } => "Ask as the owner, or for something that is shared.",
            Self::TooExpensive { .. } => {
                "Use a smaller radius, ask for fewer records, or query a box with within, which goes on \
                 page by page."
            }
            Self::Damaged(_) => "Run keyward doctor, and keep a copy of the store.",
            _ => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.retryable(),
            Self::Contended { .. } => true,
            _ => false,
        }
    }
}

fn holder_text(holder: &Option<Key>) -> String {
    holder.as_ref().map(|key| format!(", of the record {key}")).unwrap_or_default()
}

fn numbers(checks: &[usize]) -> String {
    checks.iter().map(|check| format!("number {check}")).collect::<Vec<_>>().join(", ")
}

impl Error {
    /// Whether it is about the record that was to be written: others can still be written.
    pub fn is_of_the_record(&self) -> bool {
        match self {
            Self::Store(error) => {
                matches!(error.kind(), ErrorKind::LimitExceeded | ErrorKind::Invalid)
            }
            Self::UniqueClash { .. }
            | Self::SchemaMismatch { .. }
            | Self::ValueTooLarge { .. }
            | Self::Unindexable { .. }
            | Self::ForeignKey { .. }
            | Self::Build(_)
            | Self::BadChange(_) => true,
            _ => false,
        }
    }
}
