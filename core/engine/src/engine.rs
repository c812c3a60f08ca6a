use std::path::Path;
use std::pin::Pin;

use futures_core::Stream;
use futures_util::stream;
use keyward_key::{Key, KeyRange};

use crate::{
    Capabilities, Commit, Entry, Error, ErrorKind, Event, Outcome, Page, Result, Revision, Scan,
};

/// A future as engines return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A stream as engines return it.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

/// A database, as an adapter presents it.
///
/// An engine is dumb: [`Store`](crate::Store) has already refused everything beyond its
/// [`Capabilities`], so an engine checks no sizes and knows no tenants, indexes or locks. What every
/// engine must show is written down as tests in `keyward-testkit`.
///
/// Reads and commits may be cancelled by dropping their future. A read then has no effect; a commit
/// may or may not be applied, but never in part.
pub trait Engine: Send + Sync + 'static {
    /// What this engine can do.
    fn capabilities(&self) -> &Capabilities;

    /// What tells this store from every other one: the same for everybody who opens it, and not a secret. For example
    /// `cloudflare-kv://ACCOUNT/NAMESPACE`. `None` if the engine does not know.
    fn store_id(&self) -> Option<String> {
        None
    }

    /// Whether reads run to their end on the thread that polls them, as they do where data lies in
    /// memory. Programs that serve many callers run long reads of such an engine on threads of their
    /// own; reads of other engines wait without holding up a thread.
    fn reads_inline(&self) -> bool {
        false
    }

    /// Whether [`Engine::stats`] counts entries by reading or listing all of them, which takes long and may be billed.
    fn counts_by_reading(&self) -> bool {
        false
    }

    /// The entry of one key. Only a shorter way to say [`Engine::get_many`], for engines that have
    /// one.
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Entry>>> {
        let keys = std::slice::from_ref(key);
        Box::pin(async move { Ok(self.get_many(keys).await?.pop().flatten()) })
    }

    /// The entries of some keys at one moment, in the order of the keys: a commit of several keys is
    /// seen whole or not at all. Expired entries are absent.
    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>>;

    /// One page of a range. Rows that do not change while a scan pages on appear exactly once.
    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>>;

    /// Applies all writes if all checks hold, else none. Acknowledged means durable, as far as
    /// [`Capabilities::durability`] says.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>>;

    /// What changes in a range after a revision, or from now on. A slow watcher never holds up a
    /// writer: if it falls too far behind, it is told so.
    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        let _ = (range, since);
        cannot_watch(self.capabilities().engine)
    }

    /// Brings what a key holds to the store behind this engine, and says whether that store shows it. Waits as long as
    /// its reads may be late. For engines whose commits are acknowledged before the values are where others read them.
    /// `None` if there is no such store, or if the key never goes there. What that store refuses is an error.
    fn push_through<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<bool>>> {
        let _ = key;
        Box::pin(async { Ok(None) })
    }

    /// What the engine knows about its size. See [`Engine::counts_by_reading`].
    fn stats(&self) -> BoxFuture<'_, Result<Stats>>;

    /// Reads everything in a range and checks it, as far as the engine itself stands for what it
    /// stored. Damage is an error of the kind [`ErrorKind::Corrupt`]. Engines whose database checks
    /// what it reads have nothing to do.
    fn verify<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        let _ = range;
        Box::pin(async { Ok(()) })
    }

    /// How many entries have expired whose space is not reclaimed yet, if the engine can tell. Engines
    /// reclaim some with every commit, so the number is usually small and falls by itself.
    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        Box::pin(async { Ok(None) })
    }

    /// Fails as [`ErrorKind::Full`] if the store has hardly any room left to grow, as far as the
    /// engine can tell without writing. Small commits may succeed all the same.
    fn check_space(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// The disk space of the store, on engines that keep it on a disk of this machine. Cheap: nothing
    /// is counted.
    fn disk_space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        Box::pin(async { Ok(None) })
    }

    /// Writes a copy of the whole store, consistent at one moment while others write, into a
    /// new file.
    fn backup<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Result<()>> {
        let _ = file;
        let engine = self.capabilities().engine;
        Box::pin(async move {
            Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the {engine} engine makes no backups of its own; use export, or the database's own tools"
                ),
            ))
        })
    }
}

/// What an engine knows about its size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Entries, including expired ones whose space is not reclaimed yet. Exact; some engines have to
    /// count them.
    pub entries: u64,
    /// Bytes that the store occupies, if known.
    pub bytes: Option<u64>,
    /// The revision of the last commit, on engines that keep a history.
    pub revision: Option<Revision>,
    /// The earliest revision that a watch can resume from.
    pub earliest_revision: Option<Revision>,
}

/// The disk space of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that the store occupies.
    pub store_bytes: u64,
    /// Bytes that are free on its file system, for this account.
    pub free_bytes: u64,
    /// Bytes of its file system.
    pub disk_bytes: u64,
}

/// The watch of an engine that cannot: an error, and nothing after it.
pub fn cannot_watch(engine: &str) -> BoxStream<'static, Result<Event>> {
    let message = format!("the {engine} engine cannot watch for changes");
    let refused = Err(Error::new(ErrorKind::Unsupported, message));
    Box::pin(stream::iter([refused]))
}
