use std::sync::Arc;
use std::time::Duration;

use keyward_engine::Json;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::keeper::Hold;
use crate::{Activity, Attempt, Progress, Result};

/// Progress is written at most this often; what comes in between goes with the next.
const TOLD_EVERY: Duration = Duration::from_millis(200);

/// A message in the hands of a handler. Clones are the same message.
#[derive(Debug, Clone)]
pub struct Delivery {
    attempt: Arc<Attempt>,
    hold: watch::Receiver<Hold>,
    stopping: watch::Receiver<bool>,
    told: Arc<Mutex<Told>>,
}

#[derive(Debug)]
struct Told {
    activity: Activity,
    at: Option<Instant>,
}

impl Delivery {
    pub(super) fn new(
        attempt: Arc<Attempt>,
        hold: watch::Receiver<Hold>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let activity = Activity {
            name: "running".to_owned(),
            attempt: attempt.number(),
            ..Activity::default()
        };
        let told = Arc::new(Mutex::new(Told { activity, at: None }));
        Self { attempt, hold, stopping, told }
    }

    /// The message's id.
    pub fn id(&self) -> &str {
        self.attempt.id()
    }

    /// What was enqueued.
    pub fn payload(&self) -> &Json {
        self.attempt.payload()
    }

    /// The version of its content, if it was given one.
    pub fn version(&self) -> Option<&str> {
        self.attempt.version()
    }

    /// Which attempt this is, counted from 1.
    pub fn number(&self) -> u32 {
        self.attempt.number()
    }

    /// Everything about the attempt. The worker ends it; a handler need not.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// Says what is being done, for those who watch the job. Does nothing for messages that are no
    /// jobs. [`Error::Lost`](crate::Error::Lost) if the message is no longer in hand; a store that
    /// cannot be reached just now is no reason to fail, and is told the next time.
    pub async fn activity(&self, name: &str, detail: Option<&str>) -> Result<()> {
        let mut told = self.told.lock().await;
        told.activity.name = name.to_owned();
        told.activity.detail = detail.map(str::to_owned);
        told.activity.progress = None;
        self.tell(&mut told).await
    }

    /// Says how far it is. Written a few times a second at most.
    pub async fn progress(&self, done: u64, total: Option<u64>) -> Result<()> {
        let mut told = self.told.lock().await;
        told.activity.progress = Some(Progress { done, total });
        match told.at {
            Some(at) if at.elapsed() < TOLD_EVERY => Ok(()),
            _ => self.tell(&mut told).await,
        }
    }

    async fn tell(&self, told: &mut Told) -> Result<()> {
        match self.attempt.tell(&told.activity).await {
            Ok(()) => told.at = Some(Instant::now()),
            Err(error) if error.is_passing() => told.at = None,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether others may have the message by now: whatever is done with it may be done twice.
    pub fn is_lost(&self) -> bool {
        // Without its worker, which keeps the lease, nothing is held.
        *self.hold.borrow() != Hold::Held || self.hold.has_changed().is_err()
    }

    /// Waits until the message is lost: its lease could not be kept, or it was cancelled, dropped or
    /// replaced. A handler that goes on is dropped after the worker's grace.
    pub async fn lost(&self) {
        let mut hold = self.hold.clone();
        // The worker is gone, and with it the lease.
        let _ = hold.wait_for(|hold| *hold != Hold::Held).await;
    }

    /// Waits until the job is cancelled; for ever, if it never is.
    pub async fn cancelled(&self) {
        let mut hold = self.hold.clone();
        if hold.wait_for(|hold| *hold == Hold::Cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the worker is asked to stop: what is not done within its grace is given back.
    pub async fn stopping(&self) {
        let mut stopping = self.stopping.clone();
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }
}
