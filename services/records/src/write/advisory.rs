//! Where the last writer wins: the record, then its new entries, then the old ones away. Entries may
//! be missing or left over; readers drop what does not match, and the doctor mends the rest.

use keyward_engine::{Commit, Put};
use keyward_key::Key;

use super::require;
use crate::bookkeeping::Bookkeeping;
use crate::build::admitted;
use crate::change::{Change, Decision, Written};
use crate::index::IndexEntry;
use crate::space::Space;
use crate::{Error, Result};

pub(super) async fn write(space: &Space, mut change: Change<'_>) -> Result<Written> {
    space.ensure_indexes().await?;
    let shared = &space.shared;
    let catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
    let indexes = catalog.kept(&space.access.space.name);
    let current = space.current(&change.target.key).await?;
    let decision = change.decide(&space.access.space, current.as_ref())?;
    let before = current.as_ref().map(|current| current.record.version.clone());
    let old = match &current {
        Some(current) => space.held(&indexes, &change.target, &current.record.value),
        None => Vec::new(),
    };
    let key = change.target.key.clone();
    match decision {
        Decision::Conflict => Ok(Written::Conflicted { current: before }),
        Decision::Leave => Ok(Written::Unchanged { version: before }),
        Decision::Remove => {
            shared.store.delete(key).await?;
            remove(space, old.iter()).await?;
            Ok(Written::Removed)
        }
        Decision::Write(new) => {
            let entries = change.entries(space, &indexes, &new.value)?;
            let kept = Bookkeeping { ttl_ms: new.ttl_ms, ..Bookkeeping::default() };
            let metadata = kept.join(new.metadata.as_ref())?;
            let put = Put { value: new.value, metadata, expiry: new.expiry };
            let version = shared.store.put(key, put).await?;
            for entry in &entries {
                let put = Put { value: entry.value.clone(), metadata: None, expiry: new.expiry };
                shared.store.put(entry.key.clone(), put).await?;
            }
            let is_old = |entry: &&IndexEntry| !entries.iter().any(|new| new.key == entry.key);
            remove(space, old.iter().filter(is_old)).await?;
            Ok(Written::Applied { version, created: before.is_none() })
        }
    }
}

pub(super) async fn reindex(space: &Space, key: &Key, only: Option<&str>) -> Result<usize> {
    let shared = &space.shared;
    let catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
    let indexes = catalog.kept(&space.access.space.name);
    let Some(current) = space.current(key).await? else { return Ok(0) };
    require(space, &indexes, only, &current)?;
    let entries = space.held(&indexes, &admitted(space, key), &current.record.value);
    let written = entries.len();
    for entry in entries {
        let expiry = current.record.expires.map(keyward_engine::Expiry::At);
        let put = Put { value: entry.value, metadata: None, expiry };
        shared.store.put(entry.key, put).await?;
    }
    Ok(written)
}

async fn remove(space: &Space, entries: impl Iterator<Item = &IndexEntry>) -> Result<()> {
    for entry in entries {
        let commit = Commit::new().delete(entry.key.clone());
        if !space.shared.store.commit(commit).await?.is_applied() {
            return Err(Error::Damaged(format!("{} was not removed", entry.key)));
        }
    }
    Ok(())
}
