//! Keeping the leases of what a worker has in hand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::lease::beat_all;
use crate::{Attempt, Queue, Status};

/// Whether a message is still in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Held,
    /// Others may have it.
    Lost,
    /// It is gone because somebody cancelled it.
    Cancelled,
}

/// Gives signs of life for everything in hand, one commit for all, every third of a lease. What no
/// sign could be given for within three quarters of a lease is lost: its lease may end.
#[derive(Debug)]
pub(super) struct Keeper {
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    queue: Queue,
    held: Mutex<State>,
    /// Something is new in hand.
    changed: Notify,
    /// Something may be gone: do not wait for the next beat.
    doubted: Notify,
}

#[derive(Debug, Default)]
struct State {
    tickets: u64,
    held: BTreeMap<u64, Item>,
}

#[derive(Debug)]
struct Item {
    attempt: Arc<Attempt>,
    deadline: Instant,
    hold: watch::Sender<Hold>,
}

/// Something in hand, until this is dropped.
pub(super) struct Held {
    shared: Arc<Shared>,
    ticket: u64,
}

impl Held {
    pub fn hold(&self) -> watch::Receiver<Hold> {
        match self.shared.state().held.get(&self.ticket) {
            Some(item) => item.hold.subscribe(),
            None => watch::Sender::new(Hold::Lost).subscribe(),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.shared.state().held.remove(&self.ticket).is_some() {
            self.shared.queue.metrics().held.dec();
        }
    }
}

impl Keeper {
    pub fn start(queue: &Queue) -> Self {
        let shared = Arc::new(Shared {
            queue: queue.clone(),
            held: Mutex::default(),
            changed: Notify::new(),
            doubted: Notify::new(),
        });
        let mut tasks = JoinSet::new();
        let (beating, timing) = (shared.clone(), shared.clone());
        tasks.spawn(async move { beating.beat().await });
        tasks.spawn(async move { timing.expire().await });
        Self { shared, _tasks: tasks }
    }

    /// Takes an attempt into hand.
    pub fn take(&self, attempt: Arc<Attempt>) -> u64 {
        let deadline = attempt.sent() + own_part(self.shared.queue.options().lease);
        let mut state = self.shared.state();
        state.tickets += 1;
        let ticket = state.tickets;
        let hold = watch::Sender::new(Hold::Held);
        state.held.insert(ticket, Item { attempt, deadline, hold });
        drop(state);
        self.shared.queue.metrics().held.inc();
        self.shared.changed.notify_one();
        ticket
    }

    /// What a ticket stands for; letting it go ends the beats.
    pub fn held(&self, ticket: u64) -> Held {
        Held { shared: self.shared.clone(), ticket }
    }

    /// Everything in hand.
    pub fn attempts(&self) -> Vec<Arc<Attempt>> {
        self.shared.state().held.values().map(|item| item.attempt.clone()).collect()
    }

    /// The index entries of these messages are gone: if one is in hand, find out at once.
    pub fn doubt(&self, ids: &[String]) {
        let state = self.shared.state();
        let is_held = |item: &Item| ids.iter().any(|id| id == item.attempt.id());
        if state.held.values().any(is_held) {
            self.shared.doubted.notify_one();
        }
    }
}

/// How long after its sending a sign of life is counted on.
fn own_part(lease: Duration) -> Duration {
    lease.mul_f64(0.75)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn beat(&self) {
        let lease = self.queue.options().lease;
        let mut next = lease / 3;
        loop {
            // Whichever comes first.
            let _ = tokio::time::timeout(next, self.doubted.notified()).await;
            next = match self.beat_once().await {
                true => lease / 3,
                // The store cannot be reached: soon again, while there is time.
                false => lease / 12,
            };
        }
    }

    /// One sign of life for all that is held; whether it could be given.
    async fn beat_once(&self) -> bool {
        let live: Vec<(u64, Arc<Attempt>)> = self
            .state()
            .held
            .iter()
            .filter(|(_, item)| *item.hold.borrow() == Hold::Held)
            .map(|(ticket, item)| (*ticket, item.attempt.clone()))
            .collect();
        if live.is_empty() {
            return true;
        }
        let sent = Instant::now();
        let attempts: Vec<&Attempt> = live.iter().map(|(_, attempt)| &**attempt).collect();
        let Ok(alive) = beat_all(&self.queue, &attempts).await else { return false };
        for ((ticket, attempt), alive) in live.iter().zip(alive) {
            if alive {
                if let Some(item) = self.state().held.get_mut(ticket) {
                    item.deadline = sent + own_part(self.queue.options().lease);
                }
            } else {
                let hold = self.reason(attempt).await;
                self.lose(*ticket, hold);
            }
        }
        self.changed.notify_one();
        true
    }

    /// Why an attempt is no longer the current one.
    async fn reason(&self, attempt: &Attempt) -> Hold {
        if !attempt.is_job() {
            return Hold::Lost;
        }
        match crate::jobs::final_status(&self.queue, attempt.id()).await {
            Ok(Some(Status::Trace(trace))) if trace.kind == "cancelled" => Hold::Cancelled,
            _ => Hold::Lost,
        }
    }

    fn lose(&self, ticket: u64, hold: Hold) {
        if let Some(item) = self.state().held.get(&ticket) {
            item.hold.send_replace(hold);
        }
    }

    /// Tells of what is lost, at the moment it is.
    async fn expire(&self) {
        loop {
            let now = Instant::now();
            let mut next: Option<Instant> = None;
            for item in self.state().held.values() {
                if *item.hold.borrow() != Hold::Held {
                    continue;
                }
                if item.deadline <= now {
                    item.hold.send_replace(Hold::Lost);
                } else {
                    next = Some(next.map_or(item.deadline, |next| next.min(item.deadline)));
                }
            }
            let changed = self.changed.notified();
            match next {
                Some(next) => drop(tokio::time::timeout_at(next, changed).await),
                None => changed.await,
            }
        }
    }
}
