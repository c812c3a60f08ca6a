use bytes::Bytes;
use keyward_key::{Key, KeyRange};

use crate::Entry;

/// Which part of a range to read, and how.
///
/// ```
/// use keyward_engine::{Order, Scan};
/// use keyward_key::{KeyRange, Prefix};
///
/// let newest = Scan::new(KeyRange::under(&Prefix::parse("log")?)).order(Order::Descending).limit(10);
/// assert_eq!(newest.limit, 10);
/// # Ok::<(), keyward_key::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The keys to read.
    pub range: KeyRange,
    /// Where an earlier page of the same scan ended.
    pub after: Option<Cursor>,
    /// At most this many rows.
    pub limit: usize,
    /// In which direction.
    pub order: Order,
    /// Whole entries, or only their keys.
    pub want: Want,
}

impl Scan {
    /// How many rows a page has when nothing else is said.
    pub const LIMIT_DEFAULT: usize = 100;

    /// The first page of a range: ascending, whole entries, [`Scan::LIMIT_DEFAULT`] rows.
    pub fn new(range: KeyRange) -> Self {
        Self {
            range,
            after: None,
            limit: Self::LIMIT_DEFAULT,
            order: Order::Ascending,
            want: Want::Entries,
        }
    }

    /// The same, going on where a page ended.
    #[must_use]
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.after = cursor;
        self
    }

    /// The same with at most `limit` rows.
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

    /// The same, reading only keys.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.want = Want::Keys;
        self
    }

    /// The range that is left after the cursor, on engines whose cursors are keys.
    pub fn remaining(&self) -> KeyRange {
        match (&self.after, self.order) {
            (None, _) => self.range.clone(),
            (Some(cursor), Order::Ascending) => self.range.after(&cursor.to_key()),
            (Some(cursor), Order::Descending) => self.range.before(&cursor.to_key()),
        }
    }
}

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// From the smallest key up.
    #[default]
    Ascending,
    /// From the largest key down.
    Descending,
}

/// What a scan reads of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Want {
    /// Everything.
    #[default]
    Entries,
    /// Only the key: values are neither copied nor sent.
    Keys,
}

/// Where a page ended: opaque to callers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor(Bytes);

impl Cursor {
    /// A cursor of an engine's own making.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The cursor after a key, on ordered engines.
    pub fn after_key(key: &Key) -> Self {
        Self(key.to_bytes())
    }

    /// The engine's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn to_key(&self) -> Key {
        Key::from_stored(self.0.clone())
    }
}

/// One row of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: Key,
    /// What it holds; `None` when only keys were asked for.
    pub entry: Option<Entry>,
}

/// One page of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The rows, in the order asked for.
    pub rows: Vec<Row>,
    /// Where to go on; `None` when the range is read to its end. A page may be short, even empty,
    /// and still have a next one.
    pub next: Option<Cursor>,
}
