//! Group commit: one thread takes what is queued, makes one transaction with one sync of it, and
//! then answers.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use heed::RwTxn;
use keyward_engine::{Commit, Error, ErrorKind, Outcome, Result, Revision};
use tokio::sync::{Semaphore, oneshot};

use crate::commit::{Failure, Transaction};
use crate::engine::Core;
use crate::error::{from_io, from_lmdb};
use crate::place;
use crate::queue::{Refused, Request};

/// How many kibibytes of commits may wait in the queue; each counts as one at least.
const QUEUE_KIB_MAX: u32 = 256 << 10;
/// How many expired entries a transaction reclaims, if there are so many; more when more are added.
const RECLAIMED_MIN: usize = 64;
/// After how many transactions the slots of dead readers are cleared again.
const CLEAR_READERS_EVERY: u32 = 256;

/// The way to the committer thread, which writes what is queued, and to the watchdog, which gives
/// up what has waited too long.
pub(crate) struct Committer {
    core: Arc<Core>,
    space: Arc<Semaphore>,
    committer: Option<JoinHandle<()>>,
    watchdog: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the threads.
    pub(crate) fn start(core: Arc<Core>) -> Result<Self> {
        let space = Arc::new(Semaphore::new(QUEUE_KIB_MAX as usize));
        let worker = Worker { core: core.clone(), transactions: 0 };
        let watched = core.clone();
        // Dropped half started, it ends the thread that it has.
        let mut started = Self { core, space, committer: None, watchdog: None };
        started.committer = Some(spawn("keyward-commit", move || worker.run())?);
        started.watchdog = Some(spawn("keyward-watchdog", move || give_up_overdue(&watched))?);
        Ok(started)
    }

    /// Queues a commit and waits for its outcome. If its turn does not come in time, nothing was
    /// done.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Outcome> {
        // It stops only by a fault: the store is of no use until it is opened again.
        let stopped = || Error::new(ErrorKind::Internal, "the store's committer has stopped");
        let asked = Instant::now();
        let size = commit.size();
        let kib = u32::try_from(size >> 10).unwrap_or(QUEUE_KIB_MAX).saturating_add(1);
        let space = self.space.clone().acquire_many_owned(kib.min(QUEUE_KIB_MAX)).await;
        let space = space.map_err(|_| stopped())?;
        let (answer, outcome) = oneshot::channel();
        let request = Request { commit, size, asked, answer, alone: false, _space: space };
        self.core.queue.push(request).map_err(|refused| match refused {
            Refused::Ended => stopped(),
            Refused::Blocked(waited) => self.core.holder.timed_out(waited),
        })?;
        outcome.await.unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::OutcomeUnknown,
                "the store's committer stopped in the middle",
            ))
        })
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // With the queue closed the committer finishes what is in it, and ends. If another process
        // blocks it, it is left behind, and keeps the environment open until it gets the lock.
        let ended = self.committer.is_none() || self.core.queue.close();
        // A panic in it has already been answered as an unknown outcome.
        let _ = self.committer.take().filter(|_| ended).map(JoinHandle::join);
        let _ = self.watchdog.take().map(JoinHandle::join);
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| from_io(&format!("cannot start the thread {name}"), &error))
}

/// Answers commits that have waited too long, until the store is closed.
fn give_up_overdue(core: &Core) {
    while let Some((overdue, blocked)) = core.queue.wait_for_overdue() {
        let error = match blocked {
            Some(waited) => core.holder.timed_out(waited),
            None => busy(core.options.write_timeout),
        };
        answer_all(overdue, &error);
    }
}

fn busy(time_max: Duration) -> Error {
    let message = format!(
        "the store is busy: the commit waited {:.1} s for its turn (write_timeout)",
        time_max.as_secs_f64()
    );
    Error::new(ErrorKind::Unavailable, message)
}

/// A caller that has gone away does not need the answer.
fn answer_all(requests: Vec<Request>, error: &Error) {
    for request in requests {
        let _ = request.answer.send(Err(Error::new(error.kind(), error.to_string())));
    }
}

struct Worker {
    core: Arc<Core>,
    transactions: u32,
}

/// Whoever waits for the committer learns that it has ended, also by a panic.
impl Drop for Worker {
    fn drop(&mut self) {
        self.core.queue.end();
    }
}

impl Worker {
    fn run(mut self) {
        while self.core.queue.wait_for_work() {
            self.clear_readers_sometimes();
            self.serve();
        }
    }

    /// Waits for the write lock, and commits a group of requests together and answers them.
    fn serve(&self) {
        let txn = self.core.environment.env.write_txn();
        if txn.is_ok() {
            self.core.holder.record();
        }
        let group = self.core.queue.take();
        if group.is_empty() {
            return;
        }
        let written = txn
            .map_err(|error| from_lmdb("cannot commit", error))
            .and_then(|txn| self.write(txn, &group));
        match written {
            Ok((revision, outcomes)) => {
                self.core.committed(revision);
                for (request, outcome) in group.into_iter().zip(outcomes) {
                    // A caller that has gone away does not need the answer.
                    let _ = request.answer.send(outcome);
                }
            }
            // One that cannot be done must not take the others down with it.
            Err(error) if group.len() > 1 && may_work_alone(error.kind()) => {
                self.core.queue.put_back(group);
            }
            Err(error) => answer_all(group, &error),
        }
    }

    /// One transaction for a group: either all of them are durable and have an outcome, or none has
    /// changed anything (unless the error says that this is not known).
    #[allow(clippy::type_complexity, reason = "the pair is taken apart at once")]
    fn write(&self, txn: RwTxn<'_>, group: &[Request]) -> Result<(Revision, Vec<Result<Outcome>>)> {
        let mut txn = Transaction::new(txn, self.core.environment.tables, &*self.core.clock)?;
        let mut outcomes = Vec::with_capacity(group.len());
        for request in group {
            outcomes.push(match txn.apply(&request.commit) {
                Ok(outcome) => Ok(outcome),
                Err(Failure::Refused(error)) => Err(error),
                Err(Failure::Broken(error)) => return Err(error),
            });
        }
        if let Err(Failure::Refused(error) | Failure::Broken(error)) =
            txn.tidy(self.core.options.history, RECLAIMED_MIN)
        {
            return Err(error);
        }
        let revision = txn.revision();
        txn.commit().map_err(|error| self.explain_failed_commit(error))?;
        Ok((revision, outcomes))
    }

    /// A commit that failed before LMDB wrote the page that makes it valid has changed nothing. If
    /// writing that very page failed, LMDB refuses further work, and nobody knows what the disk has.
    fn explain_failed_commit(&self, error: heed::Error) -> Error {
        // A read tells as well as a write, and does not wait for the write lock.
        match self.core.environment.env.read_txn() {
            Err(heed::Error::Mdb(heed::MdbError::Panic)) => Error::new(
                ErrorKind::OutcomeUnknown,
                "the disk failed in the last step of a commit; reopen the store to see what it has",
            )
            .caused_by(error),
            // LMDB calls a write that was cut short by a full disk an input/output error.
            _ if is_io_error(&error) && place::is_nearly_full(self.core.environment.env.path()) => {
                Error::new(ErrorKind::Full, "cannot commit: the disk is full").caused_by(error)
            }
            _ => from_lmdb("cannot commit", error),
        }
    }

    /// A killed process may leave a read open, which would keep old pages from being used again.
    fn clear_readers_sometimes(&mut self) {
        self.transactions = self.transactions.wrapping_add(1);
        if self.transactions.is_multiple_of(CLEAR_READERS_EVERY) {
            // Only housekeeping: the next time is as good.
            let _ = self.core.environment.env.clear_stale_readers();
        }
    }
}

fn is_io_error(error: &heed::Error) -> bool {
    const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
    matches!(error, heed::Error::Io(error) if error.raw_os_error() == Some(EIO))
}

fn may_work_alone(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Full | ErrorKind::LimitExceeded | ErrorKind::Corrupt)
}
