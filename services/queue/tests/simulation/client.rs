//! A process that enqueues, claims by hand, and pauses the queue now and then.

use std::time::Duration;

use fastrand::Rng;
use keyward_engine::{ErrorKind, Json, Store};
use keyward_queue::{Attempt, Ended, Error, Failure, JobOptions, Jobs, Message, Queue};
use keyward_testkit::{Faults, FaultyEngine, VirtualClock};
use tokio::time::Instant;

use crate::truth::{Fate, Kind, Truth};
use crate::weather::Weather;
use crate::{LEASE, options};

const MESSAGES: usize = 4;

pub struct Client {
    number: usize,
    truth: Truth,
    clock: VirtualClock,
    engine: FaultyEngine,
    is_calm: bool,
    rng: Rng,
}

impl Client {
    pub fn new(
        number: usize,
        truth: &Truth,
        clock: VirtualClock,
        weather: &Weather,
        mut rng: Rng,
    ) -> Self {
        let faults = Faults::seeded(rng.u64(..), weather.rates);
        Self {
            number,
            engine: FaultyEngine::new(truth.engine(), faults),
            clock: clock.skewed(Weather::skew(&mut rng)),
            is_calm: weather.is_calm,
            truth: truth.clone(),
            rng,
        }
    }

    pub async fn live(mut self, day: Duration) {
        let end = Instant::now() + day;
        let mut made = 0;
        while Instant::now() < end {
            let (queue, jobs) = self.start();
            while Instant::now() < end && !self.engine.is_crashed() {
                match self.rng.u8(..10) {
                    0..5 if made < MESSAGES => {
                        made += 1;
                        self.enqueue(&queue, &jobs, made).await;
                    }
                    5..8 => self.work(&queue).await,
                    8 => self.pause(&queue).await,
                    _ => {}
                }
                tokio::time::sleep(Duration::from_millis(self.rng.u64(..6_000))).await;
            }
            if self.engine.is_crashed() {
                self.truth.see(|summary| summary.crashes += 1);
                self.engine = self.engine.revive();
            }
        }
    }

    fn start(&mut self) -> (Queue, Jobs) {
        let store = Store::new(self.engine.clone());
        let mut options = || options(&format!("client {}", self.number), self.rng.u64(..));
        let (first, second) = (options(), options());
        let queue = Queue::new(store.clone(), "q", self.clock, first).unwrap();
        (queue, Jobs::new(store, self.clock, second).unwrap())
    }

    async fn enqueue(&mut self, queue: &Queue, jobs: &Jobs, made: usize) {
        let kind = match self.rng.u8(..12) {
            0 => Kind::Poisoned,
            1 => Kind::Broken,
            2 | 3 => Kind::FailsOnce,
            4 | 5 => Kind::Long,
            _ => Kind::Innocent,
        };
        let is_job = self.rng.bool();
        let id = format!("c{}-{made}", self.number);
        self.truth.announce(&id, kind, is_job);
        let payload = Json::from_integer(made as i64);
        let delay = (self.rng.u8(..4) == 0).then(|| Duration::from_secs(self.rng.u64(1..20)));
        // What could not be done, or may not have been, is asked for once more: that is what an id
        // is for.
        for _ in 0..3 {
            let done = match is_job {
                true => {
                    let id = Some(id.clone());
                    let options = JobOptions { id, delay, ..JobOptions::default() };
                    jobs.submit("q", payload.clone(), options).await.map(drop)
                }
                false => {
                    let message = Message::new(payload.clone()).id(&*id);
                    let message = match delay {
                        Some(delay) => message.delay(delay),
                        None => message,
                    };
                    queue.enqueue(message).await.map(drop)
                }
            };
            match done {
                Ok(()) => {
                    if !self.truth.is_queued(&id) {
                        self.truth.violated(format!("{id} was told to be enqueued, and was not"));
                    }
                    return;
                }
                Err(error) if self.engine.is_crashed() || is_passing(&error) => {}
                Err(error) => return self.truth.violated(format!("enqueuing {id}: {error}")),
            }
        }
    }

    /// Claims by hand, and checks that what it is told of the end is true.
    async fn work(&mut self, queue: &Queue) {
        let Ok(claims) = queue.claim(self.rng.usize(1..=2)).await else { return };
        for attempt in claims.attempts {
            if !self.is_calm && self.rng.u8(..6) == 0 {
                // Asleep for more than a lease.
                tokio::time::sleep(LEASE.mul_f64(1.0 + self.rng.f64() * 2.0)).await;
            }
            let failing = matches!(
                (self.truth.kind(attempt.id()), attempt.number()),
                (Kind::Poisoned | Kind::Broken, _) | (Kind::FailsOnce, 1)
            );
            if failing {
                let _ = attempt.fail(Failure::new("it is broken")).await;
                continue;
            }
            let told = attempt.complete(Some(Json::from_integer(3))).await;
            self.check(&attempt, told);
        }
    }

    fn check(&self, attempt: &Attempt, told: keyward_queue::Result<Ended>) {
        let completed = Fate::Completed(attempt.nonce().to_owned());
        let is_mine = self.truth.fate(attempt.id()) == completed;
        match told {
            Ok(Ended::Accepted) if is_mine => {}
            Ok(Ended::Refused) if !is_mine => self.truth.see(|summary| summary.refused += 1),
            Err(Error::Store(error)) if error.kind() == ErrorKind::OutcomeUnknown => {
                self.truth.see(|summary| summary.unknown += 1);
            }
            Err(error) if is_passing(&error) && !is_mine => {}
            told => {
                let id = attempt.id();
                self.truth.violated(format!("{id}: told {told:?}, completed by me: {is_mine}"));
            }
        }
    }

    async fn pause(&mut self, queue: &Queue) {
        if queue.pause("for a while").await.is_err() {
            return;
        }
        self.truth.see(|summary| summary.pauses += 1);
        tokio::time::sleep(Duration::from_millis(self.rng.u64(..8_000))).await;
        // If this fails, somebody else goes on, in the end.
        let _ = queue.resume().await;
    }
}

fn is_passing(error: &Error) -> bool {
    let Error::Store(error) = error else { return matches!(error, Error::Contended { .. }) };
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::OutcomeUnknown)
}
