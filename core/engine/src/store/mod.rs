//! What callers use: an engine behind its limits.

mod guard;
mod list;
mod pace;
mod without;

use std::path::Path;
use std::sync::Arc;

use keyward_key::{Key, KeyRange};

pub use list::{List, Listed, Listing};

use crate::{
    BoxStream, Capabilities, Commit, DiskSpace, Engine, Entry, Error, ErrorKind, Event, Limits,
    Order, Outcome, Page, Put, Result, Revision, Scan, ScanOrder, Stats, Version,
};

/// A store: one keyspace on one engine. Cheap to clone.
///
/// Every request is checked here, against the engine's capabilities and this store's limits, before
/// the engine sees it; what is refused changes nothing.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use keyward_engine::{Json, Put, Store};
/// use keyward_key::Key;
///
/// let store = Store::new(keyward_memory::Memory::new());
/// let key = Key::parse("user:7:name")?;
/// store.put(key.clone(), Put::new(Json::parse(r#""Ada""#)?)).await?;
/// let entry = store.get(&key).await?.expect("it was just put");
/// assert_eq!(entry.value.as_str(), r#""Ada""#);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    limits: Limits,
}

impl Store {
    /// A store on an engine, with the engine's own limits.
    pub fn new(engine: impl Engine) -> Self {
        Self::from_arc(Arc::new(engine))
    }

    /// A store on a shared engine.
    pub fn from_arc(engine: Arc<dyn Engine>) -> Self {
        let limits = engine.capabilities().limits;
        Self { engine, limits }
    }

    /// The same store with limits that may be tighter, never wider, than the engine's.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = self.limits.tightened(limits);
        self
    }

    /// What the engine can do.
    pub fn capabilities(&self) -> &Capabilities {
        self.engine.capabilities()
    }

    /// Whether reads run on the thread that calls them: see [`Engine::reads_inline`].
    pub fn reads_inline(&self) -> bool {
        self.engine.reads_inline()
    }

    /// Whether [`Store::stats`] counts entries by reading all of them: see [`Engine::counts_by_reading`].
    pub fn counts_by_reading(&self) -> bool {
        self.engine.counts_by_reading()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What a key holds.
    pub async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        self.check_key(key)?;
        self.engine.get(key).await
    }

    /// What some keys hold, in the order of the keys. More keys than
    /// [`Limits::get_keys_max`] are read in several steps, each at its own moment.
    pub async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        for key in keys {
            self.check_key(key)?;
        }
        let mut entries = Vec::with_capacity(keys.len());
        for some in keys.chunks(self.limits.get_keys_max) {
            let read = self.engine.get_many(some).await?;
            pace::pause_after(pace::of_entries(some.len(), read.iter().flatten())).await;
            entries.extend(read);
        }
        Ok(entries)
    }

    /// One page of a range. A limit above [`Limits::scan_rows_max`] is lowered to it; the page's
    /// cursor says where to go on. A loop over pages yields to the runtime once in a while, also on
    /// engines that read on the calling thread.
    pub async fn scan(&self, scan: &Scan) -> Result<Page> {
        if scan.limit == 0 {
            return Err(Error::invalid("a scan needs a limit of at least one row"));
        }
        let unordered = self.capabilities().scan_order == ScanOrder::Unordered;
        if unordered && scan.order == Order::Descending {
            return Err(Error::unsupported(format!(
                "the {} engine keeps no key order, so it cannot scan downwards",
                self.capabilities().engine
            )));
        }
        if scan.limit > self.limits.scan_rows_max {
            let lowered = Scan { limit: self.limits.scan_rows_max, ..scan.clone() };
            return self.read_page(&lowered).await;
        }
        self.read_page(scan).await
    }

    /// One page of the engine, after which the thread may have to yield.
    async fn read_page(&self, scan: &Scan) -> Result<Page> {
        let page = self.engine.scan(scan).await?;
        pace::pause_after(pace::of_page(&page)).await;
        Ok(page)
    }

    /// Applies all writes of a commit if all its checks hold, else none.
    pub async fn commit(&self, commit: Commit) -> Result<Outcome> {
        self.check_commit(&commit)?;
        self.engine.commit(commit).await
    }

    /// Sets a key, whatever it held, and gives its new version.
    pub async fn put(&self, key: Key, put: Put) -> Result<Version> {
        let outcome = self.commit(Commit::new().put(key, put)).await?;
        let version = outcome.versions().and_then(|versions| versions.first()?.clone());
        version.ok_or_else(|| Error::new(ErrorKind::Internal, "a put without checks was refused"))
    }

    /// Removes a key; removing what is not there changes nothing.
    pub async fn delete(&self, key: Key) -> Result<()> {
        self.commit(Commit::new().delete(key)).await.map(drop)
    }

    /// What changes in a range after a revision, or from now on.
    pub fn watch(
        &self,
        range: KeyRange,
        since: Option<Revision>,
    ) -> BoxStream<'static, Result<Event>> {
        self.engine.watch(range, since)
    }

    /// Brings what a key holds to the store behind the engine, and says whether that store shows it; `None` if there is
    /// no such store. See [`Engine::push_through`].
    pub async fn push_through(&self, key: &Key) -> Result<Option<bool>> {
        self.engine.push_through(key).await
    }

    /// What the engine knows about its size, without reading everything.
    pub async fn stats(&self) -> Result<Stats> {
        self.engine.stats().await
    }

    /// Reads everything in a range and checks it, on engines that stand for their files themselves:
    /// before work that reads all of it anyway. Damage is an error of the kind `Corrupt`.
    pub async fn verify(&self, range: &KeyRange) -> Result<()> {
        self.engine.verify(range).await
    }

    /// How many entries have expired whose space is not reclaimed yet, if the engine can tell.
    pub async fn expired(&self) -> Result<Option<u64>> {
        self.engine.expired().await
    }

    /// Fails as [`ErrorKind::Full`] if the store has hardly any room left to grow, as far as the
    /// engine can tell without writing.
    pub async fn check_space(&self) -> Result<()> {
        self.engine.check_space().await
    }

    /// The disk space of the store, on engines that keep it on a disk of this machine.
    pub async fn disk_space(&self) -> Result<Option<DiskSpace>> {
        self.engine.disk_space().await
    }

    /// Writes a copy of the whole store, consistent at one moment while others write, into a new
    /// file, on engines that can.
    pub async fn backup(&self, file: &Path) -> Result<()> {
        self.engine.backup(file).await
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("engine", &self.capabilities().engine).finish()
    }
}
