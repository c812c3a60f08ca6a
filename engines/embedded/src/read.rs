//! Reading entries: copies out of the map, in short transactions.

use bytes::{Bytes, BytesMut};
use heed::RoTxn;
use keyward_engine::{Clock, Cursor, Entry, Order, Page, Result, Row, Scan, Want};
use keyward_key::Key;

use crate::environment::Environment;
use crate::error::from_lmdb;
use crate::record::{Now, Record};

/// A page ends early when it has gathered this much, so that a read transaction stays short and a
/// page of large values fits into memory.
const PAGE_BYTES_MAX: usize = 16 << 20;
/// A page ends early when it has passed this many expired rows.
const PAGE_EXPIRED_MAX: usize = 10_000;

/// A page's rows lie together in blocks of this size, so that a page costs a few allocations rather
/// than two a row. Who keeps a row keeps its block.
const BLOCK_BYTES: usize = 32 << 10;
/// What is larger than this has an allocation of its own.
const SHARED_BYTES_MAX: usize = 4 << 10;

impl Environment {
    pub(crate) fn get(&self, key: &Key, clock: &dyn Clock) -> Result<Option<Entry>> {
        let txn = self.read()?;
        self.get_in(&txn, key, &Now::of(clock))
    }

    pub(crate) fn get_many(&self, keys: &[Key], clock: &dyn Clock) -> Result<Vec<Option<Entry>>> {
        let txn = self.read()?;
        let now = Now::of(clock);
        keys.iter().map(|key| self.get_in(&txn, key, &now)).collect()
    }

    fn get_in(&self, txn: &RoTxn<'_>, key: &Key, now: &Now<'_>) -> Result<Option<Entry>> {
        let found = self.tables.entries.get(txn, key.as_bytes());
        let Some(bytes) = found.map_err(|error| from_lmdb("cannot read", error))? else {
            return Ok(None);
        };
        let record = Record::read_of(key.as_bytes(), bytes)?;
        Ok((!record.is_expired(now)).then(|| record.to_entry(Bytes::copy_from_slice)))
    }

    pub(crate) fn scan(&self, scan: &Scan, clock: &dyn Clock) -> Result<Page> {
        let range = scan.remaining();
        if range.is_empty() {
            return Ok(Page::default());
        }
        let txn = self.read()?;
        let now = Now::of(clock);
        let entries = self.tables.entries;
        let failed = |error| from_lmdb("cannot scan", error);
        match scan.order {
            Order::Ascending => gather(scan, &now, entries.range(&txn, &range).map_err(failed)?),
            Order::Descending => {
                gather(scan, &now, entries.rev_range(&txn, &range).map_err(failed)?)
            }
        }
    }
}

fn gather<'t>(
    scan: &Scan,
    now: &Now<'_>,
    rows: impl Iterator<Item = heed::Result<(&'t [u8], &'t [u8])>>,
) -> Result<Page> {
    let mut page = Page { rows: Vec::with_capacity(scan.limit.min(1_024)), next: None };
    let mut block = Block::new(scan.limit);
    let mut bytes = 0;
    let mut expired = 0;
    // The last row that was looked at: where a page that ends early goes on.
    let mut passed: Option<&[u8]> = None;
    for row in rows {
        let (key, record) = row.map_err(|error| from_lmdb("cannot scan", error))?;
        let record = Record::read_of(key, record)?;
        let live = !record.is_expired(now);
        let full = live && page.rows.len() == scan.limit;
        if full || bytes >= PAGE_BYTES_MAX || expired == PAGE_EXPIRED_MAX {
            page.next = passed.map(|key| Cursor::new(key.to_vec()));
            break;
        }
        passed = Some(key);
        if !live {
            expired += 1;
            continue;
        }
        let key_copy = Key::from_stored(block.copy(key));
        let entry =
            (scan.want == Want::Entries).then(|| record.to_entry(|bytes| block.copy(bytes)));
        bytes += key.len() + if entry.is_some() { record.size() } else { 0 };
        page.rows.push(Row { key: key_copy, entry });
    }
    Ok(page)
}

/// Memory that the rows of a page share.
struct Block(BytesMut);

impl Block {
    fn new(rows: usize) -> Self {
        Self(BytesMut::with_capacity(rows.saturating_mul(256).min(BLOCK_BYTES)))
    }

    fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.len() > SHARED_BYTES_MAX {
            return Bytes::copy_from_slice(bytes);
        }
        if self.0.capacity() < bytes.len() {
            self.0 = BytesMut::with_capacity(BLOCK_BYTES);
        }
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}
