//! All rows of a store in key order, of which one page is held.

use std::collections::VecDeque;

use keyward_engine::{Entry, Error, ErrorKind, Json, Result, Scan, ScanOrder, Store};
use keyward_key::{Key, KeyRange};

/// Rows that a page has at most. An engine ends a page of large values earlier.
const PAGE_ROWS_MAX: usize = 1_000;

/// A key and what it holds.
#[derive(Debug)]
pub(crate) struct Held {
    pub key: Key,
    pub entry: Entry,
}

impl Held {
    /// What it counts against the size of a commit.
    pub fn size(&self) -> usize {
        let metadata = self.entry.metadata.as_ref().map_or(0, Json::len);
        self.key.as_bytes().len() + self.entry.value.len() + metadata
    }
}

/// The rows of a store that are still to come. Each page is read at its own moment.
pub(crate) struct Rows<'s> {
    store: &'s Store,
    scan: Scan,
    page: VecDeque<Held>,
    ended: bool,
}

impl<'s> Rows<'s> {
    /// Every row of a store, which must scan in key order.
    pub fn of(store: &'s Store) -> Result<Self> {
        if store.capabilities().scan_order == ScanOrder::Unordered {
            let engine = store.capabilities().engine;
            let message = format!(
                "the {engine} engine keeps no key order, so its stores cannot be compared or copied"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let scan = Scan::new(KeyRange::all()).limit(PAGE_ROWS_MAX);
        Ok(Self { store, scan, page: VecDeque::new(), ended: false })
    }

    /// The next row, which stays; `None` at the end.
    pub async fn peek(&mut self) -> Result<Option<&Held>> {
        // A page may be empty and not the last one.
        while self.page.is_empty() && !self.ended {
            let page = self.store.scan(&self.scan).await?;
            self.ended = page.next.is_none();
            self.scan.after = page.next;
            for row in page.rows {
                let entry = row.entry.ok_or_else(|| {
                    Error::new(ErrorKind::Internal, "a scan of entries gave a key without one")
                })?;
                self.page.push_back(Held { key: row.key, entry });
            }
        }
        Ok(self.page.front())
    }

    /// Takes the row that [`Rows::peek`] showed.
    pub fn take(&mut self) -> Option<Held> {
        self.page.pop_front()
    }
}
