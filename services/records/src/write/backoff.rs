//! Pauses before something is tried again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use keyward_key::Key;

use crate::records::Shared;

/// How long the first pause is at most; each one after it may be twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
/// How long a pause is at most.
const PAUSE_MAX: Duration = Duration::from_millis(64);

/// Pauses that grow, of a length that differs between those who try at the same time: two rivals who
/// undo each other's work would else do so again and again.
pub(crate) struct Backoff<'s> {
    shared: &'s Shared,
    key: &'s Key,
    pauses: u32,
}

impl<'s> Backoff<'s> {
    /// For somebody who wants to change this key.
    pub fn new(shared: &'s Shared, key: &'s Key) -> Self {
        Self { shared, key, pauses: 0 }
    }

    /// Waits from half of the time that is due up to all of it.
    pub async fn pause(&mut self) {
        let due = PAUSE_FIRST.saturating_mul(1 << self.pauses.min(16)).min(PAUSE_MAX);
        self.pauses += 1;
        // Not random, so that a simulation can be repeated: others have another key, another moment
        // or another turn.
        let mut hasher = DefaultHasher::new();
        (self.key.as_bytes(), self.pauses).hash(&mut hasher);
        self.shared.clock.now().as_nanosecond().hash(&mut hasher);
        self.shared.turn().hash(&mut hasher);
        let half = due / 2;
        let share = u32::try_from(hasher.finish() >> 48).unwrap_or(0);
        tokio::time::sleep(half + half * share / (1 << 16)).await;
    }
}
