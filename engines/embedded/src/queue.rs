//! The commits that wait to be written.
//!
//! LMDB's write lock has no timed wait: while another process holds it, the committer thread is
//! blocked. So commits stay in this queue until the committer *has* the lock, and a watchdog takes
//! out those that have waited too long. A commit that was taken out is certainly not written.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use keyward_engine::{Commit, Outcome, Result};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// How many commits go into one transaction.
const GROUP_MAX: usize = 1_024;
/// How many bytes of commits go into one transaction, unless a single one is larger.
const GROUP_BYTES_MAX: usize = 16 << 20;
/// How long closing waits for the write lock before it gives up what is queued.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(1);

/// A commit that waits to be written.
pub(crate) struct Request {
    pub(crate) commit: Commit,
    pub(crate) size: usize,
    /// When the caller asked.
    pub(crate) asked: Instant,
    pub(crate) answer: oneshot::Sender<Result<Outcome>>,
    /// It failed together with others, and gets a transaction of its own.
    pub(crate) alone: bool,
    /// Its share of the memory that queued commits may take.
    pub(crate) _space: OwnedSemaphorePermit,
}

/// The queue between callers, the committer thread and the watchdog.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes the committer: there is work, or the queue was closed.
    work: Condvar,
    /// Wakes the watchdog: there is something to watch, or the queue was closed.
    watch: Condvar,
    /// Wakes the one who closes the queue: the committer has ended.
    ended: Condvar,
    /// How long a commit may wait.
    time_max: Duration,
}

struct State {
    requests: VecDeque<Request>,
    committer: Phase,
    closed: bool,
    /// The committer was left behind, blocked, when the store was closed.
    abandoned: bool,
    /// The watchdog is at work and need not be woken.
    watched: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    /// It waits for the write lock since then.
    Locking(Instant),
    Writing,
    Ended,
}

/// Why a commit is not taken into the queue.
pub(crate) enum Refused {
    /// The committer has ended.
    Ended,
    /// The write lock could not be had for this long, which is longer than a commit may wait.
    Blocked(Duration),
}

impl Queue {
    pub(crate) fn new(time_max: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                requests: VecDeque::new(),
                committer: Phase::Idle,
                closed: false,
                abandoned: false,
                watched: false,
            }),
            work: Condvar::new(),
            watch: Condvar::new(),
            ended: Condvar::new(),
            time_max,
        }
    }

    /// Queues a commit. While the committer has been blocked for too long already, it is refused
    /// at once.
    pub(crate) fn push(&self, request: Request) -> Result<(), Refused> {
        let mut state = self.state();
        match state.committer {
            Phase::Ended => return Err(Refused::Ended),
            Phase::Locking(since) if since.elapsed() >= self.time_max => {
                return Err(Refused::Blocked(since.elapsed()));
            }
            // Waking costs a system call, so only those are woken who sleep.
            Phase::Idle => self.work.notify_one(),
            Phase::Locking(_) | Phase::Writing => {}
        }
        if !state.watched {
            state.watched = true;
            self.watch.notify_one();
        }
        state.requests.push_back(request);
        Ok(())
    }

    /// Waits until there is something to write; false when the queue is closed and empty. The
    /// committer must then get the write lock and [take](Self::take) a group.
    pub(crate) fn wait_for_work(&self) -> bool {
        let mut state = self.state();
        while state.requests.is_empty() {
            if state.closed {
                return false;
            }
            state.committer = Phase::Idle;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.committer = Phase::Locking(Instant::now());
        true
    }

    /// Takes a group for one transaction, once the committer has the write lock. Empty if everything
    /// was taken out meanwhile.
    pub(crate) fn take(&self) -> Vec<Request> {
        let mut state = self.state();
        state.committer = Phase::Writing;
        let mut group = Vec::with_capacity(state.requests.len().min(GROUP_MAX));
        let mut bytes = 0;
        while let Some(next) = state.requests.front() {
            let fits = bytes + next.size <= GROUP_BYTES_MAX && !next.alone;
            if group.len() == GROUP_MAX || !(fits || group.is_empty()) {
                break;
            }
            bytes += next.size;
            let alone = next.alone;
            group.extend(state.requests.pop_front());
            if alone {
                break;
            }
        }
        group
    }

    /// Puts a group back in front, each commit to be written alone.
    pub(crate) fn put_back(&self, group: Vec<Request>) {
        let mut state = self.state();
        for request in group.into_iter().rev() {
            state.requests.push_front(Request { alone: true, ..request });
        }
    }

    /// Takes out the commits that have waited too long, and says for how long the committer has
    /// been waiting for the write lock. Waits until there are some; `None` when the queue was closed.
    pub(crate) fn wait_for_overdue(&self) -> Option<(Vec<Request>, Option<Duration>)> {
        let tick = (self.time_max / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let mut state = self.state();
        while !state.closed {
            let is_overdue = |request: &Request| request.asked.elapsed() >= self.time_max;
            if state.requests.iter().any(is_overdue) {
                let requests = std::mem::take(&mut state.requests);
                let (overdue, rest): (Vec<_>, _) = requests.into_iter().partition(is_overdue);
                state.requests = rest.into();
                let blocked = match state.committer {
                    Phase::Locking(since) => Some(since.elapsed()),
                    _ => None,
                };
                // It may be that the queue was long, and the lock is not to blame.
                return Some((overdue, blocked.filter(|time| *time >= self.time_max / 2)));
            }
            state.watched = !state.requests.is_empty();
            state = match state.watched {
                true => {
                    self.watch.wait_timeout(state, tick).unwrap_or_else(PoisonError::into_inner).0
                }
                false => self.watch.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        None
    }

    /// Closes the queue and waits until the committer has written what is in it, and has ended. If
    /// another process does not let it write, what is queued is dropped, and false is returned: the
    /// committer ends without writing when it gets the lock.
    pub(crate) fn close(&self) -> bool {
        let began = Instant::now();
        let mut state = self.state();
        state.closed = true;
        self.work.notify_one();
        self.watch.notify_one();
        while state.committer != Phase::Ended {
            let blocked = matches!(state.committer, Phase::Locking(_));
            if blocked && (state.requests.is_empty() || began.elapsed() >= CLOSE_WAIT_MAX) {
                state.abandoned = true;
                state.requests.clear();
                return false;
            }
            let waited = self.ended.wait_timeout(state, CLOSE_WAIT_MAX / 10);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Says that the committer has ended, as it should or by a fault.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.committer = Phase::Ended;
        state.requests.clear();
        self.ended.notify_all();
    }

    /// Whether the store was closed while the committer was blocked.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.state().abandoned
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
