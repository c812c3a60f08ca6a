//! The last changes of a store, numbered.

use std::collections::VecDeque;

use keyward_engine::{Change, Error, ErrorKind, LogSlice, Revision};

/// How many changes are kept for watches that resume.
pub(crate) const CHANGES_MAX: usize = 10_000;
/// How many of them are given at once.
const SLICE_MAX: usize = 1_000;
/// How often in a row a session may begin again without having read anything.
pub(crate) const LOSSES_MAX: u32 = 5;
/// Revisions begin between these numbers: far enough apart that two processes never tell the same one, and small
/// enough for programs whose numbers are doubles.
const FIRST: std::ops::Range<u64> = 1 << 40..1 << 52;

/// The last changes, and where the feed is. Every change has the revision after the one before it.
pub(crate) struct Log<P> {
    changes: VecDeque<Change>,
    /// The revision of the last change.
    latest: Revision,
    /// The place in the feed after it, once the feed was read.
    pub position: Option<P>,
    pub session: Session,
    /// How many sessions have begun: the number of the last one.
    generation: u64,
    /// How often the place in the feed was lost since something was read.
    losses: u32,
}

/// Whether a task follows the feed.
#[derive(Debug, Clone)]
pub(crate) enum Session {
    /// None: nobody watches.
    None,
    /// One does that is still reading what has changed since the feed was last read.
    Starting,
    /// One does, and the log is as new as the feed.
    Following,
    /// The last one failed.
    Failed(Failure),
}

impl<P> Log<P> {
    pub fn new() -> Self {
        Self {
            changes: VecDeque::new(),
            latest: Revision(fastrand::u64(FIRST)),
            position: None,
            session: Session::None,
            generation: 0,
            losses: 0,
        }
    }

    /// Begins a session unless one goes on; gives its number.
    pub fn begin(&mut self) -> Option<u64> {
        if matches!(self.session, Session::Starting | Session::Following) {
            return None;
        }
        self.session = Session::Starting;
        self.generation += 1;
        Some(self.generation)
    }

    /// Whether a session is the last one, and goes on.
    pub fn is_active(&self, generation: u64) -> bool {
        self.generation == generation
            && matches!(self.session, Session::Starting | Session::Following)
    }

    pub fn latest(&self) -> Revision {
        self.latest
    }

    fn earliest(&self) -> Revision {
        Revision(self.latest.0 - self.changes.len() as u64)
    }

    /// Adds what was read, and drops what is too much.
    pub fn push(&mut self, changes: Vec<Change>, position: P) {
        self.latest.0 += changes.len() as u64;
        self.changes.extend(changes);
        let surplus = self.changes.len().saturating_sub(CHANGES_MAX);
        self.changes.drain(..surplus);
        self.position = Some(position);
        self.losses = 0;
    }

    /// Counts that the place in the feed was lost, in a row; `None` if that is too often. Then the next session takes
    /// another place, and fails as well if that one is lost before something was read.
    pub fn lose(&mut self) -> Option<u32> {
        if self.losses == LOSSES_MAX {
            self.position = None;
            return None;
        }
        self.losses += 1;
        Some(self.losses)
    }

    /// Begins again at another place of the feed. What lies between is not known, so nobody can resume from before.
    pub fn restart(&mut self, position: P) {
        self.changes.clear();
        self.latest.0 += 1;
        self.position = Some(position);
    }

    pub fn after(&self, revision: Revision) -> LogSlice {
        let earliest = self.earliest();
        if revision < earliest || revision > self.latest {
            return LogSlice::TooOld { earliest };
        }
        let read = (revision.0 - earliest.0) as usize;
        let changes = self.changes.iter().skip(read).take(SLICE_MAX).cloned();
        let revisions = (revision.0 + 1..).map(Revision);
        LogSlice::Commits(revisions.zip(changes.map(|change| vec![change])).collect())
    }
}

/// Why nobody follows a feed any more, for each of those who watched.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    kind: ErrorKind,
    message: String,
    advice: Option<String>,
}

impl Failure {
    pub fn new(error: &Error) -> Self {
        Self {
            kind: error.kind(),
            message: error.message().to_owned(),
            advice: error.advice().map(str::to_owned),
        }
    }

    pub fn error(&self) -> Error {
        let error = Error::new(self.kind, self.message.clone());
        match &self.advice {
            Some(advice) => error.advise(advice.clone()),
            None => error,
        }
    }
}
