//! Listing keys level by level, without reading what lies deeper.

use bytes::{BufMut, BytesMut};
use keyward_key::{Key, KeyRange, Prefix};

use super::Store;
use super::without::pieces;
use crate::{Cursor, Error, Order, Result, Scan, ScanOrder};

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Below which prefix.
    pub prefix: Prefix,
    /// How many levels below the prefix are shown; what lies deeper shows as the prefix it shares.
    /// `None` lists every key.
    pub depth: Option<usize>,
    /// Where an earlier page of the same listing ended.
    pub after: Option<Cursor>,
    /// At most this many items.
    pub limit: usize,
    /// In which direction.
    pub order: Order,
    /// Keys that are left out, with everything below them. They are jumped over.
    pub without: Vec<Key>,
}

impl List {
    /// Every key below a prefix.
    pub fn new(prefix: Prefix) -> Self {
        Self {
            prefix,
            depth: None,
            after: None,
            limit: Scan::LIMIT_DEFAULT,
            order: Order::Ascending,
            without: Vec::new(),
        }
    }

    /// The same, showing only so many levels.
    #[must_use]
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = Some(depth);
        self
    }

    /// The same, going on where a page ended.
    #[must_use]
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.after = cursor;
        self
    }

    /// The same with at most `limit` items.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The same in another direction.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// The same, leaving out some keys and everything below them.
    #[must_use]
    pub fn without(mut self, without: Vec<Key>) -> Self {
        self.without = without;
        self
    }
}

/// One item of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// A key within the depth asked for.
    Key(Key),
    /// A prefix with keys below it that lie deeper.
    Prefix(Prefix),
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The items, in the order asked for.
    pub items: Vec<Listed>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// Scans for a depth-limited listing start small: one large subtree should not be read just to
/// learn that it is there.
const FIRST_SCAN_ROWS: usize = 16;

impl Store {
    /// Lists keys below a prefix, level by level if a depth is given. Each shared prefix is found
    /// and jumped over, whatever lies below it.
    pub async fn list(&self, list: &List) -> Result<Listing> {
        if list.limit == 0 {
            return Err(Error::invalid("a listing needs a limit of at least one item"));
        }
        let Some(depth) = list.depth else {
            return self.list_every_key(list).await;
        };
        if depth == 0 {
            return Err(Error::invalid("a listing shows at least one level"));
        }
        if self.capabilities().scan_order == ScanOrder::Unordered {
            return Err(Error::unsupported(format!(
                "the {} engine keeps no key order, so it cannot list by levels",
                self.capabilities().engine
            )));
        }

        let limit = list.limit.min(self.limits.scan_rows_max);
        let level = list.prefix.depth().saturating_add(depth);
        let mut remaining = KeyRange::under(&list.prefix);
        if let Some(cursor) = &list.after {
            remaining = past(&remaining, &listed_at(cursor)?, list.order);
        }
        let mut pieces = pieces(&remaining, &list.without, list.order).into_iter();
        let Some(mut remaining) = pieces.next() else { return Ok(Listing::default()) };
        let mut items: Vec<Listed> = Vec::new();
        let mut after = None;
        let mut rows = FIRST_SCAN_ROWS.min(self.limits.scan_rows_max);
        loop {
            let scan =
                Scan::new(remaining.clone()).after(after).order(list.order).limit(rows).keys_only();
            let page = self.read_page(&scan).await?;
            let before = items.len();
            let empty = page.rows.is_empty();
            for row in page.rows {
                let item = match row.key.ancestor(level) {
                    Some(prefix) => Listed::Prefix(prefix),
                    None => Listed::Key(row.key),
                };
                if items.last() != Some(&item) {
                    if items.len() == limit {
                        let next = items.last().map(cursor_after);
                        return Ok(Listing { items, next });
                    }
                    items.push(item);
                }
            }
            if page.next.is_none() {
                let Some(piece) = pieces.next() else {
                    return Ok(Listing { items, next: None });
                };
                (remaining, after) = (piece, None);
                continue;
            }
            after = match items.last() {
                Some(last) if !empty => {
                    remaining = past(&remaining, last, list.order);
                    None
                }
                // A page may be empty and not the last one; it shows nothing to jump over.
                _ => page.next,
            };
            let found = items.len() - before;
            rows = if found * 2 >= rows { rows * 2 } else { FIRST_SCAN_ROWS }
                .min(self.limits.scan_rows_max);
        }
    }

    async fn list_every_key(&self, list: &List) -> Result<Listing> {
        let scan = Scan {
            after: list.after.clone(),
            ..Scan::new(KeyRange::under(&list.prefix))
                .order(list.order)
                .limit(list.limit)
                .keys_only()
        };
        let page = self.scan_without(&scan, &list.without).await?;
        let items = page.rows.into_iter().map(|row| Listed::Key(row.key)).collect();
        Ok(Listing { items, next: page.next })
    }
}

/// What is left of a range once an item has been listed.
fn past(range: &KeyRange, item: &Listed, order: Order) -> KeyRange {
    match (item, order) {
        (Listed::Key(key), Order::Ascending) => range.after(key),
        (Listed::Key(key), Order::Descending) => range.before(key),
        (Listed::Prefix(prefix), Order::Ascending) => range.after_prefix(prefix),
        (Listed::Prefix(prefix), Order::Descending) => range.before_prefix(prefix),
    }
}

const KEY: u8 = b'k';
const PREFIX: u8 = b'p';

fn cursor_after(item: &Listed) -> Cursor {
    let (tag, key) = match item {
        Listed::Key(key) => (KEY, Some(key.clone())),
        Listed::Prefix(prefix) => (PREFIX, prefix.to_key()),
    };
    let encoded = key.as_ref().map_or(&[][..], Key::as_bytes);
    let mut bytes = BytesMut::with_capacity(1 + encoded.len());
    bytes.put_u8(tag);
    bytes.put_slice(encoded);
    Cursor::new(bytes)
}

fn listed_at(cursor: &Cursor) -> Result<Listed> {
    let refused = || Error::invalid("the cursor does not belong to a listing by levels");
    let (tag, encoded) = cursor.as_bytes().split_first().ok_or_else(refused)?;
    let key = || Key::from_bytes(encoded.to_vec()).map_err(|_| refused());
    match *tag {
        KEY => Ok(Listed::Key(key()?)),
        // The prefix of one empty segment has no key of its own.
        PREFIX if encoded.is_empty() => Ok(Listed::Prefix(Prefix::from_segments([""]))),
        PREFIX => Ok(Listed::Prefix(Prefix::from(&key()?))),
        _ => Err(refused()),
    }
}
