//! The records of a space in the order of their keys, jumping over what belongs to other spaces.

use keyward_engine::{Cursor, Order, Row, Scan, ScanOrder, Store, Want};
use keyward_key::{Bindings, Key, KeyRange, Pattern, Prefix};

use crate::Result;
use crate::query::BUDGET_MAX;

/// How many rows are read at least, where what is too much can be left for the next page.
const ROWS_MIN: usize = 32;

/// A walk through the keys of a pattern.
pub(crate) struct Walk<'s> {
    pub store: &'s Store,
    pub pattern: &'s Pattern,
    pub range: KeyRange,
    pub order: Order,
    pub want: Want,
}

/// A part of a walk.
pub(crate) struct Walked {
    pub rows: Vec<Row>,
    /// Where to go on; `None` at the end.
    pub position: Option<Vec<u8>>,
    /// How many rows were read.
    pub read: usize,
}

impl<'s> Walk<'s> {
    /// Through all keys of a pattern: also the one that has nothing but the pattern's literals, where
    /// the rest of it is optional.
    pub fn whole(store: &'s Store, pattern: &'s Pattern, want: Want) -> Result<Self> {
        let range = pattern.range(&Bindings::new())?;
        Ok(Self { store, pattern, range, order: Order::Ascending, want })
    }

    /// The same without their entries.
    pub fn keys(store: &'s Store, pattern: &'s Pattern) -> Result<Self> {
        Self::whole(store, pattern, Want::Keys)
    }

    /// Whether there is nothing on the way.
    pub async fn is_empty(&self) -> Result<bool> {
        let walked = self.next(None, 1, BUDGET_MAX).await?;
        Ok(walked.rows.is_empty() && walked.position.is_none())
    }

    /// The next rows after a position: at most `limit`, and fewer if `budget` rows were read first.
    pub async fn next(
        &self,
        position: Option<Vec<u8>>,
        limit: usize,
        budget: usize,
    ) -> Result<Walked> {
        let ordered = self.store.capabilities().scan_order == ScanOrder::Ordered;
        let mut range = self.range.clone();
        let mut after = position.map(Cursor::new);
        let mut walked = Walked { rows: Vec::new(), position: None, read: 0 };
        let mut dead: Option<Prefix> = None;
        loop {
            let missing = limit - walked.rows.len();
            let least = if ordered { ROWS_MIN } else { 1 };
            let rows = missing.max(least).min((budget - walked.read).max(1));
            let scan = Scan {
                range: range.clone(),
                after,
                limit: rows,
                order: self.order,
                want: self.want,
            };
            let page = self.store.scan(&scan).await?;
            let next = page.next;
            let mut page = page.rows.into_iter();
            for row in page.by_ref() {
                walked.read += 1;
                if dead.as_ref().is_some_and(|dead| is_below(dead, &row.key)) {
                    continue;
                }
                let position = row.key.to_bytes().to_vec();
                if self.pattern.matches(&row.key) {
                    walked.rows.push(row);
                    dead = None;
                    // Only ordered engines give more rows than are missing.
                    if walked.rows.len() == limit && ordered {
                        let more = page.len() > 0 || next.is_some();
                        walked.position = more.then_some(position);
                        return Ok(walked);
                    }
                } else {
                    dead = self.pattern.none_below(&row.key);
                }
                walked.position = Some(position);
            }
            let Some(next) = next else {
                walked.position = None;
                return Ok(walked);
            };
            if !ordered {
                walked.position = Some(next.as_bytes().to_vec());
            }
            if walked.rows.len() >= limit || walked.read >= budget {
                return Ok(walked);
            }
            after = Some(next);
            if let (Some(dead), true) = (dead.take(), ordered) {
                range = match self.order {
                    Order::Ascending => range.after_prefix(&dead),
                    Order::Descending => range.before_prefix(&dead),
                };
                after = None;
                if range.is_empty() {
                    walked.position = None;
                    return Ok(walked);
                }
            }
        }
    }
}

fn is_below(prefix: &Prefix, key: &Key) -> bool {
    KeyRange::under(prefix).contains(key)
}
