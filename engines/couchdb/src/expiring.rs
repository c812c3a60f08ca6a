//! Entries of which this process knows that they expire, until their documents are deleted.
//!
//! CouchDB deletes nothing by itself. Each commit deletes some documents whose end has come: those that this process
//! wrote, and those that a read came across.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use crate::rev::{Held, Rev};

/// How many are remembered. Of more, those that end last are left to whoever reads them.
const KNOWN_MAX: usize = 10_000;

/// Documents by the moment when they may be deleted.
#[derive(Debug, Default)]
pub(crate) struct Expiring {
    due: BTreeSet<(Timestamp, String)>,
    known: HashMap<String, (Timestamp, Rev)>,
}

impl Expiring {
    /// Notes what a document is now.
    pub fn note(&mut self, id: String, held: &Held) {
        self.forget(&id);
        let Some(at) = held.expires else { return };
        self.due.insert((at, id.clone()));
        self.known.insert(id, (at, held.rev.clone()));
        if self.due.len() > KNOWN_MAX
            && let Some((_, id)) = self.due.pop_last()
        {
            self.known.remove(&id);
        }
    }

    /// Forgets a document that is deleted, or does not expire any more.
    pub fn forget(&mut self, id: &str) {
        if let Some((at, _)) = self.known.remove(id) {
            self.due.remove(&(at, id.to_owned()));
        }
    }

    /// Takes out some documents whose end has come, each with the revision that expired.
    pub fn take(&mut self, now: Timestamp, max: usize) -> Vec<(String, Held)> {
        let mut taken = Vec::new();
        while taken.len() < max && self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, id)) = self.due.pop_first() else { break };
            if let Some((at, rev)) = self.known.remove(&id) {
                taken.push((id, Held { rev, expires: Some(at) }));
            }
        }
        taken
    }

    /// Notes again what was taken out, unless more is known of it since.
    pub fn give_back(&mut self, taken: Vec<(String, Held)>) {
        for (id, held) in taken {
            if !self.known.contains_key(&id) {
                self.note(id, &held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(generation: u64, second: Option<i64>) -> Held {
        let rev = Rev::parse(&format!("{generation}-{:032x}", generation)).unwrap();
        Held { rev, expires: second.map(|second| Timestamp::from_second(second).unwrap()) }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_is_due_is_taken_once_with_its_last_revision() {
        let mut expiring = Expiring::default();
        for (id, held) in [
            ("a", held(1, Some(5))),
            ("b", held(1, Some(3))),
            ("c", held(1, Some(1))),
            ("d", held(1, Some(2))),
            ("a", held(2, Some(4))),
            ("c", held(2, None)),
        ] {
            expiring.note(id.to_owned(), &held);
        }
        expiring.forget("d");
        expiring.forget("never known");
        assert_eq!(expiring.take(at(2), 10), []);
        assert_eq!(expiring.take(at(9), 1), [("b".to_owned(), held(1, Some(3)))]);
        assert_eq!(expiring.take(at(9), 10), [("a".to_owned(), held(2, Some(4)))]);
        assert_eq!(expiring.take(at(9), 10), []);
    }

    #[test]
    fn what_could_not_be_deleted_is_taken_again() {
        let mut expiring = Expiring::default();
        expiring.note("a".to_owned(), &held(1, Some(1)));
        expiring.note("b".to_owned(), &held(1, Some(1)));
        let taken = expiring.take(at(9), 10);
        expiring.note("b".to_owned(), &held(2, Some(7)));
        expiring.give_back(taken);
        let again = [("a".to_owned(), held(1, Some(1))), ("b".to_owned(), held(2, Some(7)))];
        assert_eq!(expiring.take(at(9), 10), again);
    }

    #[test]
    fn those_that_end_last_are_not_remembered() {
        let mut expiring = Expiring::default();
        for n in (0..=KNOWN_MAX as i64).rev() {
            expiring.note(n.to_string(), &held(1, Some(n)));
        }
        let taken = expiring.take(Timestamp::MAX, usize::MAX);
        assert_eq!(taken.len(), KNOWN_MAX);
        assert!(taken.iter().all(|(id, _)| *id != KNOWN_MAX.to_string()));
        assert!(expiring.known.is_empty());
    }
}
