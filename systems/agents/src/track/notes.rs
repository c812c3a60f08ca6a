//! What was noted of accesses, until it is added up.

use std::sync::Arc;

use jiff::Timestamp;

/// How many bytes of room are kept for the keys of the next notes, and as many for the rest.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// An access of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note<'n> {
    /// The entry's key, encoded.
    pub entry: &'n [u8],
    /// When the entry was made, as its record says it.
    pub born: &'n [u8],
    /// The agent; none for somebody who only may have prolonged the entry's life.
    pub agent: Option<&'n Arc<str>>,
    /// When.
    pub at: Timestamp,
    /// When the entry ends.
    pub ends: Option<Timestamp>,
    /// How often it was read.
    pub count: u64,
}

/// Notes in the order in which they were made, their texts one behind the other: noting copies a few bytes
/// into room that is there. A note with memory of its own would have it taken by the thread that reads, and
/// given back by the one that adds up, which costs a read as much again.
#[derive(Debug, Default)]
pub(super) struct Notes {
    heads: Vec<Head>,
    keys: Vec<u8>,
    born: Vec<u8>,
    /// Those of the notes; one that follows itself, as the same handle has it, stands here once.
    agents: Vec<Arc<str>>,
}

/// A note without its texts.
#[derive(Debug, Clone, Copy)]
struct Head {
    key_end: usize,
    born_end: usize,
    agent: Option<usize>,
    at: Timestamp,
    ends: Option<Timestamp>,
    count: u64,
}

impl Notes {
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    pub fn push(&mut self, note: Note<'_>) {
        let agent = note.agent.map(|agent| self.place_of(agent));
        self.keys.extend_from_slice(note.entry);
        self.born.extend_from_slice(note.born);
        let Note { at, ends, count, .. } = note;
        let (key_end, born_end) = (self.keys.len(), self.born.len());
        self.heads.push(Head { key_end, born_end, agent, at, ends, count });
    }

    fn place_of(&mut self, agent: &Arc<str>) -> usize {
        if self.agents.last().is_none_or(|last| !Arc::ptr_eq(last, agent)) {
            self.agents.push(agent.clone());
        }
        self.agents.len() - 1
    }

    /// All notes, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Note<'_>> {
        let (mut key_start, mut born_start) = (0, 0);
        self.heads.iter().map(move |head| {
            let &Head { key_end, born_end, agent, at, ends, count } = head;
            let entry = &self.keys[key_start..key_end];
            let born = &self.born[born_start..born_end];
            (key_start, born_start) = (key_end, born_end);
            Note { entry, born, agent: agent.map(|agent| &self.agents[agent]), at, ends, count }
        })
    }

    /// Forgets all of them, and keeps room for as many, unless that is uncommonly much.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.keys.clear();
        self.keys.shrink_to(KEPT_BYTES_MAX);
        self.born.clear();
        self.born.shrink_to(KEPT_BYTES_MAX);
        self.agents.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note<'n>(entry: &'n [u8], born: &'n [u8], agent: Option<&'n Arc<str>>) -> Note<'n> {
        let at = Timestamp::from_second(entry.len() as i64).unwrap();
        let ends = agent.is_none().then_some(Timestamp::MAX);
        Note { entry, born, agent, at, ends, count: u64::from(agent.is_some()) }
    }

    #[test]
    fn notes_come_back_as_they_were_made_and_in_order() {
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let made = [
            note(b"user\0a", b"2026-01-01", Some(&ada)),
            note(b"user\0b", b"2026-01-02", Some(&ada)),
            note(b"", b"", None),
            note(b"user\0b", b"2026-01-02", Some(&bob)),
            note(b"user\0a", b"2026-01-01", Some(&ada)),
        ];
        let mut notes = Notes::default();
        for _ in 0..2 {
            made.iter().for_each(|note| notes.push(*note));
            assert_eq!((notes.len(), notes.agents.len()), (5, 3));
            assert!(notes.iter().eq(made));
            notes.clear();
            assert_eq!((notes.len(), notes.iter().count()), (0, 0));
        }
    }

    #[test]
    fn room_for_very_long_keys_is_given_back() {
        let mut notes = Notes::default();
        notes.push(note(&vec![b'k'; 2 * KEPT_BYTES_MAX], b"", None));
        notes.clear();
        assert!(notes.keys.capacity() <= KEPT_BYTES_MAX);
    }
}
