//! Where things lie in the table.
//!
//! The table's key is `p` (partition) and `s` (sort), both binary; DynamoDB orders the items of a partition by the
//! bytes of `s`. A key is split into its *root*, which is its first segments, and the rest, both in the tuple
//! encoding:
//!
//! | `p` | `s` | is |
//! |---|---|---|
//! | `e` root | `00` | the entry whose key is the root itself |
//! | `e` root | `01` rest | the entry below the root: `01` stands for the separator |
//! | `r` | `01` root | the root is, or was, in use |
//! | `h` | `01` | what the table is: its format, how many segments a root has, and an id that no other table has |
//!
//! No part is empty, which DynamoDB does not allow. An entry has these attributes besides:
//!
//! | attribute | type | is |
//! |---|---|---|
//! | `v` | string | its version |
//! | `n` | number | its value, if that is a whole number of 64 bits |
//! | `j` | string | its value as JSON text, if it is anything else |
//! | `m` | string | its metadata as JSON text, if it has any |
//! | `e` | number | its end in milliseconds since 1970, if it has one |
//! | `t` | number | some seconds after its end, since 1970: when DynamoDB may delete the item (TTL) |

use bytes::Bytes;
use keyward_engine::Order;
use keyward_key::{Key, KeyRange};

/// The longest key: its root is the sort key of its row among the roots, and its rest the sort key of its
/// entry. Each has one byte before it, and DynamoDB takes 1,024.
pub(crate) const KEY_BYTES_MAX: usize = SORT_BYTES_MAX - 1;
const SORT_BYTES_MAX: usize = 1_024;

pub(crate) const PARTITION: &str = "p";
pub(crate) const SORT: &str = "s";

/// The partition of roots.
pub(crate) const ROOTS: &[u8] = b"r";
/// The place of what the table is.
pub(crate) const HEADER: &[u8] = b"h";
pub(crate) const HEADER_SORT: &[u8] = &[BELOW];

const ENTRIES: u8 = b'e';
const ITSELF: u8 = 0x00;
const BELOW: u8 = 0x01;
const SEPARATOR: u8 = 0x00;

/// How keys are split into roots and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// How many segments a root has. Shorter keys are roots of their own.
    pub(crate) segments: usize,
}

/// A place in the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) partition: Vec<u8>,
    pub(crate) sort: Vec<u8>,
}

/// Sort keys from one to another; `None` is "to the end".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// Included, unless it was cut.
    pub(crate) from: Edge,
    /// Excluded, unless it was cut.
    pub(crate) to: Option<Edge>,
}

/// A sort key to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) sort: Vec<u8>,
    /// DynamoDB takes no bound that is longer than a key. What is left of a longer one is just before it, and no key lies
    /// between the two.
    is_cut: bool,
}

impl Edge {
    fn new(mut sort: Vec<u8>) -> Self {
        let is_cut = sort.len() > SORT_BYTES_MAX;
        sort.truncate(SORT_BYTES_MAX);
        Self { sort, is_cut }
    }
}

impl Span {
    /// The edge where a query begins, if it is not included. DynamoDB's `BETWEEN` includes both, so going down, a page
    /// that ended there would begin with the same row again, and might never get past it. No entry lies at an edge that was
    /// cut: its sort key would be longer than any entry's.
    pub(crate) fn begins_after(&self, order: Order) -> Option<&[u8]> {
        let to = self.to.as_ref().filter(|to| order == Order::Descending && !to.is_cut);
        to.map(|to| &to.sort[..])
    }

    fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| match to.is_cut {
            true => to.sort < self.from.sort,
            false => to.sort <= self.from.sort,
        })
    }
}

impl Layout {
    /// The root of an encoded key, or of any bytes to compare with: all up to the separator that ends it.
    pub(crate) fn root<'b>(&self, encoded: &'b [u8]) -> &'b [u8] {
        let end = memchr::memchr_iter(SEPARATOR, encoded).nth(self.segments.saturating_sub(1));
        encoded.get(..end.unwrap_or(encoded.len())).unwrap_or(encoded)
    }

    pub(crate) fn place(&self, key: &Key) -> Place {
        let root = self.root(key.as_bytes());
        Place { partition: partition(root), sort: sort(key.as_bytes(), root.len()) }
    }

    /// The only root that a range reaches into, if there is only one.
    pub(crate) fn only_root<'r>(&self, range: &'r KeyRange) -> Option<&'r [u8]> {
        let root = self.root(range.start());
        let is_whole = memchr::memchr_iter(SEPARATOR, root).count() + 1 == self.segments;
        let end = range.end()?;
        // Everything of the root lies before this, and every other root after it.
        let after = [root, &[SEPARATOR + 1]].concat();
        (is_whole && end <= &after[..]).then_some(root)
    }

    /// The rows of roots that a range may reach into.
    pub(crate) fn roots_in(&self, range: &KeyRange) -> Span {
        let bound = |bytes: &[u8]| Edge::new([&[BELOW], bytes].concat());
        Span { from: bound(self.root(range.start())), to: range.end().map(bound) }
    }

    /// The part of a root that a range may reach into; none if it certainly has nothing of it.
    pub(crate) fn span(&self, root: &[u8], range: &KeyRange) -> Option<Span> {
        let from = match bound(root, range.start()) {
            Bound::Before => Edge::new(vec![ITSELF]),
            Bound::Within(edge) => edge,
            Bound::After => return None,
        };
        let to = match range.end().map(|end| bound(root, end)) {
            Some(Bound::Before) => return None,
            Some(Bound::Within(edge)) => Some(edge),
            Some(Bound::After) | None => None,
        };
        Some(Span { from, to }).filter(|span| !span.is_empty())
    }
}

/// Where a bound lies, as seen from the keys of a root.
enum Bound {
    Before,
    Within(Edge),
    After,
}

fn bound(root: &[u8], bytes: &[u8]) -> Bound {
    match bytes.strip_prefix(root) {
        Some([]) => Bound::Within(Edge::new(vec![ITSELF])),
        Some([SEPARATOR, ..]) => Bound::Within(Edge::new(sort(bytes, root.len()))),
        _ if bytes < root => Bound::Before,
        _ => Bound::After,
    }
}

pub(crate) fn partition(root: &[u8]) -> Vec<u8> {
    [&[ENTRIES], root].concat()
}

/// The sort key of a root's row.
pub(crate) fn root_sort(root: &[u8]) -> Vec<u8> {
    [&[BELOW], root].concat()
}

/// The root that a row is of.
pub(crate) fn root_of(sort: &[u8]) -> Option<&[u8]> {
    sort.strip_prefix(&[BELOW])
}

fn sort(encoded: &[u8], root: usize) -> Vec<u8> {
    match encoded.get(root + 1..) {
        None => vec![ITSELF],
        Some(rest) => [&[BELOW], rest].concat(),
    }
}

/// The key at a place; `None` if it is none of an entry's.
pub(crate) fn key(partition: &[u8], sort: &[u8]) -> Option<Key> {
    let root = partition.strip_prefix(&[ENTRIES])?;
    let encoded = match sort {
        [ITSELF] => Bytes::copy_from_slice(root),
        [BELOW, rest @ ..] => Bytes::from([root, &[SEPARATOR], rest].concat()),
        _ => return None,
    };
    Key::from_bytes(encoded).ok()
}

#[cfg(test)]
mod tests {
    use keyward_key::Prefix;

    use super::*;

    const ONE: Layout = Layout { segments: 1 };
    const TWO: Layout = Layout { segments: 2 };

    fn parsed(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn a_key_comes_back_from_its_place() {
        for text in ["a", "a:b", "a:b:c", ":", "::", "a:", ":a", "a%00:%01", "%00", "학:칙:2024"]
        {
            for layout in [ONE, TWO] {
                let place = layout.place(&parsed(text));
                assert_eq!(key(&place.partition, &place.sort), Some(parsed(text)), "{text}");
            }
        }
        assert_eq!(key(ROOTS, &root_sort(b"a")), None);
        assert_eq!(key(HEADER, HEADER_SORT), None);
    }

    #[test]
    fn places_are_in_the_order_of_keys() {
        let mut keys: Vec<Key> =
            ["a", "a:b", "a:", "a:b:c", "a:b:", "a-b", "a-b:c", "a%00:b", "ab", "ab:a", ":a"]
                .into_iter()
                .map(parsed)
                .collect();
        keys.sort();
        for layout in [ONE, TWO] {
            let places = keys.iter().map(|key| layout.place(key));
            let order: Vec<_> = places.map(|place| (place.partition, place.sort)).collect();
            assert!(order.is_sorted(), "{order:?}");
        }
    }

    #[test]
    fn a_range_below_a_root_reaches_into_no_other() {
        let under = KeyRange::under(&Prefix::parse("a").unwrap());
        assert_eq!(ONE.only_root(&under), Some(&b"a"[..]));
        assert_eq!(TWO.only_root(&under), None);
        let deeper = KeyRange::under(&Prefix::parse("a:b").unwrap());
        assert_eq!(ONE.only_root(&deeper), Some(&b"a"[..]));
        assert_eq!(TWO.only_root(&deeper), Some(&b"a\0b"[..]));
        assert_eq!(ONE.only_root(&KeyRange::subtree(&parsed("a"))), Some(&b"a"[..]));
        assert_eq!(ONE.only_root(&KeyRange::exactly(&parsed("a:b"))), Some(&b"a"[..]));
        assert_eq!(ONE.only_root(&KeyRange::all()), None);
        assert_eq!(ONE.only_root(&KeyRange::segment_prefix(&Prefix::all(), "a")), None);
    }

    #[test]
    fn spans_have_every_key_of_a_range() {
        let texts =
            ["a", "a:", "a:b", "a:b:c", "a:c", "a%00", "ab", "b:c", ":x", "a:%01", "a:%00:z"];
        let keys: Vec<Key> = texts.into_iter().map(parsed).collect();
        let mut ranges = vec![KeyRange::all()];
        for one in &keys {
            ranges.extend([
                KeyRange::exactly(one),
                KeyRange::subtree(one),
                KeyRange::under(&Prefix::from(one)),
            ]);
            ranges.extend([KeyRange::all().after(one), KeyRange::all().before(one)]);
        }
        for (layout, range) in
            [ONE, TWO].into_iter().flat_map(|it| ranges.iter().map(move |range| (it, range)))
        {
            for key in keys.iter().filter(|key| range.contains(key)) {
                let (root, sort) = (layout.root(key.as_bytes()), layout.place(key).sort);
                let inside = |span: &Span, it: &Vec<u8>| {
                    *it >= span.from.sort && span.to.as_ref().is_none_or(|to| *it < to.sort)
                };
                let span = layout.span(root, range);
                assert!(span.is_some_and(|span| inside(&span, &sort)), "{key} in {range:?}");
                assert!(inside(&layout.roots_in(range), &root_sort(root)), "{key} in {range:?}");
                if let Some(only) = layout.only_root(range) {
                    assert_eq!(only, root, "{key} in {range:?}");
                }
            }
        }
    }

    #[test]
    fn a_span_begins_after_what_it_does_not_include() {
        let range = KeyRange::under(&Prefix::parse("a").unwrap()).before(&parsed("a:b"));
        let span = ONE.span(b"a", &range).unwrap();
        assert_eq!(span.begins_after(Order::Descending), Some(&b"\x01b"[..]));
        assert_eq!(span.begins_after(Order::Ascending), None);
        assert_eq!(ONE.span(b"a", &KeyRange::all().before(&parsed("a"))), None);
        // A bound that is longer than any key is cut, and nothing lies where it was cut.
        let long = parsed(&format!("a:{}", "x".repeat(2_000)));
        let (after, before) = (KeyRange::all().after(&long), KeyRange::all().before(&long));
        let span = ONE.span(b"a", &after).unwrap();
        assert_eq!(span.begins_after(Order::Ascending), None);
        assert_eq!(span.from.sort.len(), SORT_BYTES_MAX);
        assert_eq!(ONE.span(b"a", &before).unwrap().begins_after(Order::Descending), None);
    }
}
