//! Writes of access fields whose outcome may be unknown.
//!
//! An ordinary store keeps the marks of such writes in the access row itself, so that one whose answer was lost is
//! recognised when the row is read again. A document has no field for marks. They are kept here, in this process,
//! together with what the fields were and what they were to become: from that, the fields tell whether the
//! write arrived.
//!
//! This is weaker in one case. If somebody else changes the access fields of the same document between a lost answer
//! and the next look, the two cannot be told apart, and the write counts as arrived if the count is high
//! enough: then the accesses of one flush of one entry can be lost. They are never counted twice: a write that cannot
//! be remembered is not sent.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use keyward_engine::{Error, ErrorKind, Result};

use crate::access::AccessRow;

/// How many writes are remembered at most.
const ATTEMPTS_MAX: usize = 65_536;

#[derive(Debug, Clone)]
pub(super) struct Attempt {
    before: AccessRow,
    intended: AccessRow,
    /// When it was last seen to have arrived, as a number that grows: its writer looks soon, and needs it no more.
    seen: Option<u64>,
}

pub(super) struct Attempts {
    held: Mutex<Held>,
    attempts_max: usize,
}

#[derive(Default)]
struct Held {
    /// By the document's id and by the writer: two of this process may write the same document.
    attempts: HashMap<String, HashMap<String, Attempt>>,
    count: usize,
    last: u64,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { held: Mutex::default(), attempts_max: ATTEMPTS_MAX }
    }
}

impl Attempts {
    /// Notes a write before it is sent, and gives the writer's earlier one that was noted before.
    pub fn begin(
        &self,
        id: &str,
        writer: &str,
        before: AccessRow,
        intended: AccessRow,
    ) -> Result<Option<Attempt>> {
        let mut held = self.held();
        let earlier = held.take(id, writer);
        // The room of the earlier one is enough.
        if held.count >= self.attempts_max {
            held.make_room()?;
        }
        held.put(id, writer, Attempt { before, intended, seen: None });
        Ok(earlier)
    }

    /// Whoever sent the write knows what became of it. What became of an earlier one may still be unknown.
    pub fn end(&self, id: &str, writer: &str, earlier: Option<Attempt>) {
        let mut held = self.held();
        held.take(id, writer);
        if let Some(earlier) = earlier {
            held.put(id, writer, earlier);
        }
    }

    /// Adds the marks of writes that have arrived.
    pub fn mark(&self, id: &str, row: &mut AccessRow) {
        let mut held = self.held();
        let now = held.last + 1;
        let Some(attempts) = held.attempts.get_mut(id) else { return };
        let mut marks = Vec::new();
        for Attempt { before, intended, seen } in attempts.values_mut() {
            if row.born == intended.born && row.count >= intended.count && row != before {
                marks.extend(intended.marks.last().cloned());
                *seen = Some(now);
            }
        }
        row.marks.extend(marks);
        held.last = now;
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn take(&mut self, id: &str, writer: &str) -> Option<Attempt> {
        let attempts = self.attempts.get_mut(id)?;
        let taken = attempts.remove(writer);
        if attempts.is_empty() {
            self.attempts.remove(id);
        }
        self.count -= usize::from(taken.is_some());
        taken
    }

    fn put(&mut self, id: &str, writer: &str, attempt: Attempt) {
        let attempts = self.attempts.entry(id.to_owned()).or_default();
        self.count += usize::from(attempts.insert(writer.to_owned(), attempt).is_none());
    }

    /// Forgets the write that was seen to have arrived the longest time ago.
    fn make_room(&mut self) -> Result<()> {
        let all = self.attempts.iter().flat_map(|(id, attempts)| {
            attempts.iter().map(move |(writer, attempt)| (attempt.seen, id, writer))
        });
        let seen = all.filter_map(|(seen, id, writer)| Some((seen?, id, writer)));
        let Some((_, id, writer)) = seen.min() else {
            let message = format!(
                "{} writes of access fields have an unknown outcome; no more are sent until it is known",
                self.count
            );
            return Err(Error::new(ErrorKind::Unavailable, message));
        };
        let (id, writer) = (id.clone(), writer.clone());
        self.take(&id, &writer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(count: u64, number: Option<u64>) -> AccessRow {
        let marks = number.map(|number| ("w".to_owned(), number, 0)).into_iter().collect();
        AccessRow { count, born: "b".to_owned(), marks, ..AccessRow::default() }
    }

    fn begin(attempts: &Attempts, id: &str, writer: &str, counts: [u64; 2]) -> Option<Attempt> {
        let mut intended = row(counts[1], Some(7));
        intended.marks[0].0 = writer.to_owned();
        attempts.begin(id, writer, row(counts[0], None), intended).unwrap()
    }

    fn has(attempts: &Attempts, writer: &str, count: u64) -> bool {
        let mut read = row(count, None);
        attempts.mark("d", &mut read);
        read.has(writer, 7)
    }

    #[test]
    fn a_write_that_arrived_is_known_by_the_fields() {
        let attempts = Attempts::default();
        assert!(begin(&attempts, "d", "w", [1, 3]).is_none());
        assert!(!has(&attempts, "w", 1) && !has(&attempts, "w", 2));
        assert!(has(&attempts, "w", 3) && has(&attempts, "w", 4));
        // A second try that conflicted leaves the first one in doubt.
        let earlier = begin(&attempts, "d", "w", [1, 9]);
        assert!(earlier.is_some() && !has(&attempts, "w", 3));
        attempts.end("d", "w", earlier);
        assert!(has(&attempts, "w", 3));
        attempts.end("d", "w", None);
        assert!(!has(&attempts, "w", 3));
    }

    #[test]
    fn writers_of_one_document_are_told_apart() {
        let attempts = Attempts::default();
        begin(&attempts, "d", "w", [1, 3]);
        begin(&attempts, "d", "v", [1, 6]);
        assert!(has(&attempts, "w", 3) && !has(&attempts, "v", 3));
        attempts.end("d", "v", None);
        assert!(has(&attempts, "w", 3));
        // Nothing is said about an entry that was made anew.
        let mut other = AccessRow { born: "c".to_owned(), ..row(9, None) };
        attempts.mark("d", &mut other);
        assert!(other.marks.is_empty());
    }

    #[test]
    fn no_write_in_doubt_is_forgotten_for_another() {
        let attempts = Attempts { attempts_max: 2, ..Attempts::default() };
        begin(&attempts, "a", "w", [0, 1]);
        begin(&attempts, "d", "w", [0, 1]);
        let refused = attempts.begin("c", "w", row(0, None), row(1, Some(7)));
        assert_eq!(refused.map(drop).unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(begin(&attempts, "a", "w", [0, 2]).is_some());
        assert!(has(&attempts, "w", 1));
        begin(&attempts, "c", "w", [0, 1]);
        assert!(!has(&attempts, "w", 1));
        assert!(attempts.begin("e", "w", row(0, None), row(1, Some(7))).is_err());
    }
}
