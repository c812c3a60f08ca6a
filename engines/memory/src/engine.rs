use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, ChangeLog, Clock, Commit, Engine, Entry, Event, LogSlice,
    Outcome, Page, Result, Revision, Scan, Stats, SystemClock, WatchSupport, follow,
};
use keyward_key::{Key, KeyRange};
use tokio::sync::Notify;

use crate::Options;
use crate::state::State;

/// A store in memory. Clones share it.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
}

struct Shared {
    capabilities: Capabilities,
    clock: Box<dyn Clock>,
    state: Mutex<State>,
    /// Tells watchers of commits, in the order in which they began to wait: a simulation on one
    /// thread is then the same every time.
    committed: Notify,
}

impl Memory {
    /// An empty store with every capability and the machine's clock.
    pub fn new() -> Self {
        Self::with(Options::default(), SystemClock)
    }

    /// An empty store with other options or another clock.
    pub fn with(options: Options, clock: impl Clock) -> Self {
        let shared = Shared {
            capabilities: options.capabilities(),
            clock: Box::new(clock),
            state: Mutex::new(State::new(options.history, options.lag())),
            committed: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A commit changes the state only after everything that can fail, so a panic elsewhere
        // leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeps_history(&self) -> bool {
        self.capabilities.watch == WatchSupport::Resumable
    }

    fn commit(&self, commit: Commit) -> Result<Outcome> {
        let mut state = self.state();
        // Read under the lock, so that commits and their clocks have one order.
        let outcome = state.commit(commit, self.clock.now())?;
        drop(state);
        self.committed.notify_waiters();
        Ok(match outcome {
            Outcome::Applied { versions, .. } if !self.keeps_history() => {
                Outcome::Applied { revision: None, versions }
            }
            outcome => outcome,
        })
    }
}

impl Engine for Memory {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    fn reads_inline(&self) -> bool {
        true
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async move {
            let state = self.shared.state();
            let now = self.shared.clock.now();
            Ok(keys.iter().map(|key| state.get(key, now)).collect())
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { Ok(self.shared.state().scan(scan, self.shared.clock.now())) })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move { self.shared.commit(commit) })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        if !self.shared.keeps_history() {
            return keyward_engine::cannot_watch(self.shared.capabilities.engine);
        }
        let log = Log { shared: self.shared.clone() };
        follow(log, range, since)
    }

    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        Box::pin(async move {
            let now = self.shared.clock.now();
            Ok(Some(self.shared.state().expired(now)))
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async move {
            let stats = self.shared.state().stats();
            Ok(if self.shared.keeps_history() {
                stats
            } else {
                Stats { revision: None, earliest_revision: None, ..stats }
            })
        })
    }
}

struct Log {
    shared: Arc<Shared>,
}

impl ChangeLog for Log {
    async fn latest(&self) -> Result<Revision> {
        Ok(self.shared.state().revision())
    }

    async fn read(&self, after: Revision) -> Result<LogSlice> {
        Ok(self.shared.state().read_log(after))
    }

    async fn wait(&mut self, after: Revision) -> Result<()> {
        // Counts from here on, also before it is polled.
        let committed = self.shared.committed.notified();
        if self.shared.state().revision() <= after {
            committed.await;
        }
        Ok(())
    }
}
