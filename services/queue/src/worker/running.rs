//! A worker at work, until it is stopped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::BoxFuture;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::completions::Completions;
use super::keeper::Keeper;
use super::room::{Ending, Places, Room};
use super::seen::Seen;
use super::work::{Done, Workplace, work};
use super::{FURTHER_MAX, Handler, POLL_MIN, Report, WorkerOptions};
use crate::look::Candidate;
use crate::wake::{Signal, Wake};
use crate::{Attempt, Claimant, Claims, Ended, Error, Queue, Result};

/// The longest wait before looking again where others took what was seen.
const OUTRUN_MAX_MS: usize = 10;

/// A message in hand that is not begun.
struct Waiting {
    attempt: Arc<Attempt>,
    ticket: u64,
    place: Places,
}

/// A claim under way, with the places it is for.
type Claiming = (Places, BoxFuture<'static, Result<(Claims, Vec<Candidate>)>>);

/// A worker at work.
pub(super) struct Running {
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
    pub fn new(queue: Queue, options: WorkerOptions, handler: Handler) -> Self {
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

    pub async fn until(mut self, shutdown: impl Future<Output = ()>) -> Result<Report> {
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
                let claim =
                    async move { queue.claim_looking(&Claimant::default(), room, further).await };
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
                            let wait = self.queue.inner.entropy.below(OUTRUN_MAX_MS);
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
        let idle = idle.mul_f64(1.0 - self.queue.inner.entropy.fraction() / 8.0);
        match next_due {
            Some(due) => idle.min(self.queue.time_until(due)),
            None => idle,
        }
    }

    fn heed(&mut self, signal: Signal) {
        match signal {
            Signal::Look => self.look_at = Instant::now(),
            Signal::LookAt(due) => {
                self.look_at = self.look_at.min(Instant::now() + self.queue.time_until(due));
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
