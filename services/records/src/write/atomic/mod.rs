//! A record and its index entries in one commit, with a check of the record's version.

mod plan;
mod relocate;
mod step;

use std::sync::Arc;

use keyward_engine::{Entry, Outcome};
use keyward_key::Key;

use self::plan::{Assembled, Meaning, Plan, Planned, plan};
pub(super) use self::relocate::{relocate, relocate_together};
use super::ATTEMPTS_MAX;
use super::backoff::Backoff;
use crate::catalog::Snapshot;
use crate::change::{Change, ChangeKind, Current, Precondition, Written};
use crate::index::IndexEntry;
use crate::space::Space;
use crate::{Error, Result};

/// Makes changes to distinct records, all or none.
pub(super) async fn write(space: &Space, changes: &mut [Change<'_>]) -> Result<Vec<Written>> {
    space.ensure_indexes().await?;
    let shared = &space.shared;
    let mut catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
    let key = changes.first().map(|change| change.target.key.clone());
    let key = key.unwrap_or_else(|| shared.catalog.key().clone());
    let mut backoff = Backoff::new(shared, &key);
    for attempt in 0..ATTEMPTS_MAX {
        // Most conflicts are over by the time they are told: the first one is answered at once.
        if attempt > 1 {
            backoff.pause().await;
        }
        let currents = read(space, changes, attempt).await?;
        let planned = match plan(space, &catalog, changes, &currents).await? {
            Planned::Done(written) => {
                space.check_rider().await?;
                return Ok(written);
            }
            Planned::Commit(planned) => planned,
        };
        let Assembled { commit, meanings, order } = planned.assemble(space, &catalog)?;
        match shared.store.commit(commit).await? {
            Outcome::Applied { versions, .. } => return planned.answer(&versions, &order),
            Outcome::Conflicted { failed } => {
                let failed = failed.iter().filter_map(|&check| meanings.get(check));
                look_again(space, &planned, failed, &mut catalog).await?;
            }
        }
    }
    Err(Error::Contended { key, attempts: ATTEMPTS_MAX })
}

/// Why a commit was refused: an error if a rider's check does not hold, or another record has a unique
/// value, else nothing that does not pass when it is planned again.
async fn look_again<'m>(
    space: &Space,
    planned: &Plan,
    failed: impl Iterator<Item = &'m Meaning>,
    catalog: &mut Arc<Snapshot>,
) -> Result<()> {
    let shared = &space.shared;
    let mut clash = None;
    let mut stale = false;
    let mut refused = Vec::new();
    let mut restored = None;
    for meaning in failed {
        match meaning {
            Meaning::Unique(step, entry) => clash = Some((*step, entry)),
            Meaning::Record | Meaning::History => stale = true,
            Meaning::Rider(check) => refused.push(*check),
            Meaning::Restored(row) => restored = Some(row),
            Meaning::Catalog => {
                stale = true;
                *catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
            }
        }
    }
    if !refused.is_empty() {
        return Err(Error::RiderRefused { failed: refused });
    }
    if let Some(row) = restored {
        return Err(Error::Contended { key: row.clone(), attempts: 1 });
    }
    // With a stale record the clash may be with what it held itself.
    if let (Some((step, entry)), false) = (clash, stale)
        && let Some(error) = clash_with(space, &planned.steps[step].key, entry).await?
    {
        return Err(error);
    }
    Ok(())
}

/// What the records are now. Those that must not exist are not read the first time: the commit finds
/// out.
async fn read(
    space: &Space,
    changes: &[Change<'_>],
    attempt: usize,
) -> Result<Vec<Option<Current>>> {
    let blind = |change: &Change<'_>| {
        attempt == 0
            && change.expect == Precondition::Absent
            && matches!(change.kind, ChangeKind::Put { .. })
    };
    let keys: Vec<Key> = changes
        .iter()
        .filter(|change| !blind(change))
        .map(|change| change.target.key.clone())
        .collect();
    let mut entries = match keys.as_slice() {
        [] => Vec::new(),
        [key] => vec![space.shared.store.get(key).await?],
        keys => space.shared.store.get_many(keys).await?,
    }
    .into_iter();
    let mut currents = Vec::with_capacity(changes.len());
    for change in changes {
        let entry = if blind(change) { None } else { entries.next().flatten() };
        currents.push(entry.map(|e| Current::new(change.target.key.clone(), e)).transpose()?);
    }
    Ok(currents)
}

/// The error for a unique entry that another record has, unless it has given it up meanwhile.
async fn clash_with(space: &Space, key: &Key, entry: &IndexEntry) -> Result<Option<Error>> {
    let Some(held) = space.shared.store.get(&entry.key).await? else {
        return Ok(None);
    };
    let holder = holder(&held);
    if holder.as_ref() == Some(key) {
        return Ok(None);
    }
    Ok(Some(space.clash(&entry.key, holder)))
}

/// The record that a unique entry names.
pub(crate) fn holder(entry: &Entry) -> Option<Key> {
    let text: String = serde_json::from_slice(entry.value.as_bytes()).ok()?;
    Key::parse(&text).ok()
}
