//! The cache of a repository that is on another machine: a bare repository that holds the newest commits
//! that were fetched, each without its history.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Error, Result};

/// With more packs than this, the cache is made anew: so it does not grow with every commit for ever.
const PACKS_MAX: usize = 50;
/// A file in the cache that says what it is a cache of. Without it, it is not trusted.
const MARK: &str = "keyward-source";
/// How long to wait before looking again whether another process has ended its fetch.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Where the cache of one registry is. What is there is a repository that was fetched whole, or nothing.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: PathBuf,
    registry: String,
    mark: String,
}

/// Held by the only one who changes a cache. Let go when it is dropped, also by a process that ends.
pub(super) struct Held(#[allow(dead_code, reason = "held for its lock")] File);

impl Cache {
    pub(super) fn new(folder: &Path, registry: &str, url: &gix::Url) -> Self {
        let mark = format!("{}\n", url.to_bstring());
        Self { folder: folder.to_owned(), registry: registry.to_owned(), mark }
    }

    /// Where the repository is.
    pub(super) fn path(&self) -> PathBuf {
        self.beside("git")
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.registry))
    }

    /// Waits until nobody else fetches into the cache, this process or another.
    pub(super) async fn hold(&self) -> Result<Held> {
        let path = self.beside("lock");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|error| Error::cache(&self.folder, error))?;
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| Error::cache(&path, error))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Held(file)),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_RETRY).await,
                Err(TryLockError::Error(error)) => return Err(Error::cache(&path, error)),
            }
        }
    }

    /// The cache, if there is one that can be used.
    pub(super) fn open(&self) -> Option<gix::ThreadSafeRepository> {
        let path = self.path();
        if fs::read_to_string(path.join(MARK)).ok()? != self.mark {
            return None;
        }
        open_isolated(&path).ok()
    }

    /// Whether it is time to make it anew.
    pub(super) fn is_worn(&self) -> bool {
        let Ok(files) = fs::read_dir(self.path().join("objects/pack")) else { return true };
        // A pack has an index beside it; a killed fetch leaves files that are neither.
        files.take(2 * PACKS_MAX + 1).count() > 2 * PACKS_MAX
    }

    /// Says that something in the cache cannot be read: the next fetch makes it anew.
    pub(super) fn distrust(&self) {
        drop(fs::remove_file(self.path().join(MARK)));
    }

    /// An empty repository beside the cache, to be fetched into and put in its place.
    pub(super) fn fresh(&self, format: gix::hash::Kind) -> Result<gix::ThreadSafeRepository> {
        let path = self.beside("new");
        remove(&path)?;
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| Error::cache(&path, error))?;
        let options =
            gix::create::Options { object_hash: Some(format), ..gix::create::Options::default() };
        gix::ThreadSafeRepository::init_opts(&path, gix::create::Kind::Bare, options, isolated())
            .map_err(|error| Error::cache(&path, super::error::told(&error)))
    }

    /// Puts what was fetched into the fresh repository in the place of the cache.
    pub(super) fn put_in_place(&self) -> Result<gix::ThreadSafeRepository> {
        let (new, path, old) = (self.beside("new"), self.path(), self.beside("old"));
        let failed = |error: std::io::Error| Error::cache(&path, error);
        fs::write(new.join(MARK), &self.mark).map_err(failed)?;
        remove(&old)?;
        match fs::rename(&path, &old) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        fs::rename(&new, &path).map_err(failed)?;
        remove(&old)?;
        open_isolated(&path).map_err(|error| Error::cache(&path, super::error::told(&error)))
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::cache(path, error)),
        _ => Ok(()),
    }
}

/// Opens a repository so that only what it must say of its own format is taken from its configuration.
pub(super) fn open_isolated(path: &Path) -> gix::Result<gix::ThreadSafeRepository> {
    gix::ThreadSafeRepository::open_opts(path, isolated())
}

fn isolated() -> gix::open::Options {
    gix::open::Options::isolated().config_overrides([
        // An object is what its id says, not what `refs/replace` makes of it.
        "core.useReplaceRefs=false",
        // A small pack can hold what unpacks to more than there is memory.
        "gitoxide.objects.allocLimit=1073741824",
    ])
}
