use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a [`Source`](super::Source) is made of.
#[derive(Debug, Clone)]
pub struct Options {
    /// A path, or an address: `file://`, `https://`, `http://`, `git://`, `ssh://`, `user@host:path`.
    pub repository: String,
    /// The branch; `None` is what the repository's `HEAD` names.
    pub branch: Option<String>,
    /// The folder whose files are looked at; empty is the whole repository.
    pub folder: String,
    /// Globs of the files to take, on the path below the folder. ASCII case is ignored.
    pub include: Vec<String>,
    /// Globs of the files to leave out all the same.
    pub exclude: Vec<String>,
    /// What is shown to those who ask who we are.
    pub credentials: Credentials,
    /// A file with certificates (PEM) of authorities that are trusted besides those of the system.
    pub authority: Option<PathBuf>,
    /// The program for `ssh`.
    pub ssh: PathBuf,
    /// How much is taken.
    pub limits: Limits,
}

impl Options {
    /// All Markdown files but `README.md`, of the default branch, without credentials.
    pub fn new(repository: impl Into<String>) -> Self {
        Self {
            repository: repository.into(),
            branch: None,
            folder: String::new(),
            include: vec!["**/*.md".to_owned()],
            exclude: vec!["**/README.md".to_owned()],
            credentials: Credentials::None,
            authority: None,
            ssh: PathBuf::from("ssh"),
            limits: Limits::default(),
        }
    }
}

/// Bounds on what is taken from a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest file whose content is read.
    pub blob_bytes_max: u64,
    /// The most files that may be chosen; with more, the whole tree is refused.
    pub files_max: u64,
    /// The longest that a fetch may take.
    pub fetch_time_max: Duration,
    /// The most bytes that a fetch may bring, packed.
    pub fetch_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blob_bytes_max: 1 << 20,
            files_max: 200_000,
            fetch_time_max: Duration::from_secs(600),
            fetch_bytes_max: 4 << 30,
        }
    }
}

/// Who we say we are. Nothing of it is ever shown: not in errors, not in logs, not by `Debug`.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Nobody: what is open to everybody.
    #[default]
    None,
    /// A name and a password or token, over `https://`. The function is called for each fetch that is
    /// asked for them, so a secret is read when it is used; what it returns as an error is shown.
    Account(Arc<dyn Fn() -> Result<Account, String> + Send + Sync>),
    /// A file with a private key, for ssh.
    SshKey(PathBuf),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Account(_) => "Account(…)",
            Self::SshKey(_) => "SshKey(…)",
        })
    }
}

/// A name and what proves it.
#[derive(Clone)]
pub struct Account {
    /// The name. Hosts that take tokens mostly ignore it, but want one.
    pub username: String,
    /// The password or token.
    pub password: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account(…)")
    }
}
