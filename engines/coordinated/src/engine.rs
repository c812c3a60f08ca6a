use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt;
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Clock, Commit, DiskSpace, Engine, Entry, Event, Outcome,
    Page, Result, Revision, Scan, Stats,
};
use keyward_key::{Key, KeyRange};
use tokio::task::AbortHandle;

use crate::shared::Shared;
use crate::{Adopted, Options, Settled, capability, layout, tasks};

/// A value store and a coordinator, together one atomic engine. The [crate] says how.
///
/// While it is open, a task on the runtime that opened it pushes and settles what is due. The task ends with the
/// engine. Without a runtime there is no such task, and commits wait for their pushes.
pub struct Coordinated {
    shared: Arc<Shared>,
    background: Option<AbortHandle>,
}

impl Coordinated {
    /// Opens a value store with its coordinator.
    ///
    /// The first time, all keys of the value store are [adopted](Coordinated::adopt_new), which writes nothing there.
    /// Later, values that earlier processes could not push are pushed, and some rows are settled. A value store that
    /// is out of reach, or too slow, then does not fail the opening.
    ///
    /// Fails as [`Misplaced`](keyward_engine::ErrorKind::Misplaced) if the coordinator's engine cannot be one, if the
    /// coordinator belongs to another value store (by its [`Engine::store_id`]), or if the store was opened with
    /// another [`Options::keep`] before.
    pub async fn open(
        values: Arc<dyn Engine>,
        coordinator: Arc<dyn Engine>,
        options: Options,
        clock: impl Clock,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::new(values, coordinator, options, clock)?);
        shared.claim_and_adopt().await?;
        shared.catch_up().await?;
        let background = tasks::start(&shared);
        Ok(Self { shared, background })
    }

    /// What a value store and a coordinator can do together. Nothing is opened to tell it.
    pub fn capabilities_of(
        values: &Capabilities,
        coordinator: &Capabilities,
    ) -> Result<Capabilities> {
        capability::combined(values, coordinator)
    }

    /// Lists the value store to find keys that other programs added or removed, and brings the coordinator up to date.
    /// Writes nothing to the value store; values are read when somebody asks for them.
    ///
    /// Changes to values need no listing: they are noticed when a key is read. Keys whose first segment
    /// [stays in the coordinator](crate::Options::keep) are only copied until adoption is complete.
    ///
    /// Holds the listed keys in memory. Safe to interrupt, and to run in several processes at once.
    pub async fn adopt_new(&self) -> Result<Adopted> {
        self.shared.adopt_new().await
    }

    /// Pushes everything that the value store does not have yet, and drops the coordinator's copy of every value that
    /// it is certain to show. Safe to call at any time, by several processes at once, and to interrupt.
    ///
    /// Commits and the background task do a part of this on the way. Fails if one of the two stores cannot be
    /// reached; what was done until then stays done.
    pub async fn settle(&self) -> Result<Settled> {
        self.shared.settle().await
    }
}

impl Drop for Coordinated {
    fn drop(&mut self) {
        if let Some(background) = &self.background {
            background.abort();
        }
    }
}

impl fmt::Debug for Coordinated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl Engine for Coordinated {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    fn counts_by_reading(&self) -> bool {
        self.shared.coordinator.counts_by_reading()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.shared.read_many(keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.shared.read_page(scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.shared.write(commit))
    }

    /// The coordinator's watch. Rows that belong to this engine are left out, and a commit of nothing else only moves
    /// the point to resume from.
    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        let events = self.shared.coordinator.watch(range, since);
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

    /// Sends the value if the value store does not have it yet, and reads it back.
    fn push_through<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<bool>>> {
        Box::pin(self.shared.push_through(key))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(self.shared.counted())
    }

    fn verify<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        self.shared.coordinator.verify(range)
    }

    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        self.shared.coordinator.expired()
    }

    fn check_space(&self) -> BoxFuture<'_, Result<()>> {
        self.shared.coordinator.check_space()
    }

    fn disk_space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        self.shared.coordinator.disk_space()
    }
}
