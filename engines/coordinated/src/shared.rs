//! What a coordinated store consists of. The tasks beside it hold it too.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{
    Capabilities, Clock, Cursor, Engine, Entry, ExpirySupport, Result, Scan, Stats,
};
use keyward_key::{Key, KeyRange};
use tokio::sync::Semaphore;

use crate::tasks::PUSHES_MAX;
use crate::work::Work;
use crate::{Options, capability, layout};

/// The two stores, and what this process knows it has to do.
pub(crate) struct Shared {
    pub values: Arc<dyn Engine>,
    pub coordinator: Arc<dyn Engine>,
    pub options: Options,
    pub capabilities: Capabilities,
    pub clock: Box<dyn Clock>,
    pub work: Arc<Work>,
    /// Permits for pushes beside commits.
    pub pushes: Arc<Semaphore>,
    /// Whether a task tends keys now. One is enough, and more would pile up when the value store hangs.
    pub tending: AtomicBool,
    /// When to list the value store again, while its adoption is not complete.
    relist_at: Mutex<Option<Timestamp>>,
}

impl Shared {
    pub fn new(
        values: Arc<dyn Engine>,
        coordinator: Arc<dyn Engine>,
        options: Options,
        clock: impl Clock,
    ) -> Result<Self> {
        let capabilities = capability::combined(values.capabilities(), coordinator.capabilities())?;
        Ok(Self {
            values,
            coordinator,
            options,
            capabilities,
            clock: Box::new(clock),
            work: Arc::default(),
            pushes: Arc::new(Semaphore::new(PUSHES_MAX)),
            tending: AtomicBool::new(false),
            relist_at: Mutex::default(),
        })
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether a key stays in the coordinator because of its name.
    pub fn is_kept(&self, key: &Key) -> bool {
        self.options.keep.iter().any(|kept| {
            let mut segments = key.segments();
            kept.split(':').all(|kept| segments.next_is(kept))
        })
    }

    pub fn expiry_support(&self) -> ExpirySupport {
        self.values.capabilities().expiry
    }

    pub fn lag(&self) -> Duration {
        capability::lag(self.values.capabilities())
    }

    /// The moment when everything written until `at` is visible in the value store.
    pub fn visible_at(&self, at: Timestamp) -> Timestamp {
        at.saturating_add(self.lag()).unwrap_or(Timestamp::MAX)
    }

    /// Plans the next listing of a value store whose adoption is not complete.
    pub fn relist_at(&self, at: Option<Timestamp>) {
        *self.relist_at.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Whether a listing is due.
    pub fn is_relisting_due(&self) -> bool {
        let planned = self.relist_at.lock().unwrap_or_else(PoisonError::into_inner);
        planned.is_some_and(|at| at <= self.now())
    }

    /// Takes the planned listing, if it is due.
    pub fn take_relisting(&self, now: Timestamp) -> bool {
        let mut planned = self.relist_at.lock().unwrap_or_else(PoisonError::into_inner);
        planned.take_if(|at| *at <= now).is_some()
    }

    /// Reads any number of the coordinator's rows. Those of one step are of one moment.
    pub async fn rows(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        read_all(&*self.coordinator, keys).await
    }

    /// Reads any number of keys of the value store.
    pub async fn shown(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        read_all(&*self.values, keys).await
    }

    /// A page of the keys of a range of the coordinator.
    pub async fn coordinator_keys(
        &self,
        range: KeyRange,
        after: Option<Cursor>,
    ) -> Result<(Vec<Key>, Option<Cursor>)> {
        let limit = self.coordinator.capabilities().limits.scan_rows_max.min(1_000);
        let page =
            self.coordinator.scan(&Scan::new(range).after(after).limit(limit).keys_only()).await?;
        Ok((page.rows.into_iter().map(|row| row.key).collect(), page.next))
    }

    pub async fn counted(&self) -> Result<Stats> {
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

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinated")
            .field("values", &self.values.capabilities().engine)
            .field("coordinator", &self.coordinator.capabilities().engine)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
