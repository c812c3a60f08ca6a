//! Reading around subtrees: what a reader leaves out is jumped over, not read and dropped.

use bytes::{BufMut, BytesMut};
use keyward_key::{Key, KeyRange};

use super::Store;
use crate::{Cursor, Error, Order, Page, Result, Scan, ScanOrder};

impl Store {
    /// One page of a range, as [`Store::scan`] reads it, without some keys and everything below them. On
    /// engines that keep an order, these are jumped over, whatever lies there. A cursor goes on only in a scan
    /// that leaves out the same.
    pub async fn scan_without(&self, scan: &Scan, without: &[Key]) -> Result<Page> {
        let pieces = pieces(&scan.range, without, scan.order);
        if pieces.len() == 1 && pieces.first() == Some(&scan.range) {
            return self.scan(scan).await;
        }
        if self.capabilities().scan_order == ScanOrder::Unordered {
            let mut page = self.scan(scan).await?;
            page.rows.retain(|row| pieces.iter().any(|piece| piece.contains(&row.key)));
            return Ok(page);
        }
        let (mut at, mut after) = match &scan.after {
            Some(cursor) => position(cursor, pieces.len())?,
            None => (0, None),
        };
        let limit = scan.limit.min(self.limits.scan_rows_max);
        let mut rows = Vec::new();
        while let Some(range) = pieces.get(at) {
            if limit > 0 && rows.len() >= limit {
                return Ok(Page { rows, next: Some(cursor(at, None)) });
            }
            let piece = Scan {
                range: range.clone(),
                after: after.take(),
                limit: limit - rows.len(),
                ..scan.clone()
            };
            let page = self.scan(&piece).await?;
            rows.extend(page.rows);
            // A page of large entries ends early.
            if let Some(next) = page.next {
                return Ok(Page { rows, next: Some(cursor(at, Some(&next))) });
            }
            at += 1;
        }
        Ok(Page { rows, next: None })
    }

    /// The cursor with which the same [`Store::scan_without`] goes on after one of its rows, for who takes only
    /// some rows of a page. None on engines that keep no order, whose pages are taken whole.
    pub fn cursor_after(&self, key: &Key, scan: &Scan, without: &[Key]) -> Option<Cursor> {
        if self.capabilities().scan_order == ScanOrder::Unordered {
            return None;
        }
        let pieces = pieces(&scan.range, without, scan.order);
        let after = Cursor::after_key(key);
        if pieces.len() == 1 && pieces.first() == Some(&scan.range) {
            return Some(after);
        }
        let piece = pieces.iter().position(|piece| piece.contains(key))?;
        Some(cursor(piece, Some(&after)))
    }
}

/// What is left of a range without some keys and everything below them, in the order of reading.
pub(super) fn pieces(range: &KeyRange, without: &[Key], order: Order) -> Vec<KeyRange> {
    let mut pieces = vec![range.clone()];
    for hidden in without.iter().map(KeyRange::subtree) {
        pieces = pieces.iter().flat_map(|piece| around(piece, &hidden)).collect();
    }
    pieces.sort_by(|one, other| one.start().cmp(other.start()));
    if order == Order::Descending {
        pieces.reverse();
    }
    pieces
}

/// What of a range lies before another one, and what after it.
fn around(range: &KeyRange, hidden: &KeyRange) -> impl Iterator<Item = KeyRange> {
    let end_before = match range.end() {
        Some(end) => end.min(hidden.start()),
        None => hidden.start(),
    };
    let before = KeyRange::from_bounds(range.start().to_vec(), Some(end_before.to_vec()));
    let after = hidden.end().map(|end| {
        let start = end.max(range.start()).to_vec();
        KeyRange::from_bounds(start, range.end().map(<[u8]>::to_vec))
    });
    [Some(before), after].into_iter().flatten().filter(|piece| !piece.is_empty())
}

/// At the start of a piece.
const START: u8 = b's';
/// After a cursor of the engine in a piece.
const AFTER: u8 = b'a';

/// Where a page ended: in which piece, and where in it.
fn cursor(piece: usize, after: Option<&Cursor>) -> Cursor {
    let within = after.map_or(&[][..], Cursor::as_bytes);
    let mut bytes = BytesMut::with_capacity(5 + within.len());
    bytes.put_u8(if after.is_some() { AFTER } else { START });
    // As many pieces as there are keys to leave out, and one more.
    bytes.put_u32(u32::try_from(piece).unwrap_or(u32::MAX));
    bytes.put_slice(within);
    Cursor::new(bytes)
}

/// Where a page goes on: in which of so many pieces, and where in it.
fn position(cursor: &Cursor, pieces: usize) -> Result<(usize, Option<Cursor>)> {
    let refused =
        || Error::invalid("the cursor does not belong to a scan that leaves out the same");
    let (tag, rest) = cursor.as_bytes().split_first().ok_or_else(refused)?;
    let (piece, within) = rest.split_first_chunk::<4>().ok_or_else(refused)?;
    let piece = u32::from_be_bytes(*piece) as usize;
    if piece >= pieces {
        return Err(refused());
    }
    match *tag {
        START if within.is_empty() => Ok((piece, None)),
        AFTER => Ok((piece, Some(Cursor::new(within.to_vec())))),
        _ => Err(refused()),
    }
}
