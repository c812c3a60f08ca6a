//! Unique indexes that another program keeps where the schema declares one: its entries hold a bare id, not the
//! key of a record.

use keyward_engine::{Json, Scan, Store};
use keyward_key::{Key, KeyRange, Pattern};
use keyward_schema::{Index, Space as Declaration};

use crate::build::admitted;
use crate::index::Layout;
use crate::records::Records;
use crate::write::holder;
use crate::{Caller, Result};

/// How many entries are looked at. A program that keeps an index keeps all of it.
const LOOKED_AT: usize = 100;

impl Records {
    /// Whether another program keeps a unique index already: an entry of it names no record of the space. Looks at
    /// the first entries only.
    pub async fn is_kept_by_others(&self, space: &str, index: &Index) -> Result<bool> {
        let space = self.space(space, &Caller::operator())?;
        is_foreign(self.store(), space.declaration(), index).await
    }

    /// The keys of the entries that a record has in an index, whether or not the store keeps that index.
    pub fn entry_keys(
        &self,
        space: &str,
        index: &Index,
        record: &Key,
        value: &Json,
    ) -> Result<Vec<Key>> {
        let space = self.space(space, &Caller::operator())?;
        let owner = admitted(&space, record).owner;
        let entries = Layout::new(index.clone()).entries(owner.as_deref(), record, value)?;
        Ok(entries.into_iter().map(|entry| entry.key).collect())
    }

    /// The record that the entry of a unique index names, if it is one of the space.
    pub fn named_by(pattern: &Pattern, entry: &keyward_engine::Entry) -> Option<Key> {
        holder(entry).filter(|record| pattern.matches(record))
    }
}

pub(crate) async fn is_foreign(store: &Store, space: &Declaration, index: &Index) -> Result<bool> {
    let layout = Layout::new(index.clone());
    if !layout.is_unique() {
        return Ok(false);
    }
    let scan = Scan::new(KeyRange::under(layout.prefix())).limit(LOOKED_AT);
    let page = store.scan(&scan).await?;
    let entries = page.rows.iter().filter_map(|row| row.entry.as_ref());
    Ok(entries.into_iter().any(|entry| Records::named_by(&space.key, entry).is_none()))
}
