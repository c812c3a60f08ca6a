//! A process with a worker, which crashes, stands still, is stopped, and starts again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use keyward_engine::{Json, Store};
use keyward_queue::{Delivery, Failure, Queue, Worker, WorkerOptions};
use keyward_testkit::{Faults, FaultyEngine, VirtualClock};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::truth::{Kind, Truth};
use crate::weather::Weather;
use crate::{LEASE, options};

/// Who is at work on what, over all processes of a run.
pub type Holders = Arc<Mutex<BTreeMap<String, Vec<(FaultyEngine, Delivery)>>>>;

pub struct Node {
    name: String,
    truth: Truth,
    clock: VirtualClock,
    engine: FaultyEngine,
    is_calm: bool,
    rng: Rng,
    holders: Holders,
}

impl Node {
    pub fn new(
        number: usize,
        truth: &Truth,
        clock: VirtualClock,
        weather: &Weather,
        mut rng: Rng,
    ) -> Self {
        let faults = Faults::seeded(rng.u64(..), weather.rates);
        Self {
            name: format!("node {number}"),
            engine: FaultyEngine::new(truth.engine(), faults),
            clock: clock.skewed(Weather::skew(&mut rng)),
            is_calm: weather.is_calm,
            holders: truth.holders(),
            truth: truth.clone(),
            rng,
        }
    }

    pub async fn live(mut self, day: Duration) {
        let end = Instant::now() + day;
        while Instant::now() < end {
            self.one_process(end).await;
            self.engine = self.engine.revive();
            let rest = Duration::from_millis(self.rng.u64(..5_000));
            tokio::time::sleep(rest).await;
        }
    }

    /// Starts a worker, and lets it run until it crashes, is killed or stopped.
    async fn one_process(&mut self, end: Instant) {
        let store = Store::new(self.engine.clone());
        let seed = self.rng.u64(..);
        let queue = Queue::new(store, "q", self.clock, options(&self.name, seed)).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = WorkerOptions {
            concurrency: self.rng.usize(1..=3),
            ahead: if self.is_calm { 0 } else { self.rng.usize(..3) },
            grace: Duration::from_secs(self.rng.u64(1..20)),
            poll_max: Duration::from_secs(5),
        };
        let worker = Worker::new(queue, worker);
        let handler = self.handler();
        let working = tokio::spawn(worker.run(handler, async { drop(stopped.await) }));
        let until = (Instant::now() + Duration::from_secs(self.rng.u64(20..80))).min(end);
        while Instant::now() < until && !self.engine.is_crashed() && !working.is_finished() {
            tokio::time::sleep(Duration::from_millis(self.rng.u64(20..400))).await;
            if !self.is_calm && self.rng.u16(..1_000) < 4 {
                self.engine.pause();
                tokio::time::sleep(LEASE.mul_f64(self.rng.f64() * 4.0)).await;
                self.engine.resume();
                self.truth.see(|summary| summary.stops += 1);
            }
            if !self.is_calm && self.rng.u16(..1_000) < 4 {
                self.engine.kill();
            }
        }
        if self.engine.is_crashed() {
            working.abort();
            let _ = working.await;
            self.truth.see(|summary| summary.crashes += 1);
            return;
        }
        let _ = stop.send(());
        // An engine that is dead by now lets nobody finish.
        let report = tokio::select! {
            biased;
            report = working => report.unwrap(),
            () = crashed(&self.engine) => return,
        };
        match report {
            Ok(report) => self.truth.see(|summary| {
                summary.refused += report.refused;
                summary.unknown += report.unknown;
            }),
            Err(error) => self.truth.violated(format!("a worker gave up: {error}")),
        }
    }

    fn handler(
        &self,
    ) -> impl Fn(Delivery) -> keyward_engine::BoxFuture<'static, Result<Option<Json>, Failure>>
    + Send
    + Sync
    + 'static {
        let (truth, engine, holders) =
            (self.truth.clone(), self.engine.clone(), self.holders.clone());
        let is_calm = self.is_calm;
        let rng = Mutex::new(self.rng.clone());
        move |delivery: Delivery| {
            let rng = Rng::with_seed(rng.lock().unwrap().u64(..));
            let (truth, engine, holders) = (truth.clone(), engine.clone(), holders.clone());
            Box::pin(async move {
                enter(&truth, &holders, &engine, &delivery);
                let _present = Present { holders, delivery: delivery.clone() };
                let handled = handle(&truth, &engine, &delivery, rng, is_calm).await;
                if delivery.is_lost() {
                    truth.see(|summary| summary.lost += 1);
                }
                handled
            })
        }
    }
}

async fn crashed(engine: &FaultyEngine) {
    while !engine.is_crashed() {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Nobody else may believe to hold the message: who is taken over from has been told before.
fn enter(truth: &Truth, holders: &Holders, engine: &FaultyEngine, delivery: &Delivery) {
    let mut holders = holders.lock().unwrap_or_else(PoisonError::into_inner);
    let at_work = holders.entry(delivery.id().to_owned()).or_default();
    at_work.retain(|(engine, _)| !engine.is_crashed());
    for (_, other) in at_work.iter() {
        if !other.is_lost() && !delivery.is_lost() {
            truth.violated(format!("{} is in two hands", delivery.id()));
        }
    }
    at_work.push((engine.clone(), delivery.clone()));
}

/// A handler at work, until it ends or is dropped.
struct Present {
    holders: Holders,
    delivery: Delivery,
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at_work) = holders.get_mut(self.delivery.id()) {
            let nonce = self.delivery.attempt().nonce();
            at_work.retain(|(_, held)| held.attempt().nonce() != nonce);
        }
    }
}

async fn handle(
    truth: &Truth,
    engine: &FaultyEngine,
    delivery: &Delivery,
    mut rng: Rng,
    is_calm: bool,
) -> Result<Option<Json>, Failure> {
    let pause = |most: f64, rng: &mut Rng| tokio::time::sleep(LEASE.mul_f64(rng.f64() * most));
    match truth.kind(delivery.id()) {
        Kind::Innocent => {
            // What the job says is not worth a failure.
            let _ = delivery.activity("working", None).await;
            pause(0.3, &mut rng).await;
            let _ = delivery.progress(1, Some(2)).await;
            Ok(Some(Json::from_integer(1)))
        }
        Kind::Long => {
            pause(3.0, &mut rng).await;
            Ok(Some(Json::from_integer(2)))
        }
        Kind::FailsOnce if delivery.number() == 1 => Err("not yet".into()),
        Kind::FailsOnce => Ok(None),
        Kind::Broken => Err("it is broken".into()),
        // In calm weather nobody dies.
        Kind::Poisoned if is_calm => Err("it is broken".into()),
        Kind::Poisoned => {
            pause(0.1, &mut rng).await;
            engine.kill();
            std::future::pending().await
        }
    }
}
