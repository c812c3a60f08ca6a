//! Group commit: one thread takes what is queued, makes one transaction with one sync of it, and
//! then answers.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use keyward_engine::{Commit, Error, ErrorKind, Outcome, Result, Revision};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::commit::{Failure, Transaction};
use crate::engine::Core;
use crate::error::{from_io, from_lmdb};
use crate::place;

/// How many commits may wait in the queue.
const QUEUE_MAX: usize = 1_024;
/// How many kibibytes of commits may wait in the queue.
const QUEUE_KIB_MAX: u32 = 256 << 10;
/// How many bytes of commits go into one transaction, unless a single one is larger.
const GROUP_BYTES_MAX: usize = 16 << 20;
/// How many expired entries a transaction reclaims, if there are so many; more when more are added.
const RECLAIMED_MIN: usize = 64;
/// After how many transactions the slots of dead readers are cleared again.
const CLEAR_READERS_EVERY: u32 = 256;

/// The way to the committer thread.
pub(crate) struct Committer {
    /// Taken out to stop the thread.
    requests: Option<mpsc::Sender<Request>>,
    space: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

struct Request {
    commit: Commit,
    size: usize,
    answer: oneshot::Sender<Result<Outcome>>,
    _space: OwnedSemaphorePermit,
}

impl Committer {
    /// Starts the thread.
    pub(crate) fn start(core: Arc<Core>) -> Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let thread = thread::Builder::new()
            .name("keyward-commit".to_owned())
            .spawn(move || Worker { core, queue, transactions: 0 }.run())
            .map_err(|error| from_io("cannot start the committer thread", &error))?;
        Ok(Self {
            requests: Some(requests),
            space: Arc::new(Semaphore::new(QUEUE_KIB_MAX as usize)),
            thread: Some(thread),
        })
    }

    /// Queues a commit and waits for its outcome.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Outcome> {
        // It stops only by a fault: the store is of no use until it is opened again.
        let stopped = || Error::new(ErrorKind::Internal, "the store's committer has stopped");
        let size = commit.size();
        let kib = u32::try_from(size >> 10).unwrap_or(QUEUE_KIB_MAX).saturating_add(1);
        let space = self.space.clone().acquire_many_owned(kib.min(QUEUE_KIB_MAX)).await;
        let space = space.map_err(|_| stopped())?;
        let (answer, outcome) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or_else(stopped)?;
        let request = Request { commit, size, answer, _space: space };
        requests.send(request).await.map_err(|_| stopped())?;
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
        // With the queue closed the thread finishes what is in it, and ends.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it has already been answered as an unknown outcome.
            let _ = thread.join();
        }
    }
}

struct Worker {
    core: Arc<Core>,
    queue: mpsc::Receiver<Request>,
    transactions: u32,
}

impl Worker {
    fn run(mut self) {
        let mut taken = Vec::new();
        while self.queue.blocking_recv_many(&mut taken, QUEUE_MAX) > 0 {
            let mut group = Vec::with_capacity(taken.len());
            let mut bytes = 0;
            for request in taken.drain(..) {
                if bytes > 0 && bytes + request.size > GROUP_BYTES_MAX {
                    self.serve(std::mem::take(&mut group));
                    bytes = 0;
                }
                bytes += request.size;
                group.push(request);
            }
            self.serve(group);
        }
    }

    /// Commits a group of requests together and answers them.
    fn serve(&mut self, group: Vec<Request>) {
        self.clear_readers_sometimes();
        match self.write(&group) {
            Ok((revision, outcomes)) => {
                self.core.committed(revision);
                for (request, outcome) in group.into_iter().zip(outcomes) {
                    // A caller that has gone away does not need the answer.
                    let _ = request.answer.send(outcome);
                }
            }
            Err(error) if group.len() > 1 && may_work_alone(error.kind()) => {
                // One that cannot be done must not take the others down with it.
                for request in group {
                    self.serve(vec![request]);
                }
            }
            Err(error) => {
                for request in group {
                    let copy = Error::new(error.kind(), error.to_string());
                    let _ = request.answer.send(Err(copy));
                }
            }
        }
    }

    /// One transaction for a group: either all of them are durable and have an outcome, or none has
    /// changed anything (unless the error says that this is not known).
    #[allow(clippy::type_complexity, reason = "the pair is taken apart at once")]
    fn write(&self, group: &[Request]) -> Result<(Revision, Vec<Result<Outcome>>)> {
        let environment = &self.core.environment;
        let txn = environment.env.write_txn().map_err(|error| from_lmdb("cannot commit", error))?;
        let mut txn = Transaction::new(txn, environment.tables, &*self.core.clock)?;
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
        match self.core.environment.env.write_txn() {
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
