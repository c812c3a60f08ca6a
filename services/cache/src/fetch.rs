use std::time::Duration;

use jiff::Timestamp;
use keyward_key::Key;
use keyward_locks::{LockPath, Root};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What a result is made of, as far as it tells whether the result is still good.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A version: results of any other are stale. Versions have no order, so two callers who ask for
    /// different ones in turn make each other's results stale.
    Version(String),
    /// When the source was last modified: results of an earlier state are stale.
    Modified(Timestamp),
    /// Nothing that changes: results are good until they expire.
    #[default]
    Constant,
}

impl Source {
    /// A version: a hash, a revision, an ETag.
    pub fn version(version: impl Into<String>) -> Self {
        Self::Version(version.into())
    }

    /// Whether what was made of this is good for someone who asks for `asked`.
    pub(crate) fn is_good_for(&self, asked: &Self) -> bool {
        match (self, asked) {
            (_, Self::Constant) => true,
            (Self::Modified(made_of), Self::Modified(asked)) => made_of >= asked,
            (made_of, asked) => made_of == asked,
        }
    }

    /// Whether this is a later state of the source than `asked`. Only times have an order.
    pub(crate) fn is_newer_than(&self, asked: &Self) -> bool {
        matches!((self, asked), (Self::Modified(made_of), Self::Modified(asked)) if made_of > asked)
    }
}

/// How a result is asked for.
///
/// ```
/// use std::time::Duration;
/// use keyward_cache::{Fetch, Source};
///
/// let fetch = Fetch::of(Source::version("sha-1")).ttl(Duration::from_secs(3_600));
/// assert_eq!(fetch.lease, Fetch::LEASE_DEFAULT);
/// ```
#[derive(Debug, Clone)]
pub struct Fetch {
    /// What the result is made of.
    pub source: Source,
    /// How long the result is good; `None` is until its source changes.
    pub ttl: Option<Duration>,
    /// Other cached keys that the result is made from: when one of them is dropped, so is this.
    pub depends_on: Vec<Key>,
    /// Where the computation is locked; `None` is a place of the cache's own.
    pub lock: Option<(Root, LockPath)>,
    /// How long after its death a computing process is taken over.
    pub lease: Duration,
    /// How long to wait for others who compute it.
    pub wait_max: Duration,
}

impl Fetch {
    /// The lease of a computation, when nothing else is said.
    pub const LEASE_DEFAULT: Duration = Duration::from_secs(30);
    /// How long to wait, when nothing else is said.
    pub const WAIT_DEFAULT: Duration = Duration::from_secs(300);
    const DEPENDS_ON_MAX: usize = 16;

    /// A result of a source.
    pub fn of(source: Source) -> Self {
        Self {
            source,
            ttl: None,
            depends_on: Vec::new(),
            lock: None,
            lease: Self::LEASE_DEFAULT,
            wait_max: Self::WAIT_DEFAULT,
        }
    }

    /// The same, good for so long only.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// The same, made from another cached key. If that key changes while the result is computed, the
    /// result is given to those who asked, but not cached. It need not be there before: the
    /// computation may ask for it.
    #[must_use]
    pub fn depends_on(mut self, key: Key) -> Self {
        self.depends_on.push(key);
        self
    }

    /// The same, computed under this lock, so that it also keeps away others who hold it.
    #[must_use]
    pub fn under(mut self, root: Root, path: LockPath) -> Self {
        self.lock = Some((root, path));
        self
    }

    /// The same with another lease.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// The same, waiting at most so long for others.
    #[must_use]
    pub fn wait_max(mut self, wait_max: Duration) -> Self {
        self.wait_max = wait_max;
        self
    }

    pub(crate) fn check(&self, key: &Key) -> Result<()> {
        if self.ttl == Some(Duration::ZERO) {
            return Err(Error::BadRequest("a ttl of zero would cache nothing".into()));
        }
        if self.depends_on.len() > Self::DEPENDS_ON_MAX {
            let (most, count) = (Self::DEPENDS_ON_MAX, self.depends_on.len());
            let message = format!("a result depends on at most {most} others, not {count}");
            return Err(Error::BadRequest(message));
        }
        if self.depends_on.contains(key) {
            return Err(Error::BadRequest(format!("{key} cannot depend on itself")));
        }
        Ok(())
    }
}

impl Default for Fetch {
    fn default() -> Self {
        Self::of(Source::default())
    }
}
