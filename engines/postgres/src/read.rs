//! Reading entries: one statement each.

use std::collections::HashMap;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use jiff::Timestamp;
use keyward_engine::{
    Cursor, Entry, Error, ErrorKind, Json, Order, Page, Result, Row as ScanRow, Scan, Version, Want,
};
use keyward_key::Key;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::client::{Client, Rows};
use crate::error::corrupt;

/// The entry of a key.
pub const GET: &str = "SELECT key, version, value, metadata, expires FROM keyward.entries
    WHERE store = $1 AND key = $2 AND (expires IS NULL OR expires > statement_timestamp())";
/// The entries of some keys. Not by `key = ANY`: see `schema/commit.sql`.
const GET_MANY: &str = "SELECT e.key, e.version, e.value, e.metadata, e.expires
    FROM unnest($2::bytea[]) AS u (key) CROSS JOIN LATERAL (
        SELECT * FROM keyward.entries WHERE store = $1 AND key = u.key LIMIT 1
    ) e
    WHERE e.expires IS NULL OR e.expires > statement_timestamp()";

/// The rows of a page, and one more if there is one: `$columns` of them, in the direction `$order`.
macro_rules! page {
    ($columns:literal, $order:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM keyward.entries
            WHERE store = $1 AND key >= $2 AND key < $3
                AND (expires IS NULL OR expires > statement_timestamp())
            ORDER BY key ",
            $order,
            " LIMIT $4::bigint + 1"
        )
    };
}

macro_rules! entries {
    ($order:literal) => {
        page!("key, version, value, metadata, expires", $order)
    };
}

/// The same, ending after the row with which it reaches a size. It costs a third more, so it is for
/// pages that are expected to.
macro_rules! entries_within {
    ($order:literal) => {
        concat!(
            "SELECT key, version, value, metadata, expires FROM (
                SELECT *, sum(octet_length(value)) OVER (ORDER BY key ",
            $order,
            " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes FROM (",
            entries!($order),
            ") page
            ) summed
            WHERE bytes IS NULL OR bytes < $5::bigint
            ORDER BY key ",
            $order
        )
    };
}

/// A page of entries, upwards.
pub const PAGE: &str = entries!("ASC");

/// How large a page may become: then it ends, however many rows were asked for, so that one of large
/// values fits into memory.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// Beyond every key: segments are UTF-8, which has no such byte.
const END: &[u8] = &[0xff];

impl Client {
    pub(crate) async fn get(&self, store: i32, key: &Key) -> Result<Option<Entry>> {
        let rows = self.read("cannot read", GET, &[&store, &key.as_bytes()]).await?;
        rows.first().map(entry).transpose()
    }

    pub(crate) async fn get_many(&self, store: i32, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        let rows = self.read("cannot read", GET_MANY, &[&store, &wanted]).await?;
        let mut found = HashMap::with_capacity(rows.len());
        for row in &rows {
            found.insert(row.try_get::<_, &[u8]>(0).map_err(corrupt)?, entry(row)?);
        }
        Ok(wanted.iter().map(|key| found.get(key).cloned()).collect())
    }

    pub(crate) async fn scan(&self, store: i32, scan: &Scan) -> Result<Page> {
        let range = scan.remaining();
        if range.is_empty() {
            return Ok(Page::default());
        }
        let start = match range.start_bound() {
            Bound::Included(start) | Bound::Excluded(start) => start,
            Bound::Unbounded => &[],
        };
        let end = match range.end_bound() {
            Bound::Included(end) | Bound::Excluded(end) => end,
            Bound::Unbounded => END,
        };
        let limit = i64::try_from(scan.limit).unwrap_or(i64::MAX - 1);
        let bytes_max = PAGE_BYTES_MAX as i64;
        let values: [&(dyn ToSql + Sync); 5] = [&store, &start, &end, &limit, &bytes_max];
        let expected = self.row_bytes.load(Ordering::Relaxed).saturating_mul(scan.limit);
        let within = scan.want == Want::Entries && expected > PAGE_BYTES_MAX / 2;
        let statement = match (scan.want, scan.order) {
            (Want::Entries, Order::Ascending) if within => entries_within!("ASC"),
            (Want::Entries, Order::Descending) if within => entries_within!("DESC"),
            (Want::Entries, Order::Ascending) => PAGE,
            (Want::Entries, Order::Descending) => entries!("DESC"),
            (Want::Keys, Order::Ascending) => page!("key", "ASC"),
            (Want::Keys, Order::Descending) => page!("key", "DESC"),
        };
        let (values, read_max) =
            if within { (&values[..], usize::MAX) } else { (&values[..4], PAGE_BYTES_MAX) };
        let Rows { rows, bytes, cut } =
            self.read_within("cannot scan", statement, values, read_max).await?;
        if scan.want == Want::Entries && !rows.is_empty() {
            self.row_bytes.store(bytes / rows.len(), Ordering::Relaxed);
        }
        let more = rows.len() > scan.limit || cut || (within && bytes >= PAGE_BYTES_MAX);
        let mut page = Page { rows: Vec::with_capacity(rows.len()), next: None };
        for row in rows.iter().take(scan.limit) {
            let key = Key::from_stored(column(row, 0)?);
            let entry = (scan.want == Want::Entries).then(|| entry(row)).transpose()?;
            page.rows.push(ScanRow { key, entry });
        }
        if more {
            page.next = page.rows.last().map(|row| Cursor::after_key(&row.key));
        }
        Ok(page)
    }
}

/// The entry in a row of key, version, value, metadata and end.
fn entry(row: &Row) -> Result<Entry> {
    let version: i64 = row.try_get(1).map_err(corrupt)?;
    let version = u64::try_from(version).map_err(|_| {
        Error::new(ErrorKind::Corrupt, format!("an entry has the version {version}"))
    })?;
    let metadata: Option<&[u8]> = row.try_get(3).map_err(corrupt)?;
    Ok(Entry {
        value: Json::from_stored(column(row, 2)?),
        metadata: metadata.map(|metadata| Json::from_stored(Bytes::copy_from_slice(metadata))),
        version: Version::from(version),
        expires: row.try_get::<_, Option<Timestamp>>(4).map_err(corrupt)?,
    })
}

fn column(row: &Row, at: usize) -> Result<Bytes> {
    row.try_get::<_, &[u8]>(at).map(Bytes::copy_from_slice).map_err(corrupt)
}
