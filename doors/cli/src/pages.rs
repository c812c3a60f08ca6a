//! Reading a whole range, a page at a time.

use std::num::NonZeroUsize;

use keyward::{Key, KeyRange, Order, Row, Scan, Store, Want};

use crate::failure::Result;

/// Rows that a page has at most. An engine ends a page of large values earlier.
pub const ROWS_MAX: usize = 1_000;

/// All rows of a range, page after page, up to a limit. Each page is read at its own moment.
pub struct Pages<'s> {
    store: &'s Store,
    scan: Scan,
    without: Vec<Key>,
    left: usize,
    ended: bool,
}

impl<'s> Pages<'s> {
    /// The rows of a range.
    pub fn new(store: &'s Store, range: KeyRange, want: Want) -> Self {
        let scan = Scan { want, ..Scan::new(range) };
        Self { store, scan, without: Vec::new(), left: usize::MAX, ended: false }
    }

    /// The same, leaving out some keys and everything below them.
    #[must_use]
    pub fn without(mut self, without: Vec<Key>) -> Self {
        self.without = without;
        self
    }

    /// The same, at most `limit` of them.
    #[must_use]
    pub fn limit(mut self, limit: Option<NonZeroUsize>) -> Self {
        self.left = limit.map_or(usize::MAX, NonZeroUsize::get);
        self
    }

    /// The same, downwards if `reverse`.
    #[must_use]
    pub fn reverse(mut self, reverse: bool) -> Self {
        self.scan.order = order(reverse);
        self
    }

    /// The next rows; `None` at the end. Never an empty page.
    pub async fn next(&mut self) -> Result<Option<Vec<Row>>> {
        while !self.ended && self.left > 0 {
            self.scan.limit = self.left.min(ROWS_MAX);
            let page = self.store.scan_without(&self.scan, &self.without).await?;
            self.ended = page.next.is_none();
            self.scan.after = page.next;
            self.left -= page.rows.len();
            if !page.rows.is_empty() {
                return Ok(Some(page.rows));
            }
        }
        Ok(None)
    }
}

/// The order that `--reverse` asks for.
pub fn order(reverse: bool) -> Order {
    if reverse { Order::Descending } else { Order::Ascending }
}

#[cfg(test)]
mod tests {
    use keyward::{Commit, Json, Put};

    use super::*;

    async fn filled(rows: usize) -> Store {
        let store = keyward::open("memory:").await.unwrap();
        let put = Put::new(Json::from_integer(1));
        let key = |n| Key::parse(&format!("k:{n:06}")).unwrap();
        let commit = (0..rows).fold(Commit::new(), |commit, n| commit.put(key(n), put.clone()));
        assert!(store.commit(commit).await.unwrap().is_applied());
        store
    }

    async fn page_lengths(mut pages: Pages<'_>) -> Vec<usize> {
        let mut lengths = Vec::new();
        while let Some(rows) = pages.next().await.unwrap() {
            lengths.push(rows.len());
        }
        lengths
    }

    #[tokio::test]
    async fn every_row_comes_once() {
        let store = filled(2_500).await;
        for want in [Want::Keys, Want::Entries] {
            let lengths = page_lengths(Pages::new(&store, KeyRange::all(), want)).await;
            assert_eq!(lengths, [1_000, 1_000, 500]);
        }
    }

    #[tokio::test]
    async fn a_limit_ends_the_rows_also_within_a_page() {
        let store = filled(1_100).await;
        for limit in [1, 999, 1_000, 1_001, 5_000] {
            let pages = Pages::new(&store, KeyRange::all(), Want::Entries)
                .limit(NonZeroUsize::new(limit))
                .reverse(true);
            let rows: usize = page_lengths(pages).await.iter().sum();
            assert_eq!(rows, limit.min(1_100));
        }
    }
}
