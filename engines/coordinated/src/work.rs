//! What this process knows it has to do later: a queue in memory. Losing it loses nothing, since every piece of work
//! has its pending row in the coordinator.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use keyward_engine::{Cursor, Version};
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
    /// The keys to push, by the time.
    pushes: BTreeSet<(Timestamp, Key)>,
    /// The keys to confirm, likewise.
    confirms: BTreeSet<(Timestamp, Key)>,
    /// Pending rows that are no longer needed, with the version that was confirmed.
    done: BTreeMap<Key, Version>,
    /// When to look for pending rows that other processes left.
    next_look: Option<Timestamp>,
    /// How many tasks of this process may be sending a value of a key.
    flights: HashMap<Key, usize>,
    /// How far the last look has come; nothing, if it begins anew.
    looked: Option<Cursor>,
}

impl Work {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that values of some keys may be sent until the flight is dropped. To be noted before the values are
    /// committed, or read.
    pub fn begin(self: &Arc<Self>, keys: Vec<Key>) -> Flight {
        let mut queue = self.queue();
        for key in &keys {
            *queue.flights.entry(key.clone()).or_default() += 1;
        }
        drop(queue);
        Flight { work: self.clone(), keys }
    }

    /// How many flights a key has.
    pub fn flights(&self, key: &Key) -> usize {
        self.queue().flights.get(key).copied().unwrap_or_default()
    }

    /// Plans a step for a key, instead of any other.
    pub fn plan(&self, key: &Key, at: Timestamp, step: Step) {
        let mut queue = self.queue();
        queue.forget(key);
        if queue.steps.len() < QUEUED_MAX {
            queue.due(&step).insert((at, key.clone()));
            queue.steps.insert(key.clone(), (at, step));
        }
    }

    /// Whether this process has pushed the pending row of a key in this version.
    pub fn is_pushed(&self, key: &Key, version: &Version) -> bool {
        let queue = self.queue();
        let is_it = |step: &Step| matches!(step, Step::Confirm(pushed) if pushed == version);
        queue.steps.get(key).is_some_and(|(_, step)| is_it(step))
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

    /// Takes some of the steps that are due at `now`, pushes before confirmations and the most overdue first. A quarter
    /// is left to confirmations, so that values that the value store always refuses do not stop the others.
    pub fn take_due(&self, now: Timestamp, limit: usize) -> Vec<(Key, Step)> {
        let mut queue = self.queue();
        let mut taken = Vec::new();
        queue.take_pushes(now, limit - limit / 4, &mut taken);
        queue.take_confirms(now, limit, &mut taken);
        queue.take_pushes(now, limit, &mut taken);
        taken
    }

    /// Takes some of the pushes that are due at `now`.
    pub fn take_pushes(&self, now: Timestamp, limit: usize) -> Vec<(Key, Step)> {
        let mut taken = Vec::new();
        self.queue().take_pushes(now, limit, &mut taken);
        taken
    }

    /// Whether a step is due at `now`, or it is time to look for what others left.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let queue = self.queue();
        let is_due =
            |due: &BTreeSet<(Timestamp, Key)>| due.first().is_some_and(|(at, _)| *at <= now);
        is_due(&queue.pushes)
            || is_due(&queue.confirms)
            || queue.next_look.is_none_or(|at| at <= now)
    }

    /// Takes some finished keys that `is_free` lets go.
    pub fn take_done(&self, limit: usize, is_free: impl Fn(&Key) -> bool) -> Vec<(Key, Version)> {
        let mut queue = self.queue();
        let keys: Vec<Key> =
            queue.done.keys().filter(|key| is_free(key)).take(limit).cloned().collect();
        keys.into_iter().filter_map(|key| queue.done.remove_entry(&key)).collect()
    }

    /// Plans the next look for what others left, if none is planned.
    pub fn look_at(&self, at: Timestamp) {
        self.queue().next_look.get_or_insert(at);
    }

    /// Takes the look that is due, if one is, and where it goes on: at the beginning, or where the last one ended.
    pub fn take_look(&self, now: Timestamp) -> Option<Option<Cursor>> {
        let mut queue = self.queue();
        queue.next_look.take_if(|at| *at <= now).map(|_| queue.looked.take())
    }

    /// Notes how far a look has come, and when to go on.
    pub fn looked(&self, to: Option<Cursor>, next: Timestamp) {
        let mut queue = self.queue();
        queue.looked = to;
        queue.next_look = Some(next);
    }

    /// How many keys have something planned.
    pub fn planned(&self) -> usize {
        self.queue().steps.len()
    }
}

/// Values that may be on their way to the value store.
#[derive(Debug)]
pub(crate) struct Flight {
    work: Arc<Work>,
    keys: Vec<Key>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut queue = self.work.queue();
        for key in &self.keys {
            if let Some(count) = queue.flights.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    queue.flights.remove(key);
                }
            }
        }
    }
}

impl Queue {
    fn forget(&mut self, key: &Key) {
        self.done.remove(key);
        if let Some((at, step)) = self.steps.remove(key) {
            self.due(&step).remove(&(at, key.clone()));
        }
    }

    fn due(&mut self, step: &Step) -> &mut BTreeSet<(Timestamp, Key)> {
        match step {
            Step::Push => &mut self.pushes,
            Step::Confirm(_) => &mut self.confirms,
        }
    }

    fn take_pushes(&mut self, now: Timestamp, limit: usize, taken: &mut Vec<(Key, Step)>) {
        take(&mut self.pushes, &mut self.steps, now, limit, taken);
    }

    fn take_confirms(&mut self, now: Timestamp, limit: usize, taken: &mut Vec<(Key, Step)>) {
        take(&mut self.confirms, &mut self.steps, now, limit, taken);
    }
}

/// Moves steps that are due into `taken` until it has `limit`.
fn take(
    due: &mut BTreeSet<(Timestamp, Key)>,
    steps: &mut HashMap<Key, (Timestamp, Step)>,
    now: Timestamp,
    limit: usize,
    taken: &mut Vec<(Key, Step)>,
) {
    while taken.len() < limit && due.first().is_some_and(|(at, _)| *at <= now) {
        let Some((_, key)) = due.pop_first() else { break };
        taken.extend(steps.remove(&key).map(|(_, step)| (key, step)));
    }
}
