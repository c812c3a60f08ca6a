//! What this process knows it has to do later: a queue in memory. Losing it loses nothing, since every piece of work
//! has its pending row in the coordinator.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use keyward_engine::Version;
use keyward_key::Key;

/// More work than this is left to the pending rows.
const QUEUED_MAX: usize = 100_000;

/// What to do with a key's pending row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// See whether the value store has the value, and push it if not.
    Push,
    /// The value was pushed, and enough time has passed: see that the value store shows it, and that the row still
    /// has this version.
    Confirm(Version),
}

/// The work of this process.
#[derive(Debug, Default)]
pub(crate) struct Work {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    steps: HashMap<Key, (Timestamp, Step)>,
    due: BTreeSet<(Timestamp, Key)>,
    /// Pending rows that are no longer needed, with the version that was confirmed.
    done: BTreeMap<Key, Version>,
    /// When to look for pending rows that other processes left.
    next_look: Option<Timestamp>,
}

impl Work {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a step for a key, instead of any other.
    pub fn plan(&self, key: &Key, at: Timestamp, step: Step) {
        let mut queue = self.queue();
        queue.forget(key);
        if queue.steps.len() < QUEUED_MAX {
            queue.steps.insert(key.clone(), (at, step));
            queue.due.insert((at, key.clone()));
        }
    }

    /// Whether something is planned for a key, or done.
    pub fn knows(&self, key: &Key) -> bool {
        let queue = self.queue();
        queue.steps.contains_key(key) || queue.done.contains_key(key)
    }

    /// Notes that the pending row of a key is no longer needed, in this version.
    pub fn finish(&self, key: &Key, version: Version) {
        let mut queue = self.queue();
        queue.forget(key);
        queue.done.insert(key.clone(), version);
    }

    /// Takes some of the steps that are due at `now`, the most overdue first.
    pub fn take_due(&self, now: Timestamp, limit: usize) -> Vec<(Key, Step)> {
        let mut queue = self.queue();
        let mut taken = Vec::new();
        while taken.len() < limit {
            let Some((at, key)) = queue.due.first().cloned() else { break };
            if at > now {
                break;
            }
            queue.due.pop_first();
            taken.extend(queue.steps.remove(&key).map(|(_, step)| (key, step)));
        }
        taken
    }

    /// Takes some finished keys that `is_free` lets go.
    pub fn take_done(&self, limit: usize, is_free: impl Fn(&Key) -> bool) -> Vec<(Key, Version)> {
        let mut queue = self.queue();
        let keys: Vec<Key> =
            queue.done.keys().filter(|key| is_free(key)).take(limit).cloned().collect();
        keys.into_iter().filter_map(|key| queue.done.remove_entry(&key)).collect()
    }

    /// Whether it is time to look for what others left; if so, the next time is at `next`.
    pub fn is_time_to_look(&self, now: Timestamp, next: Timestamp) -> bool {
        let mut queue = self.queue();
        let due = queue.next_look.is_some_and(|at| at <= now);
        if due || queue.next_look.is_none() {
            queue.next_look = Some(next);
        }
        due
    }

    /// How many keys have something planned.
    pub fn planned(&self) -> usize {
        self.queue().steps.len()
    }
}

impl Queue {
    fn forget(&mut self, key: &Key) {
        self.done.remove(key);
        if let Some((at, _)) = self.steps.remove(key) {
            self.due.remove(&(at, key.clone()));
        }
    }
}
