//! The log as watchers read it, and how they learn of other processes' commits.

use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use heed::RoTxn;
use keyward_engine::{ChangeLog, Error, ErrorKind, LogSlice, Result, Revision};
use tokio::sync::watch;

use crate::commit::{latest_revision, revision_of};
use crate::engine::{Core, Shared};
use crate::environment::Environment;
use crate::error::{from_io, from_lmdb};
use crate::record;

/// How many commits, and about how many bytes of them, one read of the log gives at most.
const COMMITS_MAX: usize = 256;
const BYTES_MAX: usize = 1 << 20;
/// How often the store is looked at for other processes' commits while anyone watches.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Environment {
    /// The revision of the last commit, and the earliest that a watch can resume from.
    pub(crate) fn revisions(&self) -> Result<(Revision, Revision)> {
        self.revisions_in(&*self.read()?)
    }

    fn look(&self) -> Result<Look> {
        let txn = self.read()?;
        let (latest, _) = self.revisions_in(&txn)?;
        Ok(Look { transaction: txn.id(), latest })
    }

    fn revisions_in(&self, txn: &RoTxn<'_>) -> Result<(Revision, Revision)> {
        let latest = latest_revision(&self.tables, txn)?;
        let earliest = match self.tables.log.first(txn).map_err(failed)? {
            Some((key, _)) => revision_of(key)?.saturating_sub(1),
            None => latest,
        };
        Ok((Revision(latest), Revision(earliest)))
    }

    fn read_log(&self, after: Revision) -> Result<LogSlice> {
        let txn = self.read()?;
        let (latest, earliest) = self.revisions_in(&txn)?;
        if after < earliest || after > latest {
            return Ok(LogSlice::TooOld { earliest });
        }
        let start = after.0.to_be_bytes();
        let later = (Bound::Excluded(&start[..]), Bound::Unbounded);
        let mut commits = Vec::new();
        let mut bytes = 0;
        for row in self.tables.log.range(&txn, &later).map_err(failed)? {
            let (key, row) = row.map_err(failed)?;
            commits.push((Revision(revision_of(key)?), record::changes(row)?));
            bytes += row.len();
            if commits.len() == COMMITS_MAX || bytes >= BYTES_MAX {
                break;
            }
        }
        Ok(LogSlice::Commits(commits))
    }
}

/// What the lookout read.
struct Look {
    transaction: usize,
    latest: Revision,
}

fn failed(error: heed::Error) -> Error {
    from_lmdb("cannot read the log", error)
}

/// A watcher's view of the log. Keeps the store open.
pub(crate) struct Log {
    shared: Arc<Shared>,
    committed: watch::Receiver<Revision>,
}

impl Log {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.lookout.watch();
        let committed = shared.core.subscribe();
        Self { shared, committed }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.lookout.unwatch();
    }
}

impl ChangeLog for Log {
    async fn latest(&self) -> Result<Revision> {
        Ok(self.shared.core.environment.revisions()?.0)
    }

    async fn read(&self, after: Revision) -> Result<LogSlice> {
        self.shared.core.environment.read_log(after)
    }

    async fn wait(&mut self, after: Revision) -> Result<()> {
        let changed = self.committed.wait_for(|latest| *latest > after).await;
        changed.map(drop).map_err(|_| Error::new(ErrorKind::Unavailable, "the store was closed"))
    }
}

/// A thread that looks for other processes' commits while anyone watches, and sleeps otherwise.
pub(crate) struct Lookout {
    duty: Arc<Duty>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Duty {
    state: Mutex<DutyState>,
    changed: Condvar,
}

#[derive(Default)]
struct DutyState {
    watchers: usize,
    over: bool,
}

impl Lookout {
    pub(crate) fn start(core: Arc<Core>) -> Result<Self> {
        let duty = Arc::new(Duty::default());
        let on_duty = duty.clone();
        let thread = thread::Builder::new()
            .name("keyward-lookout".to_owned())
            .spawn(move || on_duty.run(&core))
            .map_err(|error| from_io("cannot start the lookout thread", &error))?;
        Ok(Self { duty, thread: Some(thread) })
    }

    fn watch(&self) {
        self.duty.change(|state| state.watchers += 1);
    }

    fn unwatch(&self) {
        self.duty.change(|state| state.watchers = state.watchers.saturating_sub(1));
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.duty.change(|state| state.over = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Duty {
    fn change(&self, how: impl FnOnce(&mut DutyState)) {
        how(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn run(&self, core: &Core) {
        let mut seen = None;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.over {
            if state.watchers == 0 {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(state);
            // The number of the last transaction lies in mapped memory: looking costs next to
            // nothing.
            let newest = core.environment.env.info().last_txn_id;
            if seen != Some(newest)
                && let Ok(read) = core.environment.look()
            {
                // What was read may be older than what was announced: LMDB announces a transaction
                // a moment before it can be read.
                seen = Some(read.transaction);
                core.committed(read.latest);
            }
            let again = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.changed.wait_timeout_while(again, LOOK_EVERY, |state| !state.over);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
