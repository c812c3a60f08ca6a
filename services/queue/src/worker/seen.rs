//! Messages that a worker has seen, and others may take.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::FURTHER_MAX;
use crate::Queue;
use crate::claim::Candidate;

/// What the last look at the queue read beyond what was taken. It is nobody's: taking it checks that it
/// is still as it was.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    candidates: Vec<Candidate>,
    /// Whether there may be more behind them.
    more: bool,
    until: Option<Instant>,
}

impl Seen {
    /// How long something that was seen is thought to be as it was.
    const FOR: Duration = Duration::from_millis(50);

    /// Keeps what a look has just read.
    pub fn keep(&self, candidates: Vec<Candidate>, more: bool) {
        *self.state() = State { candidates, more, until: Some(Instant::now() + Self::FOR) };
    }

    pub fn forget(&self) {
        *self.state() = State::default();
    }

    /// Until when there is something to be picked.
    pub fn until(&self) -> Option<Instant> {
        let state = self.state();
        let has_some = !state.candidates.is_empty() || state.more;
        state.until.filter(|until| has_some && *until > Instant::now())
    }

    /// Picks up to so many; looks for more where all are gone that were seen. Nothing is picked by two
    /// at a time.
    pub async fn pick(&self, queue: &Queue, most: usize) -> Vec<Candidate> {
        if most == 0 || self.until().is_none() {
            return Vec::new();
        }
        if self.state().candidates.is_empty() {
            let found = queue.look_only(most + FURTHER_MAX).await.unwrap_or_default();
            let more = found.len() > most && queue.spread() == 0;
            self.keep(found, more);
        }
        let mut state = self.state();
        match state.candidates.is_empty() {
            true => Vec::new(),
            false => queue.pick(&mut state.candidates, most),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
