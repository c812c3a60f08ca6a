//! What is gathered of one entry.

use std::sync::Arc;

use jiff::Timestamp;
use keyward_key::Key;

use crate::access::AccessRow;

/// An access of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// The entry's key.
    pub entry: Key,
    /// When the entry was made.
    pub born: Box<str>,
    /// The agent; none for somebody who only may have prolonged the entry's life.
    pub agent: Option<Arc<str>>,
    /// When.
    pub at: Timestamp,
    /// When the entry ends.
    pub ends: Option<Timestamp>,
    /// How often it was read.
    pub count: u64,
}

/// Accesses that were gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub born: Box<str>,
    pub count: u64,
    pub last: Option<(Arc<str>, Timestamp)>,
    pub ends: Option<Timestamp>,
}

impl Part {
    fn new(note: Note) -> Self {
        let last = note.agent.map(|agent| (agent, note.at));
        Self { born: note.born, count: note.count, last, ends: note.ends }
    }

    /// What a row becomes by it.
    pub fn add_to(&self, row: &mut AccessRow) {
        row.count = row.count.saturating_add(self.count);
        if let Some((agent, at)) = &self.last {
            row.last(agent, *at);
        }
    }

    /// Whether it says something about an entry that nothing is known of yet.
    pub fn tells(&self) -> bool {
        self.count > 0 || self.last.is_some()
    }
}

/// What is gathered of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tally {
    waiting: Option<Part>,
    /// What is being written, with its number; what became of it may be unknown.
    under_way: Option<(u64, Part)>,
}

impl Tally {
    pub fn new(note: Note) -> Self {
        Self { waiting: Some(Part::new(note)), under_way: None }
    }

    pub fn note(&mut self, note: Note) {
        match &mut self.waiting {
            // Of an entry that is gone, nothing counts any more.
            Some(part) if part.born == note.born => {
                part.count = part.count.saturating_add(note.count);
                part.ends = note.ends;
                if let Some(agent) = note.agent {
                    part.last = Some((agent, note.at));
                }
            }
            waiting => *waiting = Some(Part::new(note)),
        }
    }

    /// The entry is gone.
    pub fn forget(&mut self) {
        self.waiting = None;
    }

    /// What is to be written, with its number; `number` is taken if it is not under way yet.
    pub fn send(&mut self, number: impl FnOnce() -> u64) -> Option<(u64, Part)> {
        if self.under_way.is_none() {
            self.under_way = self.waiting.take().map(|part| (number(), part));
        }
        self.under_way.clone()
    }

    /// Whether something is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// What was under way has arrived, or counts no more. Gives whether nothing is left.
    pub fn arrived(&mut self, number: u64) -> bool {
        if self.under_way.as_ref().is_some_and(|(it, _)| *it == number) {
            self.under_way = None;
        }
        self.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_none() && self.under_way.is_none()
    }

    /// Adds what a row does not have yet.
    pub fn add_to(&self, row: &mut AccessRow, born: &str, handle: &str) {
        if let Some((number, part)) = &self.under_way
            && *part.born == *born
            && !row.has(handle, *number)
        {
            part.add_to(row);
        }
        if let Some(part) = self.waiting.as_ref().filter(|part| *part.born == *born) {
            part.add_to(row);
        }
    }

    pub fn accesses(&self) -> u64 {
        let under_way = self.under_way.as_ref().map(|(_, part)| part.count);
        self.waiting.as_ref().map_or(0, |part| part.count) + under_way.unwrap_or(0)
    }
}
