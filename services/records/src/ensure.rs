//! Declared indexes that the store does not have yet.

use keyward_engine::{BoxFuture, Tier};
use keyward_schema::Index;

use crate::catalog::{CatalogContent, CatalogedIndex, IndexState, Snapshot};
use crate::foreign::is_foreign;
use crate::space::Space;
use crate::walk::Walk;
use crate::{Result, build};

/// Up to this many records, a new index is built by the first writer, as it comes; beyond, it takes a
/// migration.
const RECORDS_MAX: usize = 1_000;

impl Space {
    /// Puts the declared indexes of a new or small space into the catalog, before the first write;
    /// and finishes what somebody who did so could not.
    pub(crate) fn ensure_indexes(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let (shared, name) = (&self.shared, &self.access.space.name);
            if shared.is_ensured(name) {
                return Ok(());
            }
            let mut catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
            if self.guarantee() == Tier::Advisory {
                return self.ensure_at_best(&catalog).await;
            }
            if catalog.version.is_none() {
                shared.catalog.create(&shared.store, &self.original_catalog().await?).await?;
                catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
            }
            let unfinished: Vec<&Index> = self
                .access
                .space
                .indexes
                .iter()
                .filter(|i| self.is_ours(&catalog.content, i))
                .collect();
            // Another space of that name, or keys that records do not have yet: that takes a migration.
            let is_other = catalog.content.other_keys(&self.access.space).is_some();
            if !unfinished.is_empty() && !is_other && self.is_small().await? {
                let mut ours = Vec::with_capacity(unfinished.len());
                for index in unfinished {
                    if !self.is_adoptable(&catalog.content, index).await? {
                        ours.push(index);
                    }
                }
                self.add_indexes(&ours).await?;
            }
            shared.set_ensured(name);
            Ok(())
        })
    }

    /// Where nothing is promised of indexes, they can be asked at once: what was there before is added
    /// by a migration, or by the doctor.
    async fn ensure_at_best(&self, catalog: &Snapshot) -> Result<()> {
        let (shared, mut content) = (&self.shared, catalog.content.clone());
        // Reads are late there, also those of what was just written: space by space, each would
        // overwrite the indexes of the one before.
        for space in shared.declarations() {
            if !space.indexes.is_empty() {
                content.note_keys(space);
            }
            for index in &space.indexes {
                let is_new = !content.indexes.contains_key(&index.name);
                if is_new && is_foreign(&shared.store, space, index).await? {
                    continue;
                }
                let vacant = content.indexes.entry(index.name.clone());
                vacant.or_insert_with(|| CatalogedIndex {
                    state: IndexState::Readable,
                    ..building(&space.name, index)
                });
            }
        }
        // A catalog that cannot be written may be as it should be.
        if catalog.version.is_none() || content != catalog.content {
            shared.catalog.overwrite(&shared.store, &*shared.clock, content).await?;
        }
        shared.declarations().for_each(|space| shared.set_ensured(&space.name));
        Ok(())
    }

    /// The catalog of a store whose first record is about to be written. Whoever writes records makes
    /// it first, so the indexes of spaces without records have everything.
    async fn original_catalog(&self) -> Result<CatalogContent> {
        let mut content = CatalogContent::default();
        for space in self.shared.declarations() {
            let empty = Walk::keys(&self.shared.store, &space.key)?.is_empty().await?;
            let state = if empty { IndexState::Readable } else { IndexState::Building };
            if !space.indexes.is_empty() {
                content.note_keys(space);
            }
            for index in &space.indexes {
                if is_foreign(&self.shared.store, space, index).await? {
                    continue;
                }
                let listed = CatalogedIndex { state, ..building(&space.name, index) };
                content.original.insert(index.name.clone());
                content.indexes.insert(index.name.clone(), listed);
            }
        }
        Ok(content)
    }

    /// Whether an index is missing or unfinished, and no writer can be left who does not know of it
    /// once it is in the catalog. Where commits cannot check the catalog, that takes waiting, which
    /// is a migration's business.
    fn is_ours(&self, content: &CatalogContent, index: &Index) -> bool {
        let at_once = self.guarantee() == Tier::Atomic || content.original.contains(&index.name);
        match content.indexes.get(&index.name) {
            None => at_once,
            Some(known) => {
                at_once
                    && known.state == IndexState::Building
                    && known.space == self.access.space.name
                    && known.definition == *index
            }
        }
    }

    /// Whether another program keeps an index that is not in the catalog: making it one of ours is a migration's
    /// business, which loses nothing of what does not fit.
    async fn is_adoptable(&self, content: &CatalogContent, index: &Index) -> Result<bool> {
        let is_new = !content.indexes.contains_key(&index.name);
        Ok(is_new && is_foreign(&self.shared.store, &self.access.space, index).await?)
    }

    async fn add_indexes(&self, indexes: &[&Index]) -> Result<()> {
        let shared = &self.shared;
        if indexes.is_empty() {
            return Ok(());
        }
        let update = shared.catalog.update(&shared.store, &*shared.clock, |content| {
            content.note_keys(&self.access.space);
            for index in indexes {
                let vacant = content.indexes.entry(index.name.clone());
                vacant.or_insert_with(|| building(&self.access.space.name, index));
            }
            Ok(())
        });
        update.await?;
        for index in indexes {
            self.build_whole(&index.name).await?;
        }
        Ok(())
    }

    async fn is_small(&self) -> Result<bool> {
        let walk = Walk::keys(&self.shared.store, &self.access.space.key)?;
        let budget = 2 * RECORDS_MAX;
        let walked = walk.next(None, RECORDS_MAX + 1, budget).await?;
        Ok(walked.rows.len() <= RECORDS_MAX && walked.position.is_none())
    }

    async fn build_whole(&self, index: &str) -> Result<()> {
        let mut position = None;
        loop {
            let built = build::page(self, index, position, usize::MAX).await?;
            match built.position {
                Some(next) => position = Some(next),
                None if built.clashes.is_empty() => {
                    return build::finish(&self.shared, index).await;
                }
                // Left unreadable: somebody has to decide which record keeps the value.
                None => return Ok(()),
            }
        }
    }
}

fn building(space: &str, index: &Index) -> CatalogedIndex {
    let (space, definition) = (space.to_owned(), index.clone());
    CatalogedIndex { space, definition, state: IndexState::Building }
}
