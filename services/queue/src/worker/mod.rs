//! A worker: claims messages, runs a handler on each, keeps their leases, and stops in good order.

mod completions;
mod delivery;
mod keeper;
mod room;
mod seen;
mod wake;
mod work;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{BoxFuture, Json};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use self::completions::Completions;
pub use self::delivery::Delivery;
use self::keeper::Keeper;
use self::room::{Ending, Places, Room};
use self::seen::Seen;
use self::wake::{Signal, Wake};
use self::work::{Done, Workplace, work};
use crate::claim::Candidate;
use crate::{Attempt, Claims, Ended, Error, Failure, Queue, Result};

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
/// The longest wait before looking again where others took what was seen.
const OUTRUN_MAX_MS: usize = 10;

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

/// A message in hand that is not begun.
struct Waiting {
    attempt: Arc<Attempt>,
    ticket: u64,
    place: Places,
}

/// A claim under way, with the places it is for.
type Claiming = (Places, BoxFuture<'static, Result<(Claims, Vec<Candidate>)>>);

/// A worker at work.
struct Running {
    queue: Queue,
    options: WorkerOptions,
    handler: Handler,
    keeper: Keeper,
    completions: Completions,
    wake: Wake,
    tasks: JoinSet<(Done, Option<Ending>)>,
    room: Room,
    seen: Arc<Seen>,
    /// How many messages the next look reads beyond those that it takes.
    further: usize,
    waiting: VecDeque<Waiting>,
    stopping: watch::Sender<bool>,
    report: Report,
    /// When to look at the queue next.
    look_at: Instant,
    /// The wait before the look after that, where nothing tells of messages.
    pause: Duration,
    /// What stopped the worker, if it was not asked to stop.
    fatal: Option<Error>,
}

impl Running {
    fn new(queue: Queue, options: WorkerOptions, handler: Handler) -> Self {
        let room = Room::new(options.concurrency.max(1), options.ahead);
        let seen = Arc::new(Seen::default());
        Self {
            keeper: Keeper::start(&queue),
            completions: Completions::start(&queue, &room, &seen),
            wake: Wake::new(&queue),
            queue,
            options,
            handler,
            tasks: JoinSet::new(),
            room,
            seen,
            further: 0,
            waiting: VecDeque::new(),
            stopping: watch::Sender::new(false),
            report: Report::default(),
            look_at: Instant::now(),
            pause: POLL_MIN,
            fatal: None,
        }
    }

    /// How many messages to claim now. A claim costs much the same for one message and for many: so
    /// while some are just being ended, it leaves what was seen to be taken along with them, and
    /// otherwise waits for half of the places.
    fn room(&self) -> usize {
        let room = self.room.free();
        if self.room.ending() == 0 && !self.completions.is_taking() {
            return room;
        }
        let most = self.options.concurrency.max(1).saturating_add(self.options.ahead);
        let left_to_them = self.completions.is_taking() || self.seen.until().is_some();
        if left_to_them || room < most / 2 { 0 } else { room }
    }

    async fn until(mut self, shutdown: impl Future<Output = ()>) -> Result<Report> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut stop_at: Option<Instant> = None;
        // A claim is never dropped half way: what it took would have had an attempt for nothing.
        let mut claiming: Option<Claiming> = None;
        let mut woken = false;
        loop {
            while let Some(ended) = self.tasks.try_join_next() {
                self.count(ended);
            }
            if stop_at.is_none() && self.fatal.is_some() {
                stop_at = Some(self.stop());
            }
            if stop_at.is_some() && claiming.is_none() {
                self.give_back_waiting().await;
                if self.tasks.is_empty() && !self.completions.is_taking() {
                    break;
                }
            }
            self.begin();
            let room = self.room();
            let may_look = stop_at.is_none() && claiming.is_none() && room > 0;
            if may_look && Instant::now() >= self.look_at {
                let (queue, further) = (self.queue.clone(), self.further);
                let places = self.room.places(room);
                let room = places.count().max(1);
                self.seen.forget();
                woken = false;
                let claim = async move { queue.claim_looking(room, further).await };
                claiming = Some((places, Box::pin(claim)));
            }
            let seen_until = self.seen.until().filter(|_| stop_at.is_none());
            tokio::select! {
                biased;
                () = &mut shutdown, if stop_at.is_none() => stop_at = Some(self.stop()),
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.count(ended);
                }
                (attempts, places) = self.completions.taken() => self.hold(attempts, places),
                claims = claimed(&mut claiming) => {
                    let places = claiming.take().map(|(places, _)| places);
                    self.claimed(claims, places.unwrap_or_default());
                    if woken {
                        self.look_at = Instant::now();
                    }
                }
                signal = self.wake.next(), if stop_at.is_none() => {
                    woken |= matches!(signal, Signal::Look);
                    self.heed(signal);
                }
                () = self.room.freed() => {}
                () = tokio::time::sleep_until(self.look_at), if may_look && claiming.is_none() => {}
                () = at(seen_until), if claiming.is_none() => {}
                () = at(stop_at), if claiming.is_none() && !self.completions.is_taking() => {
                    self.abandon().await;
                    break;
                }
            }
        }
        match self.fatal.take() {
            Some(error) => Err(error),
            None => Ok(self.report),
        }
    }

    fn stop(&mut self) -> Instant {
        self.stopping.send_replace(true);
        self.room.close();
        Instant::now() + self.options.grace
    }

    /// Begins what there is room for.
    fn begin(&mut self) {
        let most = self.options.concurrency.max(1);
        while self.tasks.len().saturating_sub(self.room.ending()) < most {
            let Some(Waiting { attempt, ticket, place }) = self.waiting.pop_front() else { return };
            let held = self.keeper.held(ticket);
            let workplace = Workplace {
                handler: self.handler.clone(),
                hold: held.hold(),
                stopping: self.stopping.subscribe(),
                grace: self.options.grace,
                room: self.room.clone(),
                place,
                together: self.completions.asking(),
            };
            self.tasks.spawn(async move {
                let ended = work(workplace, attempt).await;
                drop(held);
                ended
            });
        }
    }

    /// Takes messages into hand.
    fn hold(&mut self, attempts: Vec<Attempt>, mut places: Places) {
        for attempt in attempts {
            let attempt = Arc::new(attempt);
            let ticket = self.keeper.take(attempt.clone());
            self.waiting.push_back(Waiting { attempt, ticket, place: places.one() });
        }
    }

    /// Takes what a claim gave into hand, and says when to look again.
    fn claimed(&mut self, claims: Result<(Claims, Vec<Candidate>)>, places: Places) {
        let now = Instant::now();
        match claims {
            Ok((claims, seen)) => {
                let (asked, count) = (places.count(), claims.attempts.len());
                self.hold(claims.attempts, places);
                self.further = match count {
                    // There is more, and nobody else takes it.
                    count if count == asked && self.queue.spread() == 0 => FURTHER_MAX,
                    _ => 0,
                };
                let has_more = count == asked || !seen.is_empty();
                self.seen.keep(seen, self.further > 0);
                if count > 0 {
                    self.pause = POLL_MIN;
                }
                self.look_at = now
                    + match count {
                        _ if has_more => Duration::ZERO,
                        _ if claims.contended => {
                            let wait = self.queue.0.entropy.below(OUTRUN_MAX_MS);
                            Duration::from_millis(1 + wait as u64)
                        }
                        _ => self.idle(claims.next_due),
                    };
            }
            Err(error) if error.is_passing() => {
                self.look_at = now + self.pause;
                self.pause = (self.pause * 2).min(self.options.poll_max);
            }
            Err(error) => self.fatal = Some(error),
        }
    }

    /// How long nothing can be expected to happen.
    fn idle(&mut self, next_due: Option<Timestamp>) -> Duration {
        let mut idle = self.options.poll_max;
        if !self.wake.is_watching() {
            idle = self.pause.min(idle);
            self.pause = (self.pause * 2).min(self.options.poll_max);
        }
        // Somewhat spread, so that workers do not look all at once.
        let idle = idle.mul_f64(1.0 - self.queue.0.entropy.fraction() / 8.0);
        match next_due {
            Some(due) => idle.min(self.wait_for(due)),
            None => idle,
        }
    }

    fn wait_for(&self, due: Timestamp) -> Duration {
        let wait = due.duration_since(self.queue.now().time());
        // The due time is of whole milliseconds, and so is the clock.
        Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1)
    }

    fn heed(&mut self, signal: Signal) {
        match signal {
            Signal::Look => self.look_at = Instant::now(),
            Signal::LookAt(due) => {
                self.look_at = self.look_at.min(Instant::now() + self.wait_for(due));
            }
            Signal::Gone(ids) => self.keeper.doubt(&ids),
        }
    }

    fn count(&mut self, ended: Result<(Done, Option<Ending>), JoinError>) {
        // A task that panicked outside its handler leaves its message to its lease.
        *match ended.map_or(Done::Unknown, |(done, _)| done) {
            Done::Completed => &mut self.report.completed,
            Done::Failed => &mut self.report.failed,
            Done::Refused => &mut self.report.refused,
            Done::Unknown => &mut self.report.unknown,
        } += 1;
    }

    async fn give_back_waiting(&mut self) {
        while let Some(waiting) = self.waiting.pop_front() {
            self.give_back(&waiting.attempt).await;
            drop(self.keeper.held(waiting.ticket));
        }
    }

    /// Drops what does not end, and gives it back.
    async fn abandon(&mut self) {
        let left = self.keeper.attempts();
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            if ended.is_ok() {
                self.count(ended);
            }
        }
        for attempt in left {
            self.give_back(&attempt).await;
        }
    }

    async fn give_back(&mut self, attempt: &Attempt) {
        // If this fails, the lease ends by itself.
        if let Ok(Ended::Accepted) = attempt.give_back().await {
            self.report.given_back += 1;
        }
    }
}

async fn claimed(claiming: &mut Option<Claiming>) -> Result<(Claims, Vec<Candidate>)> {
    match claiming {
        Some((_, claims)) => claims.await,
        None => std::future::pending().await,
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
