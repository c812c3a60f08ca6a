//! Each record once, in an index that has several entries of one record.

use std::collections::{BTreeSet, HashMap};

use keyward_engine::Order;
use keyward_key::{Key, KeyRange};

use crate::index::IndexEntry;
use crate::{Error, Result};

/// How many records of earlier pages a cursor remembers.
pub(super) const MARKS_MAX: usize = 1_000;
/// Stands for the number of marks where there were more.
const TOO_MANY: u16 = u16::MAX;
const COUNT_BYTES: usize = size_of::<u16>();
const MARK_BYTES: usize = size_of::<u32>();

/// The records that a question has given, as far as they can come again.
///
/// A record is left out only where it was given. That its value has an entry in the part that was
/// read is not enough: it may have got that entry after the part was read.
pub(crate) struct Once<'r> {
    range: &'r KeyRange,
    order: Order,
    /// Records of earlier pages that had entries ahead. `None` where nobody remembers: then what has
    /// an entry in the part that was read counts as given.
    before: Option<BTreeSet<u32>>,
    /// Records of this page, each with the last of its entries in the range.
    given: HashMap<Key, Key>,
}

impl<'r> Once<'r> {
    /// For a question's first page. Where the engine keeps no order, the parts that were read cannot
    /// be told from those ahead, and nothing is remembered.
    pub fn new(range: &'r KeyRange, order: Order, ordered: bool) -> Self {
        Self { range, order, before: ordered.then(BTreeSet::new), given: HashMap::new() }
    }

    /// Takes up what a cursor carries, and gives the engine's position in it.
    pub fn resume(&mut self, position: &[u8]) -> Result<Vec<u8>> {
        const TORN: Error = Error::BadCursor("it stands nowhere");
        let (count, rest) = position.split_first_chunk::<COUNT_BYTES>().ok_or(TORN)?;
        let count = u16::from_be_bytes(*count);
        if count == TOO_MANY {
            self.before = None;
            return Ok(rest.to_vec());
        }
        let (marks, rest) = rest.split_at_checked(usize::from(count) * MARK_BYTES).ok_or(TORN)?;
        let marks = marks.as_chunks::<MARK_BYTES>().0;
        if let Some(before) = &mut self.before {
            before.extend(marks.iter().map(|mark| u32::from_be_bytes(*mark)));
        }
        Ok(rest.to_vec())
    }

    /// What a cursor carries: the records that can come again, and the engine's position.
    pub fn position(&self, at: &[u8]) -> Vec<u8> {
        let marks = self.before.clone().map(|mut marks| {
            let ahead = self.given.iter().filter(|(_, last)| self.is_ahead(last.as_bytes(), at));
            marks.extend(ahead.map(|(primary, _)| mark(primary)));
            marks
        });
        let count = marks.as_ref().map(BTreeSet::len).filter(|count| *count <= MARKS_MAX);
        let count = count.and_then(|count| u16::try_from(count).ok());
        let mut position = count.unwrap_or(TOO_MANY).to_be_bytes().to_vec();
        if count.is_some() {
            position.extend(marks.into_iter().flatten().flat_map(u32::to_be_bytes));
        }
        position.extend_from_slice(at);
        position
    }

    /// Whether a record, found by one of its entries, was not given yet. Then it counts as given.
    pub fn is_new(&mut self, entry: &Key, primary: &Key, entries: &[IndexEntry]) -> bool {
        if self.given.contains_key(primary) {
            return false;
        }
        let inside = || entries.iter().map(|one| &one.key).filter(|key| self.range.contains(key));
        let last = match self.order {
            Order::Ascending => inside().max(),
            Order::Descending => inside().min(),
        };
        let last = last.unwrap_or(entry);
        let passed = inside().any(|key| self.is_ahead(entry.as_bytes(), key.as_bytes()));
        let came = match &mut self.before {
            // Most records come for the last time when their last entry does.
            Some(marks) if passed && last == entry => marks.remove(&mark(primary)),
            Some(marks) => passed && marks.contains(&mark(primary)),
            None => passed,
        };
        if !came {
            self.given.insert(primary.clone(), last.clone());
        }
        !came
    }

    /// Takes back that a record was given.
    pub fn forget(&mut self, primary: &Key) {
        self.given.remove(primary);
    }

    fn is_ahead(&self, key: &[u8], of: &[u8]) -> bool {
        match self.order {
            Order::Ascending => key > of,
            Order::Descending => key < of,
        }
    }
}

/// What a cursor remembers a record by. Two records with one mark do no harm, unless one of them was
/// given and the other one changes meanwhile.
fn mark(primary: &Key) -> u32 {
    let hash = blake3::hash(primary.as_bytes());
    let [a, b, c, d, ..] = *hash.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::null;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn entries(record: usize) -> Vec<IndexEntry> {
        ["a", "m"]
            .map(|tag| IndexEntry {
                key: key(&format!("index:tag:{tag}:{record:05}")),
                value: null(),
                unique: false,
            })
            .to_vec()
    }

    fn given(once: &mut Once<'_>, record: usize, tag: usize) -> bool {
        let entries = entries(record);
        once.is_new(&entries[tag].key, &key(&format!("n:{record}")), &entries)
    }

    #[test]
    fn what_a_cursor_carries_is_what_was_given_and_comes_again() {
        let range = KeyRange::all();
        let mut first = Once::new(&range, Order::Ascending, true);
        assert!(given(&mut first, 1, 0));
        assert!(!given(&mut first, 1, 1), "given twice on one page");
        assert!(given(&mut first, 2, 0));
        first.forget(&key("n:2"));
        let at = entries(2)[0].key.to_bytes();
        let carried = first.position(&at);
        let mut second = Once::new(&range, Order::Ascending, true);
        assert_eq!(second.resume(&carried).unwrap(), at);
        assert!(!given(&mut second, 1, 1), "given on two pages");
        assert!(given(&mut second, 2, 1), "what was taken back was not given");
        assert!(given(&mut second, 3, 1), "what got an earlier entry later was not given");
        // Whose last entry was passed does not come again.
        let end = second.position(entries(9)[1].key.as_bytes());
        assert_eq!(end[..COUNT_BYTES], [0, 0]);
    }

    #[test]
    fn a_cursor_does_not_grow_for_ever() {
        let range = KeyRange::all();
        let mut once = Once::new(&range, Order::Ascending, true);
        for record in 0..=MARKS_MAX {
            assert!(given(&mut once, record, 0));
        }
        let carried = once.position(b"b");
        assert_eq!(carried.len(), COUNT_BYTES + 1);
        let mut next = Once::new(&range, Order::Ascending, true);
        next.resume(&carried).unwrap();
        assert!(!given(&mut next, 7, 1));
        assert!(given(&mut next, 7, 0));
    }

    #[test]
    fn a_torn_position_is_refused() {
        let range = KeyRange::all();
        let mut once = Once::new(&range, Order::Ascending, true);
        for torn in [&b""[..], &[0], &[0, 2, 1, 1, 1, 1]] {
            assert!(once.resume(torn).is_err());
        }
    }
}
