//! What wakes those who wait for messages.

use std::time::Duration;

use futures_util::StreamExt;
use jiff::Timestamp;
use keyward_engine::{BoxStream, Change, ChangeKind, Event};
use tokio::time::Instant;

use crate::Queue;
use crate::moment::Moment;

/// What the feed of a queue's index says to who waits for messages.
#[derive(Debug)]
pub(crate) enum Signal {
    /// Something may be ready.
    Look,
    /// Something is to be looked at then.
    LookAt(Timestamp),
    /// These messages were moved or removed.
    Gone(Vec<String>),
}

/// The feed of a queue's index, begun anew when it ends.
pub(crate) struct Wake {
    queue: Queue,
    events: Option<BoxStream<'static, keyward_engine::Result<Event>>>,
    begin_at: Instant,
    begun: bool,
    pending: Vec<Signal>,
}

impl Wake {
    const AGAIN: Duration = Duration::from_secs(1);

    pub fn new(queue: &Queue) -> Self {
        Self {
            queue: queue.clone(),
            events: None,
            begin_at: Instant::now(),
            begun: false,
            pending: Vec::new(),
        }
    }

    /// Whether messages are told of.
    pub fn is_watching(&self) -> bool {
        self.begun
    }

    /// The next signal. Never ends; dropping the future loses nothing.
    pub async fn next(&mut self) -> Signal {
        loop {
            if let Some(signal) = self.pending.pop() {
                return signal;
            }
            let Some(events) = &mut self.events else {
                if !self.queue.store().capabilities().watch.is_supported() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep_until(self.begin_at).await;
                self.begin_at = Instant::now() + Self::AGAIN;
                let range = self.queue.inner.places.watched_range();
                self.events = Some(self.queue.store().watch(range, None));
                continue;
            };
            match events.next().await {
                Some(Ok(Event::Changed { changes, .. })) => self.take(&changes),
                Some(Ok(Event::Reached(_))) if self.begun => {}
                // What came before the watch began is found by looking now.
                Some(Ok(Event::Reached(_))) => {
                    self.begun = true;
                    return Signal::Look;
                }
                Some(Ok(Event::TooOld { .. }) | Err(_)) | None => {
                    self.events = None;
                    self.begun = false;
                }
            }
        }
    }

    fn take(&mut self, changes: &[Change]) {
        let places = &self.queue.inner.places;
        let mut gone = Vec::new();
        let mut due: Option<Moment> = None;
        let mut look = false;
        for Change { key, kind } in changes {
            let is_put = *kind == ChangeKind::Put;
            if let Some(entry) = places.due_entry(key) {
                if is_put {
                    due = Some(due.map_or(entry.at, |due| due.min(entry.at)));
                } else {
                    gone.push(entry.id);
                }
            } else {
                look |= (key == places.paused()) != is_put;
            }
        }
        if !gone.is_empty() {
            self.pending.push(Signal::Gone(gone));
        }
        self.pending.extend(due.map(|due| Signal::LookAt(due.time())));
        if look {
            self.pending.push(Signal::Look);
        }
    }
}
