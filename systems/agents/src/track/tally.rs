//! What is gathered of one entry.

use std::sync::Arc;

use jiff::Timestamp;

use super::notes::Note;
use crate::access::AccessRow;

/// Accesses that were gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub born: Box<str>,
    pub count: u64,
    pub last: Option<(Arc<str>, Timestamp)>,
    pub ends: Option<Timestamp>,
}

impl Part {
    fn new(note: Note<'_>) -> Self {
        let last = note.agent.map(|agent| (agent.clone(), note.at));
        Self {
            born: String::from_utf8_lossy(note.born).into(),
            count: note.count,
            last,
            ends: note.ends,
        }
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

/// How many entries that had the same key one after the other are told apart between two flushes. Of more,
/// the one goes that was noted first: it was deleted so often since.
const BEFORE_MAX: usize = 3;

/// What is gathered of one key: mostly of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tally {
    /// Of the entry that was noted last.
    waiting: Option<Part>,
    /// Of others that have or had the key. A note may come late, so that the last is not always of the entry
    /// that is there: which one is, the store says.
    before: Vec<Part>,
    /// What is being written, with its number; what became of it may be unknown.
    under_way: Option<(u64, Part)>,
}

impl Tally {
    pub fn new(note: Note<'_>) -> Self {
        Self { waiting: Some(Part::new(note)), before: Vec::new(), under_way: None }
    }

    pub fn note(&mut self, note: Note<'_>) {
        let same = |part: &&mut Part| part.born.as_bytes() == note.born;
        if let Some(part) = self.waiting.iter_mut().chain(&mut self.before).find(same) {
            part.count = part.count.saturating_add(note.count);
            part.ends = note.ends;
            match (note.agent, &mut part.last) {
                (None, _) => {}
                (Some(agent), Some((last, at))) if Arc::ptr_eq(agent, last) => *at = note.at,
                (Some(agent), last) => *last = Some((agent.clone(), note.at)),
            }
            return;
        }
        if let Some(earlier) = self.waiting.replace(Part::new(note)) {
            if self.before.len() >= BEFORE_MAX {
                self.before.remove(0);
            }
            self.before.push(earlier);
        }
    }

    /// When the entries were made that something waits of.
    pub fn born(&self) -> Vec<Box<str>> {
        self.parts().map(|part| part.born.clone()).collect()
    }

    /// The entries that were made then are gone.
    pub fn forget(&mut self, born: &[Box<str>]) {
        self.waiting.take_if(|part| born.contains(&part.born));
        self.before.retain(|part| !born.contains(&part.born));
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.before.iter().chain(&self.waiting)
    }

    /// What is to be written, with its number; `number` is taken if it is not under way yet.
    pub fn send(&mut self, number: impl FnOnce() -> u64) -> Option<(u64, Part)> {
        if self.under_way.is_none() {
            let next = match self.before.is_empty() {
                true => self.waiting.take(),
                false => Some(self.before.remove(0)),
            };
            self.under_way = next.map(|part| (number(), part));
        }
        self.under_way.clone()
    }

    /// Whether it takes more than one write.
    pub fn is_of_several(&self) -> bool {
        self.under_way.is_some() || !self.before.is_empty()
    }

    /// What was under way has arrived, or counts no more. Gives whether nothing is left.
    pub fn arrived(&mut self, number: u64) -> bool {
        if self.under_way.as_ref().is_some_and(|(it, _)| *it == number) {
            self.under_way = None;
        }
        self.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.parts().next().is_none() && self.under_way.is_none()
    }

    /// Adds what a row does not have yet.
    pub fn add_to(&self, row: &mut AccessRow, born: &str, handle: &str) {
        if let Some((number, part)) = &self.under_way
            && *part.born == *born
            && !row.has(handle, *number)
        {
            part.add_to(row);
        }
        for part in self.parts().filter(|part| *part.born == *born) {
            part.add_to(row);
        }
    }

    pub fn accesses(&self) -> u64 {
        let under_way = self.under_way.as_ref().map(|(_, part)| part.count);
        self.parts().map(|part| part.count).sum::<u64>() + under_way.unwrap_or(0)
    }
}
