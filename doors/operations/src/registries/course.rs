//! How a run goes that somebody began, and may wait for.

use std::time::Duration;

use keyward::Code;
use keyward::registry::Synced;
use tokio::sync::watch;

use crate::problem::{Problem, Result};

/// Where a run is.
#[derive(Debug, Clone)]
pub enum Stage {
    /// It is not known yet whether another one is under way.
    Beginning,
    /// It is under way.
    Running,
    /// It has ended, or was none.
    Ended(Box<Result<Synced>>),
}

/// A run that somebody began. It goes on when this is dropped.
#[derive(Debug)]
pub struct Course(watch::Receiver<Stage>);

/// What the run tells.
#[derive(Debug)]
pub(super) struct Told(watch::Sender<Stage>);

impl Course {
    pub(super) fn new() -> (Self, Told) {
        let (sender, receiver) = watch::channel(Stage::Beginning);
        (Self(receiver), Told(sender))
    }

    /// Where it is once it has begun.
    pub async fn begun(&mut self) -> Stage {
        self.reached(|stage| !matches!(stage, Stage::Beginning)).await
    }

    /// Where it is when it has ended, or after this time.
    pub async fn ended(&mut self, time_max: Duration) -> Stage {
        let ended = self.reached(|stage| matches!(stage, Stage::Ended(_)));
        match tokio::time::timeout(time_max, ended).await {
            Ok(stage) => stage,
            Err(_) => self.0.borrow().clone(),
        }
    }

    async fn reached(&mut self, there: impl FnMut(&Stage) -> bool) -> Stage {
        match self.0.wait_for(there).await {
            Ok(stage) => stage.clone(),
            // Whoever told of it is gone: it was dropped.
            Err(_) => Stage::Ended(Box::new(Err(stopping()))),
        }
    }
}

impl Told {
    /// That it is under way.
    pub fn begin(&self) {
        self.0.send_if_modified(|stage| {
            let is_new = matches!(stage, Stage::Beginning);
            if is_new {
                *stage = Stage::Running;
            }
            is_new
        });
    }

    /// How it ended.
    pub fn end(&self, ended: Result<Synced>) {
        self.0.send_replace(Stage::Ended(Box::new(ended)));
    }
}

pub(super) fn stopping() -> Problem {
    Problem::new(Code::Stopping, "the server is about to stop")
        .hint(
            "Ask again, at another server of the same store if there is one; the next run goes on.",
        )
        .retryable()
}
