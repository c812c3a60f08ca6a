use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use jiff::Timestamp;
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Clock, Commit, Cursor, DiskSpace, Engine, Entry, Event,
    ExpirySupport, Outcome, Page, Result, Revision, Scan, Stats,
};
use keyward_key::{Key, KeyRange};

use crate::layout;
use crate::work::Work;
use crate::{Options, capability};

/// A value store and a coordinator, together one atomic engine. The [crate] says how.
pub struct Coordinated {
    pub(crate) values: Arc<dyn Engine>,
    pub(crate) coordinator: Arc<dyn Engine>,
    pub(crate) options: Options,
    pub(crate) capabilities: Capabilities,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) work: Work,
}

impl Coordinated {
    /// Opens a value store with its coordinator.
    ///
    /// The first time, all keys of the value store are [adopted](Coordinated::adopt_new), which writes nothing there.
    /// Later, some of the work that earlier processes left is done; a value store that cannot be reached then does
    /// not fail the opening.
    ///
    /// Fails as [`Misplaced`](keyward_engine::ErrorKind::Misplaced) if the coordinator's engine cannot be one, or if
    /// the store was opened with another [`Options::keep`] before.
    pub async fn open(
        values: Arc<dyn Engine>,
        coordinator: Arc<dyn Engine>,
        options: Options,
        clock: impl Clock,
    ) -> Result<Self> {
        let capabilities = capability::combined(values.capabilities(), coordinator.capabilities())?;
        let (clock, work) = (Box::new(clock), Work::default());
        let opened = Self { values, coordinator, options, capabilities, clock, work };
        let is_new = opened.claim().await?;
        if is_new || opened.options.rescan {
            opened.adopt_new().await?;
            opened.note_adopted().await?;
        }
        opened.settle_some().await?;
        Ok(opened)
    }

    /// What a value store and a coordinator can do together. Nothing is opened to tell it.
    pub fn capabilities_of(
        values: &Capabilities,
        coordinator: &Capabilities,
    ) -> Result<Capabilities> {
        capability::combined(values, coordinator)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether a key stays in the coordinator, as it is.
    pub(crate) fn is_kept(&self, key: &Key) -> bool {
        self.options.keep.iter().any(|kept| {
            let mut segments = key.segments();
            kept.split(':').all(|kept| segments.next_is(kept))
        })
    }

    pub(crate) fn expiry_support(&self) -> ExpirySupport {
        self.values.capabilities().expiry
    }

    pub(crate) fn lag(&self) -> Duration {
        capability::lag(self.values.capabilities())
    }

    /// Reads any number of the coordinator's rows. Those of one step are of one moment.
    pub(crate) async fn rows(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        read_all(&*self.coordinator, keys).await
    }

    /// Reads any number of keys of the value store.
    pub(crate) async fn shown(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        read_all(&*self.values, keys).await
    }

    /// All keys of a range of the coordinator, page by page.
    pub(crate) async fn coordinator_keys(
        &self,
        range: KeyRange,
        after: Option<Cursor>,
    ) -> Result<(Vec<Key>, Option<Cursor>)> {
        let limit = self.coordinator.capabilities().limits.scan_rows_max.min(1_000);
        let page =
            self.coordinator.scan(&Scan::new(range).after(after).limit(limit).keys_only()).await?;
        Ok((page.rows.into_iter().map(|row| row.key).collect(), page.next))
    }

    async fn counted(&self) -> Result<Stats> {
        let stats = self.coordinator.stats().await?;
        let entries = match self.coordinator.expired().await? {
            Some(expired) => {
                let own = self.count(layout::reserved_range()).await?;
                stats.entries.saturating_sub(expired).saturating_sub(own)
            }
            None => {
                let mut entries = 0;
                for piece in layout::visible_pieces(&KeyRange::all(), Default::default()) {
                    entries += self.count(piece).await?;
                }
                entries
            }
        };
        // What the value store occupies is not known.
        Ok(Stats { entries, bytes: None, ..stats })
    }

    async fn count(&self, range: KeyRange) -> Result<u64> {
        let (mut count, mut after) = (0, None);
        loop {
            let (keys, next) = self.coordinator_keys(range.clone(), after).await?;
            count += keys.len() as u64;
            if next.is_none() {
                return Ok(count);
            }
            after = next;
        }
    }
}

async fn read_all(engine: &dyn Engine, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
    let mut entries = Vec::with_capacity(keys.len());
    for some in keys.chunks(engine.capabilities().limits.get_keys_max.max(1)) {
        entries.extend(engine.get_many(some).await?);
    }
    Ok(entries)
}

impl fmt::Debug for Coordinated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinated")
            .field("values", &self.values.capabilities().engine)
            .field("coordinator", &self.coordinator.capabilities().engine)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Engine for Coordinated {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.read_many(keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.read_page(scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.write(commit))
    }

    /// The coordinator's watch. Rows that belong to this engine are left out, and a commit of nothing else only moves
    /// the point to resume from.
    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        let events = self.coordinator.watch(range, since);
        Box::pin(events.map(|event| {
            Ok(match event? {
                Event::Changed { revision, mut changes } => {
                    changes.retain(|change| !layout::is_reserved(&change.key));
                    if changes.is_empty() {
                        Event::Reached(revision)
                    } else {
                        Event::Changed { revision, changes }
                    }
                }
                event => event,
            })
        }))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(self.counted())
    }

    fn verify<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        self.coordinator.verify(range)
    }

    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        self.coordinator.expired()
    }

    fn check_space(&self) -> BoxFuture<'_, Result<()>> {
        self.coordinator.check_space()
    }

    fn disk_space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        self.coordinator.disk_space()
    }
}
