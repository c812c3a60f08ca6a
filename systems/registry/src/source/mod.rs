//! Where policies come from: one branch of a git repository.
//!
//! A [`Source`] answers with what is in a commit, and never with part of it. A repository on this machine
//! is opened in place and read only; one on another is fetched, the newest commit of one branch without
//! its history, into a cache that is ours alone. No program of git is needed, no hook, filter or
//! configuration of anybody is obeyed, and nothing but the cache is written.

mod blobs;
mod cache;
mod choice;
mod compare;
mod declared;
mod error;
mod fetch;
mod interrupt;
mod location;
mod meter;
mod options;
mod transport;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use gix::ObjectId;

pub use error::{Error, Result};
pub use options::{Account, Credentials, Limits, Options};

use crate::Problem;
use blobs::Reader;
use cache::Cache;
use choice::Choice;
use compare::{Comparison, Failed};
use fetch::{Fetch, Fetched};
use interrupt::{Interrupt, Waiting};
use location::Location;

/// What is said of an object whose content has another id than the one it was asked for by.
const NOT_ITSELF: &str = "its content is not what its id says";

/// One branch of a repository. Cheap to clone; clones share what is open.
#[derive(Clone)]
pub struct Source {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    location: Location,
    cache: Option<Cache>,
    choice: Choice,
    open: Mutex<Option<gix::ThreadSafeRepository>>,
}

/// The chosen files of a commit: all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The commit.
    pub commit: String,
    /// Its files, in the order of their paths.
    pub files: Vec<TreeFile>,
    /// What the globs choose and cannot be a policy, and why.
    pub problems: Vec<Problem>,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// Its path, from the repository's root.
    pub path: String,
    /// The id of its content.
    pub sha: String,
}

/// What has changed from one commit to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The files that differ, in the order of their paths.
    pub files: Vec<FileChange>,
    /// The problems of the newer commit, of what has changed: all of them, if the older had none.
    pub problems: Vec<Problem>,
}

/// A file that is not the same in two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path, from the repository's root.
    pub path: String,
    /// The id of its content in the older commit, if it was a file there.
    pub old: Option<String>,
    /// The same in the newer one.
    pub new: Option<String>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blob {
    /// All of it.
    Content(Bytes),
    /// It has so many bytes, which is more than is taken, and was not read.
    TooLarge(u64),
}

impl Source {
    /// A source by its options. Touches nothing. The cache of a repository that has to be fetched is
    /// `{cache}/{registry}.git`; other registries can be beside it.
    pub fn new(registry: &str, options: Options, cache: &Path) -> Result<Self> {
        let is_plain = |c: char| !c.is_control() && !matches!(c, '/' | '\\');
        if registry.is_empty() || registry.starts_with('.') || !registry.chars().all(is_plain) {
            return Err(Error::Options(format!("{registry:?} cannot be the name of a registry")));
        }
        let location = Location::new(&options)?;
        let choice = Choice::new(&options)?;
        let cache = match &location {
            Location::Here(_) => None,
            Location::There(url) => Some(Cache::new(cache, registry, url)),
        };
        let shared = Shared { options, location, cache, choice, open: Mutex::new(None) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Brings the newest commit of the branch into reach, and gives its id, which is what the rest of a
    /// run goes by wherever the branch moves.
    ///
    /// A repository on this machine is only opened. From another only what is new is fetched; two
    /// processes with one cache fetch one after the other. Takes at most `fetch_time_max`. If it fails, or
    /// is dropped, the cache is as good as before.
    pub async fn fetch(&self) -> Result<String> {
        let waiting = Waiting::default();
        let time_max = self.shared.options.limits.fetch_time_max;
        match tokio::time::timeout(time_max, self.fetch_into_reach(&waiting)).await {
            Ok(fetched) => {
                let Fetched { repository, commit } = fetched?;
                *self.shared.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(repository);
                Ok(commit.to_hex().to_string())
            }
            Err(_) => {
                let repository = self.shared.options.repository.clone();
                Err(Error::TimedOut { repository, time_max })
            }
        }
    }

    async fn fetch_into_reach(&self, waiting: &Waiting) -> Result<Fetched> {
        let held = match &self.shared.cache {
            Some(cache) => Some(cache.hold().await?),
            None => None,
        };
        self.blocking(waiting, move |shared, interrupt| {
            let _held = held;
            match (&shared.location, &shared.cache) {
                (Location::There(url), Some(cache)) => {
                    Fetch { url, options: &shared.options, cache, interrupt }.run()
                }
                (Location::Here(path), _) => fetch::here(path, &shared.options),
                (Location::There(_), None) => Err(Error::Cancelled),
            }
        })
        .await
    }

    /// The chosen files of a commit that is in reach: all, or an error.
    pub async fn tree(&self, commit: &str) -> Result<Tree> {
        let commit = commit.to_owned();
        self.reading(move |shared, repository, interrupt| {
            let repository = repository.to_thread_local();
            let id = shared.commit_id(&commit, &repository)?;
            let compared = match shared.comparison(&repository, interrupt).run(None, id) {
                Ok(compared) => compared,
                Err(Failed::Error(error)) => return Err(error),
                Err(Failed::OldIsGone) => return Err(shared.not_there(&commit)),
            };
            let files = compared.files.into_iter();
            let files = files.filter_map(|file| Some(TreeFile { path: file.path, sha: file.new? }));
            Ok(Tree { commit, files: files.collect(), problems: compared.problems })
        })
        .await
    }

    /// The chosen files that differ between two commits, found by comparing trees: folders that are equal
    /// are not looked into. `None` if the older commit is not in reach; then there is only the whole tree.
    pub async fn changes(&self, from: &str, to: &str) -> Result<Option<Changes>> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.reading(move |shared, repository, interrupt| {
            let repository = repository.to_thread_local();
            let Ok(old) = shared.commit_id(&from, &repository) else { return Ok(None) };
            let new = shared.commit_id(&to, &repository)?;
            match shared.comparison(&repository, interrupt).run(Some(old), new) {
                Ok(compared) => {
                    Ok(Some(Changes { files: compared.files, problems: compared.problems }))
                }
                Err(Failed::OldIsGone) => Ok(None),
                Err(Failed::Error(error)) => Err(error),
            }
        })
        .await
    }

    /// The contents of blobs, in the order of their ids. Read by several threads; all are in memory at
    /// once, so ask for a batch at a time. One that is missing or damaged is an error.
    pub async fn blobs(&self, shas: Vec<String>) -> Result<Vec<Blob>> {
        self.reading(move |shared, repository, interrupt| {
            let kind = repository.to_thread_local().object_hash();
            let ids = shas.iter().map(|sha| {
                id_of(sha, kind).ok_or_else(|| shared.not_there(&format!("blob {sha}")))
            });
            let ids = ids.collect::<Result<Vec<_>>>()?;
            shared.reader(repository, interrupt).all(&ids)
        })
        .await
    }

    /// The content of one blob; `None` if the repository has no such blob (any more). One that is larger
    /// than `blob_bytes_max` is an error.
    pub async fn blob(&self, sha: &str) -> Result<Option<Bytes>> {
        let wanted = sha.to_owned();
        let read = self.reading(move |shared, repository, interrupt| {
            let kind = repository.to_thread_local().object_hash();
            match id_of(&wanted, kind) {
                Some(id) => shared.reader(repository, interrupt).one(id),
                None => Ok(None),
            }
        });
        match read.await? {
            Some(Blob::Content(content)) => Ok(Some(content)),
            Some(Blob::TooLarge(bytes)) => Err(Error::Unreadable {
                repository: self.shared.options.repository.clone(),
                what: format!("blob {sha}"),
                reason: format!("it has {bytes} bytes, more than `limits.blob_bytes_max`"),
            }),
            None => Ok(None),
        }
    }

    /// Reads from the repository, which is opened if it is not open: a cache that is not there is
    /// fetched.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Shared, &gix::ThreadSafeRepository, &Interrupt) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let waiting = Waiting::default();
        let is_open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if !is_open && !self.blocking(&waiting, |shared, _| Ok(shared.opened().is_some())).await? {
            self.fetch().await?;
        }
        self.blocking(&waiting, move |shared, interrupt| {
            let repository = shared.opened().ok_or_else(|| shared.not_there("the repository"))?;
            let read = read(shared, &repository, interrupt);
            if let (Err(Error::Unreadable { .. }), Some(cache)) = (&read, &shared.cache) {
                cache.distrust();
            }
            read
        })
        .await
    }

    /// Does what blocks on a thread that may.
    async fn blocking<T: Send + 'static>(
        &self,
        waiting: &Waiting,
        work: impl FnOnce(&Shared, &Arc<Interrupt>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (shared, interrupt) = (self.shared.clone(), waiting.interrupt());
        match tokio::task::spawn_blocking(move || work(&shared, &interrupt)).await {
            Ok(done) => done,
            Err(error) if error.is_panic() => Err(Error::Unreadable {
                repository: self.shared.options.repository.clone(),
                what: "an object".to_owned(),
                reason: "the reader panicked over it".to_owned(),
            }),
            Err(_) => Err(Error::Cancelled),
        }
    }
}

impl Shared {
    fn opened(&self) -> Option<gix::ThreadSafeRepository> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            *open = match (&self.location, &self.cache) {
                (_, Some(cache)) => cache.open(),
                (Location::Here(path), None) => cache::open_isolated(path).ok(),
                (Location::There(_), None) => None,
            };
        }
        open.clone()
    }

    fn comparison<'a>(
        &'a self,
        repository: &'a gix::Repository,
        interrupt: &'a Interrupt,
    ) -> Comparison<'a> {
        let Options { repository: shown, limits, .. } = &self.options;
        Comparison::new(repository, shown, &self.choice, limits.files_max, interrupt.flag())
    }

    fn reader<'a>(
        &'a self,
        repository: &'a gix::ThreadSafeRepository,
        interrupt: &'a Interrupt,
    ) -> Reader<'a> {
        let Options { repository: shown, limits, .. } = &self.options;
        let (blob_bytes_max, interrupt) = (limits.blob_bytes_max, interrupt.flag());
        Reader { repository, shown, blob_bytes_max, interrupt }
    }

    fn commit_id(&self, commit: &str, repository: &gix::Repository) -> Result<ObjectId> {
        id_of(commit, repository.object_hash())
            .ok_or_else(|| self.not_there(&format!("commit {commit}")))
    }

    fn not_there(&self, what: &str) -> Error {
        let (repository, what) = (self.options.repository.clone(), what.to_owned());
        Error::Unreadable { repository, what, reason: "it is not there".to_owned() }
    }
}

/// An id of a repository's kind; others cannot be in it.
fn id_of(sha: &str, kind: gix::hash::Kind) -> Option<ObjectId> {
    ObjectId::from_hex(sha.as_bytes()).ok().filter(|id| id.kind() == kind)
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("options", &self.shared.options).finish_non_exhaustive()
    }
}
