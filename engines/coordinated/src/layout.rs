//! The coordinator's keyspace: heads under the callers' own keys, everything else under one reserved prefix.

use keyward_engine::Order;
use keyward_key::{Key, KeyRange, Prefix};

/// How many bytes longer the key of a pending row is than the key it is about.
pub(crate) const PENDING_KEY_BYTES: usize = "system:coordinator:pending:".len();

const COPIED: [&str; 3] = ["system", "coordinator", "copied"];
const PENDING: [&str; 3] = ["system", "coordinator", "pending"];

/// The row that says what this coordinator is for: `system:coordinator:store`.
pub(crate) fn store_row() -> Key {
    Key::from_segments(["system", "coordinator", "store"]).expect("it has segments")
}

/// The row of a key whose value is on its way to the value store: `system:coordinator:pending:{key}`.
pub(crate) fn pending(key: &Key) -> Key {
    Prefix::from_segments(PENDING).join(key)
}

/// The key that a pending row is about.
pub(crate) fn pending_subject(row: &Key) -> Option<Key> {
    row.tail(PENDING.len())
}

/// All pending rows.
pub(crate) fn pending_range() -> KeyRange {
    KeyRange::under(&Prefix::from_segments(PENDING))
}

/// The row that says that adoption has copied a key: `system:coordinator:copied:{key}`. It is shorter than that of
/// [`pending`], so every key has room for it.
pub(crate) fn copied(key: &Key) -> Key {
    Prefix::from_segments(COPIED).join(key)
}

/// All rows of [`copied`].
pub(crate) fn copied_range() -> KeyRange {
    KeyRange::under(&Prefix::from_segments(COPIED))
}

/// Everything that belongs to this engine itself: `system:coordinator` and what lies below.
pub(crate) fn reserved_range() -> KeyRange {
    let name = Some("coordinator");
    KeyRange::between(&Prefix::from_segments(["system"]), name, name)
}

/// Whether a key belongs to this engine itself.
pub(crate) fn is_reserved(key: &Key) -> bool {
    reserved_range().contains(key)
}

/// The parts of a range that lie outside [`reserved_range`], in the order of a scan.
pub(crate) fn visible_pieces(range: &KeyRange, order: Order) -> Vec<KeyRange> {
    let reserved = reserved_range();
    let before_end = match range.end() {
        Some(end) => end.min(reserved.start()),
        None => reserved.start(),
    };
    let after_start = range.start().max(reserved.end().unwrap_or_default());
    let before = KeyRange::from_bounds(range.start().to_vec(), Some(before_end.to_vec()));
    let after = KeyRange::from_bounds(after_start.to_vec(), range.end().map(<[u8]>::to_vec));
    let mut pieces = vec![before, after];
    pieces.retain(|piece| !piece.is_empty());
    if order == Order::Descending {
        pieces.reverse();
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn the_pieces_of_a_range_hold_everything_but_the_reserved_keys() {
        let keys = ["a", "system", "system:coordinato", "system:coordinator-x", "system:d", "z"];
        let hidden =
            ["system:coordinator", "system:coordinator:store", "system:coordinator:pending:a"];
        let pieces = visible_pieces(&KeyRange::all(), Order::Ascending);
        let shown = |text: &str| pieces.iter().filter(|piece| piece.contains(&key(text))).count();
        assert!(keys.into_iter().all(|text| shown(text) == 1));
        assert!(hidden.into_iter().all(|text| shown(text) == 0));
        assert!(hidden.into_iter().all(|text| is_reserved(&key(text))));
        let within = KeyRange::under(&Prefix::parse("system:coordinator:pending").unwrap());
        assert_eq!(visible_pieces(&within, Order::Ascending), []);
    }

    #[test]
    fn a_pending_row_names_its_key() {
        let subject = key("user:a%3Ab:notes");
        let row = pending(&subject);
        assert_eq!(pending_subject(&row), Some(subject.clone()));
        assert!(pending_range().contains(&row));
        assert_eq!(row.as_bytes().len(), subject.as_bytes().len() + PENDING_KEY_BYTES);
    }
}
