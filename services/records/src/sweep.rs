//! Removing the entries of an index that nobody keeps any more.

use keyward_engine::{Commit, Cursor, Scan, Tier};
use keyward_key::{KeyRange, Prefix};

use crate::build::{ATTEMPTS_MAX, RECORDS_PER_PAGE};
use crate::catalog::IndexState;
use crate::index::FIRST_SEGMENT;
use crate::records::{Records, Shared};
use crate::write::Backoff;
use crate::{Error, Result};

/// A page of entries was removed from an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many entries were removed.
    pub entries: usize,
    /// Where to go on; `None` at the end.
    pub position: Option<Vec<u8>>,
}

impl Records {
    /// Removes the next entries after a position of an index that is disabled, at most `limit`.
    pub async fn sweep_index(
        &self,
        index: &str,
        position: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<Swept> {
        sweep(&self.shared, index, position, limit).await
    }
}

async fn sweep(
    shared: &Shared,
    index: &str,
    after: Option<Vec<u8>>,
    limit: usize,
) -> Result<Swept> {
    let store = &shared.store;
    let mut backoff = Backoff::new(shared, shared.catalog.key());
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 1 {
            backoff.pause().await;
        }
        let catalog = shared.catalog.read(store, &*shared.clock).await?;
        let state = catalog.content.indexes.get(index).map(|listed| listed.state);
        if state != Some(IndexState::Disabled) {
            let reason = "its entries are removed only while it is disabled";
            return Err(Error::IndexNotReady { index: index.to_owned(), reason });
        }
        let atomic = store.capabilities().tier() == Tier::Atomic;
        let together = if atomic { store.limits().commit_keys_max - 1 } else { usize::MAX };
        let range = KeyRange::under(&Prefix::from_segments([FIRST_SEGMENT, index]));
        let limit = limit.clamp(1, RECORDS_PER_PAGE).min(together);
        // Not from the beginning: where reads are late, what is removed still shows for a while.
        let scan = Scan::new(range).after(after.clone().map(Cursor::new)).limit(limit).keys_only();
        let page = store.scan(&scan).await?;
        let entries = page.rows.len();
        let position = page.next.map(|next| next.as_bytes().to_vec());
        if atomic && entries > 0 {
            let key = shared.catalog.key().clone();
            let mut commit = Commit::new().check(key, catalog.expect());
            for row in page.rows {
                commit = commit.delete(row.key);
            }
            if !store.commit(commit).await?.is_applied() {
                continue;
            }
        } else {
            for row in page.rows {
                store.delete(row.key).await?;
            }
        }
        return Ok(Swept { entries, position });
    }
    let key = shared.catalog.key().clone();
    Err(Error::Contended { key, attempts: ATTEMPTS_MAX })
}
