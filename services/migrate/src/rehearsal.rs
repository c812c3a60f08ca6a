//! A copy of what a migration touches, on which it is tried.

use keyward_engine::{Expiry, Put, Scan};
use keyward_key::{Key, KeyRange};
use keyward_records::{IndexState, Record, Records, Space};

use crate::error::{Error, Result};
use crate::index::count;
use crate::migrator::RECORDS_PER_PAGE;
use crate::preview::Preview;

/// An empty store, filled with what a migration goes by: the catalog and some records.
pub(crate) struct Rehearsal<'r> {
    pub scratch: &'r Records,
    bytes_left: usize,
}

impl<'r> Rehearsal<'r> {
    /// Takes over the catalog. Refused in a store that holds anything: what is tried is written
    /// there.
    pub async fn new(records: &Records, scratch: &'r Records) -> Result<Self> {
        let page = scratch.store().scan(&Scan::new(KeyRange::all()).limit(1).keys_only()).await?;
        if !page.rows.is_empty() {
            let message = "a migration is tried in an empty store, and this one holds something";
            return Err(Error::Refused(message.to_owned()));
        }
        let catalog = records.catalog().await?;
        if !catalog.indexes.is_empty() {
            let take_over = scratch.change_catalog(|content| {
                content.clone_from(&catalog);
                Ok(())
            });
            take_over.await?;
        }
        Ok(Self { scratch, bytes_left: Preview::BYTES_MAX })
    }

    /// Takes over the first records of a space; the preview is not whole if there are more.
    pub async fn take(&mut self, space: &Space, preview: &mut Preview) -> Result<Vec<Record>> {
        let mut taken = Vec::new();
        let mut position = None;
        loop {
            let walked = space.walk_on(position, RECORDS_PER_PAGE).await?;
            for record in walked.records {
                self.bytes_left = self.bytes_left.saturating_sub(record.value.len());
                let put = Put {
                    value: record.value.clone(),
                    metadata: record.metadata.clone(),
                    expiry: record.expires.map(Expiry::At),
                };
                self.scratch.store().put(record.key.clone(), put).await?;
                taken.push(record);
            }
            position = walked.position;
            if position.is_none() {
                return Ok(taken);
            }
            if count(taken.len()) >= Preview::ROWS_MAX || self.bytes_left == 0 {
                preview.is_whole = false;
                return Ok(taken);
            }
        }
    }

    /// Gives the records of a space the entries that they have, so that what is taken is known.
    pub async fn index(&self, space: &str) -> Result<()> {
        let catalog = self.scratch.catalog().await?;
        let kept = catalog
            .indexes
            .iter()
            .filter(|(_, listed)| listed.space == space && listed.state != IndexState::Disabled);
        for (name, _) in kept {
            self.build(name, |_, _| ()).await?;
        }
        Ok(())
    }

    /// Builds an index, and tells which records cannot be added.
    pub async fn build(&self, index: &str, mut clash: impl FnMut(&Key, String)) -> Result<()> {
        let mut position = None;
        loop {
            let built = self.scratch.build_index(index, position, RECORDS_PER_PAGE).await?;
            for (key, message) in built.clashes {
                clash(&key, message);
            }
            position = built.position;
            if position.is_none() {
                return Ok(());
            }
        }
    }
}
