use std::path::Path;
use std::sync::Arc;
use std::thread;

use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Clock, Commit, DiskSpace, Engine, Entry, Error, ErrorKind,
    Event, Outcome, Page, Result, Revision, Scan, Stats, SystemClock, follow,
};
use keyward_key::{Key, KeyRange};
use tokio::sync::{oneshot, watch};

use crate::committer::Committer;
use crate::directory::{User, holds_store};
use crate::environment::Environment;
use crate::error::{from_io, from_lmdb};
use crate::history::{Log, Lookout};
use crate::holder::HolderRecord;
use crate::queue::Queue;
use crate::{Options, maintenance, place, registry};

/// A store in a directory. Clones share it; the last one dropped closes it, after what is queued
/// has been committed. If another process has the write lock and does not let go of it, closing
/// gives up what is queued after a second.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
}

/// An open store: what all handles of this process share.
pub(crate) struct Shared {
    // In this order: the threads end before the environment closes. A committer that is blocked
    // by another process is left behind with the core, which it closes when it ends.
    committer: Committer,
    pub(crate) lookout: Lookout,
    pub(crate) core: Arc<Core>,
}

/// What the threads of a store share with its handles.
pub(crate) struct Core {
    pub(crate) environment: Environment,
    pub(crate) queue: Queue,
    pub(crate) holder: HolderRecord,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) options: Options,
    capabilities: Capabilities,
    /// Tells watchers the revision of the last commit.
    committed: watch::Sender<Revision>,
    // Last: the environment is closed before we say that we are gone.
    _user: User,
}

impl Embedded {
    /// Opens the store in a directory, creating both if they do not exist. A store that this process
    /// already has open is shared. Blocks: it reads and may write files.
    pub fn open(directory: &Path, options: Options) -> Result<Self> {
        Self::open_with(directory, options, SystemClock)
    }

    /// Opens the store in a directory, unless there is none: then nothing is made.
    pub fn open_existing(directory: &Path, options: Options) -> Result<Option<Self>> {
        if holds_store(directory)? { Self::open(directory, options).map(Some) } else { Ok(None) }
    }

    /// [`Embedded::open`] with another clock. If the store is already open, its clock stays.
    pub fn open_with(directory: &Path, options: Options, clock: impl Clock) -> Result<Self> {
        Ok(Self { shared: registry::open(directory, options, Box::new(clock))? })
    }

    /// Does long work on the whole store, in a thread of its own.
    fn apart<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Environment) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let core = self.shared.core.clone();
        Box::pin(async move {
            let (done, result) = oneshot::channel();
            thread::Builder::new()
                .name(format!("keyward-{name}"))
                .spawn(move || {
                    let worked = work(&core.environment);
                    // Whoever has the answer can close the store.
                    drop(core);
                    // A caller that has gone away does not need it.
                    let _ = done.send(worked);
                })
                .map_err(|error| from_io(&format!("cannot start the {name} thread"), &error))?;
            result.await.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Internal, format!("the {name} stopped in the middle")))
            })
        })
    }
}

impl Shared {
    pub(crate) fn start(
        environment: Environment,
        holder: HolderRecord,
        user: User,
        options: Options,
        clock: Box<dyn Clock>,
    ) -> Result<Self> {
        let (latest, _) = environment.revisions()?;
        let core = Arc::new(Core {
            environment,
            queue: Queue::new(options.write_timeout),
            holder,
            clock,
            options,
            capabilities: options.capabilities(),
            committed: watch::Sender::new(latest),
            _user: user,
        });
        Ok(Self {
            committer: Committer::start(core.clone())?,
            lookout: Lookout::start(core.clone())?,
            core,
        })
    }
}

impl Core {
    /// Tells watchers that the store has come to a revision.
    pub(crate) fn committed(&self, latest: Revision) {
        self.committed.send_if_modified(|known| {
            let newer = latest > *known;
            *known = latest.max(*known);
            newer
        });
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Revision> {
        self.committed.subscribe()
    }

    fn stats(&self) -> Result<Stats> {
        let failed = |error| from_lmdb("cannot read the store's size", error);
        let (revision, earliest) = self.environment.revisions()?;
        let txn = self.environment.read()?;
        Ok(Stats {
            entries: self.environment.tables.entries.len(&txn).map_err(failed)?,
            bytes: Some(self.environment.env.real_disk_size().map_err(failed)?),
            revision: Some(revision),
            earliest_revision: Some(earliest),
        })
    }
}

/// Reads run where they are called: a read of mapped memory costs less than handing it to another
/// thread (`docs/decisions/0004-inline-reads.md`).
impl Engine for Embedded {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.core.capabilities
    }

    fn reads_inline(&self) -> bool {
        true
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Entry>>> {
        let core = &self.shared.core;
        Box::pin(async move { core.environment.get(key, &*core.clock) })
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        let core = &self.shared.core;
        Box::pin(async move { core.environment.get_many(keys, &*core.clock) })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        let core = &self.shared.core;
        Box::pin(async move { core.environment.scan(scan, &*core.clock) })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.shared.committer.commit(commit))
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        follow(Log::new(self.shared.clone()), range, since)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async move { self.shared.core.stats() })
    }

    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        let now_ms = self.shared.core.clock.now().as_millisecond();
        self.apart("count", move |environment| environment.expired(now_ms).map(Some))
    }

    fn check_space(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { place::refuse_full_disks(self.shared.core.environment.env.path()) })
    }

    fn disk_space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        Box::pin(async move {
            let env = &self.shared.core.environment.env;
            let failed = |error| from_lmdb("cannot read the store's size", error);
            let store_bytes = env.real_disk_size().map_err(failed)?;
            Ok(place::disk(env.path()).map(|(free_bytes, disk_bytes)| DiskSpace {
                store_bytes,
                free_bytes,
                disk_bytes,
            }))
        })
    }

    fn backup<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Result<()>> {
        let file = file.to_owned();
        self.apart("backup", move |environment| maintenance::backup(environment, &file))
    }

    fn verify<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        let range = range.clone();
        self.apart("verify", move |environment| environment.verify(&range))
    }
}
