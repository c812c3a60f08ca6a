//! A worker: claims messages, runs a handler on each, keeps their leases, and stops in good order.

mod completions;
mod delivery;
mod keeper;
mod room;
mod running;
mod seen;
mod work;

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{BoxFuture, Json};

pub use self::delivery::Delivery;
use self::running::Running;
use crate::{Failure, Queue, Result};

/// How a worker works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOptions {
    /// How many messages are worked on at the same time.
    pub concurrency: usize,
    /// How many more are claimed before they can be begun. They are given back when the worker
    /// stops; but if its process is killed, they have had an attempt.
    pub ahead: usize,
    /// How long a worker that stops waits for what it has begun, before it gives it back; and how
    /// long a handler that lost its message may take to notice.
    pub grace: Duration,
    /// The longest time between two looks at a queue in which nothing is told of.
    pub poll_max: Duration,
}

impl Default for WorkerOptions {
    /// One at a time, nothing ahead, 30 seconds to end, a look every five seconds.
    fn default() -> Self {
        Self {
            concurrency: 1,
            ahead: 0,
            grace: Duration::from_secs(30),
            poll_max: Duration::from_secs(5),
        }
    }
}

/// What a worker has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Completions accepted.
    pub completed: u64,
    /// Failures accepted.
    pub failed: u64,
    /// Attempts whose end was refused: others had taken over, or the message was gone.
    pub refused: u64,
    /// Messages given back when the worker stopped.
    pub given_back: u64,
    /// Attempts of whose end it is not known whether it was accepted.
    pub unknown: u64,
}

/// The first wait where nothing tells of new messages, and after errors.
const POLL_MIN: Duration = Duration::from_millis(100);
/// How many messages are read beyond those that are taken, where there are more than can be taken.
const FURTHER_MAX: usize = 64;

/// Claims the messages of a queue and runs a handler on each.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use keyward_engine::{Json, Store, SystemClock};
/// use keyward_memory::Memory;
/// use keyward_queue::{Message, Options, Queue, Worker, WorkerOptions};
///
/// let queue = Queue::new(Store::new(Memory::new()), "q", SystemClock, Options::default())?;
/// queue.enqueue(Message::new(Json::parse("21")?)).await?;
///
/// let (done, stop) = tokio::sync::oneshot::channel();
/// let done = std::sync::Mutex::new(Some(done));
/// let report = Worker::new(queue, WorkerOptions::default())
///     .run(
///         move |delivery| {
///             assert_eq!(delivery.payload().as_str(), "21");
///             let done = done.lock().unwrap().take();
///             async move {
///                 done.map(|done| done.send(()));
///                 Ok(None)
///             }
///         },
///         async { stop.await.unwrap() },
///     )
///     .await?;
/// assert_eq!(report.completed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Worker {
    queue: Queue,
    options: WorkerOptions,
}

impl Worker {
    /// A worker on a queue.
    pub fn new(queue: Queue, options: WorkerOptions) -> Self {
        Self { queue, options }
    }

    /// Works until `shutdown`: claims what is ready, as many at once as there is room for, and runs
    /// the handler on each in a task of its own. A free place is filled at once, unless handlers have
    /// just ended whose places will soon be free too. What the handler returns completes the message, its
    /// error fails the attempt, and so does a panic. Leases are kept in the background.
    ///
    /// From `shutdown` on nothing more is claimed. What was begun may end within
    /// [`WorkerOptions::grace`]; then its handler is dropped, and the message given back. Dropping
    /// this future drops the handlers at once; their leases end by themselves.
    ///
    /// A store that cannot be reached is tried again. Any other error stops the worker in the same
    /// order, and is returned.
    pub async fn run<H, F>(self, handler: H, shutdown: impl Future<Output = ()>) -> Result<Report>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Option<Json>, Failure>> + Send + 'static,
    {
        let Self { queue, options } = self;
        let handler: Handler = Arc::new(move |delivery| Box::pin(handler(delivery)));
        Running::new(queue, options, handler).until(shutdown).await
    }
}

type Handler =
    Arc<dyn Fn(Delivery) -> BoxFuture<'static, Result<Option<Json>, Failure>> + Send + Sync>;
