//! Messages that a worker has seen, and others may take.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::FURTHER_MAX;
use crate::Queue;
use crate::look::Candidate;

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

#[cfg(test)]
mod tests {
    use keyward_engine::{Json, Store};
    use keyward_memory::Memory;
    use keyward_testkit::TestClock;

    use super::*;
    use crate::{Message, Options};

    async fn queue(messages: usize) -> Queue {
        let options = Options { seed: Some(1), ..Options::default() };
        let queue = Queue::new(Store::new(Memory::new()), "q", TestClock::new(), options).unwrap();
        let message = Message::new(Json::from_stored("1"));
        queue.enqueue_all(vec![message; messages]).await.unwrap();
        queue
    }

    fn ids(picked: &[Candidate]) -> Vec<String> {
        picked.iter().map(|candidate| candidate.entry.id.clone()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_is_picked_once_and_in_order() {
        let queue = queue(5).await;
        let seen = Seen::default();
        let looked = queue.look_only(9).await.unwrap();
        let all = ids(&looked);
        seen.keep(looked, false);
        assert!(seen.pick(&queue, 0).await.is_empty());
        let first = ids(&seen.pick(&queue, 2).await);
        let second = ids(&seen.pick(&queue, 9).await);
        assert_eq!([first, second].concat(), all);
        // Nothing is left, and nothing was said to be behind it.
        assert_eq!(seen.until(), None);
        assert!(seen.pick(&queue, 9).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_is_soon_forgotten() {
        let queue = queue(2).await;
        let seen = Seen::default();
        assert_eq!(seen.until(), None);
        seen.keep(queue.look_only(9).await.unwrap(), true);
        assert_eq!(seen.until(), Some(Instant::now() + Seen::FOR));
        tokio::time::advance(Seen::FOR).await;
        assert_eq!(seen.until(), None);
        assert!(seen.pick(&queue, 9).await.is_empty());
        seen.keep(queue.look_only(9).await.unwrap(), true);
        seen.forget();
        assert!(seen.pick(&queue, 9).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn where_there_is_more_it_is_looked_for() {
        let queue = queue(3).await;
        let seen = Seen::default();
        // A look has taken all that it saw.
        seen.keep(Vec::new(), true);
        assert!(seen.until().is_some());
        assert_eq!(seen.pick(&queue, 2).await.len(), 2);
        assert_eq!(seen.pick(&queue, 2).await.len(), 1);
    }
}
