use std::path::{Path, PathBuf};
use std::time::Duration;

/// What went wrong with a repository. Whatever it is, nothing was read in part: a tree is whole, or an
/// error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The options cannot work.
    #[error("{0}")]
    Options(String),
    /// Nobody answers, or the transfer broke off.
    #[error(
        "{repository} cannot be reached: {reason}. Nothing was changed; check the address and the network, and sync again"
    )]
    Unreachable {
        /// The address.
        repository: String,
        /// What the transport said.
        reason: String,
    },
    /// The other side wants credentials, or other ones.
    #[error(
        "{repository} refuses access: {reason}. Check the registry's credentials, and what they are allowed to read"
    )]
    Refused {
        /// The address.
        repository: String,
        /// What the other side said.
        reason: String,
    },
    /// There is no repository.
    #[error("there is no git repository at {repository}: {reason}. Check the address")]
    NoRepository {
        /// The address.
        repository: String,
        /// What was found instead.
        reason: String,
    },
    /// There is no such branch.
    #[error("{repository} has no branch {branch}. Set `branch` to one that it has")]
    NoBranch {
        /// The address.
        repository: String,
        /// The branch.
        branch: String,
    },
    /// There is nothing yet.
    #[error("{repository} has no commit on its default branch. Push one, or set `branch`")]
    Empty {
        /// The address.
        repository: String,
    },
    /// Something is missing or damaged.
    #[error(
        "{what} of {repository} cannot be read: {reason}. Nothing was changed; if it stays so, run `git fsck` there"
    )]
    Unreadable {
        /// The address.
        repository: String,
        /// Which object, or which path.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// More files than the registry takes.
    #[error(
        "{repository} has more than {files_max} files for this registry. Narrow `folder` or `include`, or raise `limits.files_max`"
    )]
    TooManyFiles {
        /// The address.
        repository: String,
        /// The bound.
        files_max: u64,
    },
    /// A tree that no one made in good faith.
    #[error("{repository} is refused: {reason}")]
    Hostile {
        /// The address.
        repository: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The repository sends more than is fetched.
    #[error(
        "{repository} sends more than {bytes_max} bytes, and no more is fetched. Nothing was changed; \
         keep policies in a repository without large files"
    )]
    TooLarge {
        /// The address.
        repository: String,
        /// The bound.
        bytes_max: u64,
    },
    /// The fetch took too long.
    #[error(
        "fetching {repository} took longer than {time_max:?}. Nothing was changed; sync again, or raise `limits.fetch_time_max`"
    )]
    TimedOut {
        /// The address.
        repository: String,
        /// The bound.
        time_max: Duration,
    },
    /// The cache cannot be written or read.
    #[error("the cache at {} cannot be used: {reason}. Check its permissions and the space on its disk", path.display())]
    Cache {
        /// Where it is.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// Nobody waits for the result any more.
    #[error("reading the repository was given up")]
    Cancelled,
}

/// What works, or an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the same may work later, with nobody changing a setting or the repository.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Cancelled)
    }

    pub(super) fn cache(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Cache { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// What gix says, from the outside to the cause, in one line of bounded length.
pub(super) fn told(error: &gix::Error) -> String {
    const CHARS_MAX: usize = 400;
    let mut parts: Vec<String> = Vec::new();
    for part in error.iter_errors() {
        let part = part.to_string();
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        // Wrappers often repeat what they wrap.
        if !part.is_empty() && !parts.iter().any(|said| said.contains(&part)) {
            parts.push(part);
        }
    }
    let told = parts.join(": ");
    match told.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &told[..end]),
        None => told,
    }
}
