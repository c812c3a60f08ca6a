//! The last commits of a store, kept once for everybody who watches it.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use keyward::{Change, Event, Revision};

/// How many commits the ring keeps at most.
pub(super) const RING_COMMITS_MAX: usize = 1_024;
/// How many bytes the commits of the ring may take, their texts included. One commit is always kept.
pub(super) const RING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The last commits of a store, oldest first.
#[derive(Debug)]
pub(super) struct Ring {
    commits: VecDeque<Arc<Commit>>,
    pub(super) bytes: usize,
    /// Every commit after this revision that has been read is in the ring.
    pub(super) after: Revision,
    /// Everything up to here has been read.
    at: Revision,
}

/// One commit of the ring, shared by everybody who watches.
#[derive(Debug)]
pub struct Commit {
    pub(super) revision: Revision,
    pub(super) event: Event,
    text: OnceLock<Bytes>,
}

/// An event for one watcher.
#[derive(Debug)]
pub enum Told {
    /// A commit of which the watcher sees every change.
    Shared(Arc<Commit>),
    /// An event for this watcher alone.
    Own(Event),
}

impl Told {
    /// The event.
    pub fn event(&self) -> &Event {
        match self {
            Self::Shared(commit) => &commit.event,
            Self::Own(event) => event,
        }
    }

    /// The event, owned.
    pub fn into_event(self) -> Event {
        match self {
            Self::Shared(commit) => commit.event.clone(),
            Self::Own(event) => event,
        }
    }

    /// The event as text. That of a shared commit is written once: there is one way to write events.
    pub fn text(&self, write: fn(&Event) -> Bytes) -> Bytes {
        match self {
            Self::Shared(commit) => commit.text.get_or_init(|| write(&commit.event)).clone(),
            Self::Own(event) => write(event),
        }
    }
}

impl Ring {
    pub(super) fn new(at: Revision) -> Self {
        Self { commits: VecDeque::new(), bytes: 0, after: at, at }
    }

    pub(super) fn push(&mut self, at: Revision, event: Event) {
        self.at = at;
        if let Event::Changed { changes, .. } = &event {
            self.bytes += weight(changes);
            let commit = Commit { revision: at, event, text: OnceLock::new() };
            self.commits.push_back(Arc::new(commit));
        }
        while self.commits.len() > RING_COMMITS_MAX
            || (self.bytes > RING_BYTES_MAX && self.commits.len() > 1)
        {
            let Some(oldest) = self.commits.pop_front() else { return };
            if let Event::Changed { changes, .. } = &oldest.event {
                self.bytes -= weight(changes);
            }
            self.after = oldest.revision;
        }
    }

    /// What comes after a revision.
    pub(super) fn next(&self, at: Revision) -> Next {
        if at < self.after {
            return Next::Gone(self.after);
        }
        let place = self.commits.partition_point(|commit| commit.revision <= at);
        match self.commits.get(place) {
            Some(commit) => Next::Commit(commit.clone()),
            None => Next::Nothing(self.at.max(at)),
        }
    }
}

pub(super) enum Next {
    Commit(Arc<Commit>),
    /// No commit up to this revision.
    Nothing(Revision),
    /// The ring begins after this revision.
    Gone(Revision),
}

/// How many bytes the changes of a commit take, about, with their text.
pub(super) fn weight(changes: &[Change]) -> usize {
    changes.iter().map(|change| 128 + 3 * change.key.as_bytes().len()).sum()
}
