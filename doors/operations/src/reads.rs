//! Expensive reads: queries, listings, scans, counts and exports.
//!
//! One caller's long reads must not delay what others ask for. So only some run at a time, of which one
//! tenant has a part; the others wait in line, and are refused if it takes too long. Reads of engines that
//! read on the calling thread run on threads of their own, beside those that answer requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use keyward::{Code, Store};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::Instrument;

use crate::config::OperationLimits;
use crate::identity::{Identity, Tenant};
use crate::problem::{Problem, Result};

/// The part of all reads that one tenant may have running.
const PART: usize = 4;
/// How many threads there are at least, so that one read does not hold up all others.
const THREADS_MIN: usize = 2;

/// Runs expensive reads, so many at a time. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reads(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Taken only by its drop.
    runtime: Option<Runtime>,
    all_max: usize,
    one_max: usize,
    wait_max: Duration,
    all: Arc<Semaphore>,
    /// The lines of tenants that have reads running or waiting.
    by: Mutex<HashMap<Tenant, Arc<Semaphore>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // To wait for its threads would block the thread of another runtime, which panics.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Reads {
    /// Starts the threads for reads of engines that read on the calling thread.
    pub fn new(limits: &OperationLimits) -> Result<Self> {
        let threads = available_parallelism().map_or(THREADS_MIN, usize::from).max(THREADS_MIN);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("keyward-reads")
            .enable_all()
            .build()
            .map_err(|error| {
                Problem::new(Code::Internal, format!("cannot start threads for reads: {error}"))
            })?;
        let all_max = limits.reads_max.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self(Arc::new(Inner {
            runtime: Some(runtime),
            all_max,
            one_max: (all_max / PART).max(1),
            wait_max: limits.read_wait_max,
            all: Arc::new(Semaphore::new(all_max)),
            by: Mutex::default(),
        })))
    }

    /// Runs a read of a store once it is its turn. Refused if it waits too long for that. Dropping the
    /// future stops the read.
    pub async fn run<T, F>(&self, who: &Identity, store: &Store, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let turn = match timeout(self.0.wait_max, self.turn(who)).await {
            Ok(turn) => turn?,
            Err(_) => return Err(self.busy(who)),
        };
        self.beside(store, turn, read).await
    }

    /// The same for a read that goes on with what was begun, such as the next page of an export: it
    /// waits for as long as it takes.
    pub async fn resume<T, F>(&self, who: &Identity, store: &Store, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let turn = self.turn(who).await?;
        self.beside(store, turn, read).await
    }

    async fn beside<T, F>(&self, store: &Store, turn: Turn, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let runtime = self.0.runtime.as_ref().filter(|_| store.reads_inline());
        let Some(runtime) = runtime else {
            let _turn = turn;
            return read.await;
        };
        // The turn ends with the read, which may be after whoever asked has gone.
        let task = async move {
            let _turn = turn;
            read.await
        };
        let mut task = Task(runtime.spawn(task.in_current_span()));
        (&mut task.0).await.unwrap_or_else(|_| {
            Err(Problem::new(Code::Internal, "the read was cut off by a fault of the server")
                .hint("Send the request again."))
        })
    }

    /// Waits in the tenant's own line, then in that of all. So however many reads one tenant asks for,
    /// only its share of them stands before those of others.
    async fn turn(&self, who: &Identity) -> Result<Turn> {
        let closed = |_| Problem::new(Code::Internal, "the line of reads is closed");
        let mut turn =
            Turn { reads: self.clone(), tenant: who.tenant().clone(), own: None, all: None };
        let own = self.line(who);
        turn.own = Some(own.acquire_owned().await.map_err(closed)?);
        turn.all = Some(self.0.all.clone().acquire_owned().await.map_err(closed)?);
        Ok(turn)
    }

    fn line(&self, who: &Identity) -> Arc<Semaphore> {
        let own_max = self.own_max(who);
        let mut lines = self.lines();
        let line = lines.entry(who.tenant().clone());
        line.or_insert_with(|| Arc::new(Semaphore::new(own_max))).clone()
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Tenant, Arc<Semaphore>>> {
        self.0.by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The local user, with whom nobody shares, may have all running.
    fn own_max(&self, who: &Identity) -> usize {
        if who.is_local() { self.0.all_max } else { self.0.one_max }
    }

    fn busy(&self, who: &Identity) -> Problem {
        let own = self.lines().get(who.tenant()).is_some_and(|own| own.available_permits() == 0);
        let (whose, most) = match own {
            true => ("one user or key", self.own_max(who)),
            false => ("all callers together", self.0.all_max),
        };
        let detail = format!(
            "the limit of expensive reads (queries, listings, exports) for {whose} is {most} at a time; \
             this one waited {} s for its turn",
            self.0.wait_max.as_secs_f64()
        );
        Problem::new(Code::Overloaded, detail)
            .hint("Send fewer queries at a time, or narrower ones, and try again in a moment.")
            .retryable()
            .retry_after(Duration::from_secs(1))
    }
}

/// The turn of a read, from when it stands in line until it has ended.
#[derive(Debug)]
struct Turn {
    reads: Reads,
    tenant: Tenant,
    own: Option<OwnedSemaphorePermit>,
    all: Option<OwnedSemaphorePermit>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.all = None;
        self.own = None;
        let mut lines = self.reads.lines();
        // Whoever runs or waits has the line too.
        if lines.get(&self.tenant).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.tenant);
        }
    }
}

/// A read on its way, which stops when nobody waits for it.
#[derive(Debug)]
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;

    fn one_at_a_time(wait_max: Duration) -> (Reads, Store, Identity) {
        let limits =
            OperationLimits { reads_max: 1, read_wait_max: wait_max, ..OperationLimits::default() };
        let store = Store::new(keyward_memory::Memory::new());
        (Reads::new(&limits).unwrap(), store, Identity::local())
    }

    #[tokio::test]
    async fn reads_run_on_threads_of_their_own() {
        let (reads, store, who) = one_at_a_time(Duration::from_secs(60));
        let name = async { Ok(std::thread::current().name().map(str::to_owned)) };
        let name = reads.run(&who, &store, name).await.unwrap();
        assert_eq!(name.as_deref(), Some("keyward-reads"));
    }

    #[tokio::test]
    async fn a_read_that_nobody_waits_for_stops_and_gives_its_turn_back() {
        let (reads, store, who) = one_at_a_time(Duration::from_secs(60));
        let (begun, begins) = oneshot::channel();
        let (kept, dropped) = oneshot::channel::<()>();
        let endless = async move {
            let _kept = kept;
            let _ = begun.send(());
            pending::<Result<()>>().await
        };
        let waiting = {
            let (reads, store, who) = (reads.clone(), store.clone(), who.clone());
            tokio::spawn(async move { reads.run(&who, &store, endless).await })
        };
        begins.await.unwrap();
        waiting.abort();
        assert!(dropped.await.is_err());
        reads.run(&who, &store, async { Ok(()) }).await.unwrap();
        assert!(reads.lines().is_empty());
    }

    #[tokio::test]
    async fn a_read_that_waits_too_long_is_refused_and_leaves_the_line() {
        let (reads, store, who) = one_at_a_time(Duration::from_millis(1));
        let turn = reads.turn(&who).await.unwrap();
        let refused = reads.run(&who, &store, async { Ok(()) }).await.unwrap_err();
        assert_eq!((refused.code(), refused.is_retryable()), (Code::Overloaded, true));
        assert!(refused.detail().contains("is 1 at a time"), "{}", refused.detail());
        drop(turn);
        reads.run(&who, &store, async { Ok(()) }).await.unwrap();
        assert!(reads.lines().is_empty());
    }
}
