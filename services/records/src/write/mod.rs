//! How changes reach the store, by what its engine can do.

mod advisory;
mod atomic;
mod backoff;
mod recoverable;

use keyward_engine::{BoxFuture, Commit, Error as StoreError, ErrorKind, Tier, Version};
use keyward_key::Key;

pub(crate) use atomic::holder;
pub(crate) use backoff::Backoff;

use crate::access::Admitted;
use crate::build::admitted;
use crate::catalog::Kept;
use crate::change::{Change, Current, Precondition, Written};
use crate::relocate::{Belongs, Relocated, Together};
use crate::space::Space;
use crate::{Error, Result};

/// How often a change is tried again because others changed the same record.
const ATTEMPTS_MAX: usize = 64;

/// Makes one change.
pub(crate) fn one<'a>(space: &'a Space, change: Change<'a>) -> BoxFuture<'a, Result<Written>> {
    Box::pin(async move {
        space.admit_rider()?;
        match space.guarantee() {
            Tier::Atomic => {
                let mut written = atomic::write(space, &mut [change]).await?;
                written.pop().ok_or_else(|| Error::Damaged("a change without an outcome".into()))
            }
            Tier::Recoverable => recoverable::write(space, change).await,
            Tier::Advisory => advisory::write(space, change).await,
        }
    })
}

/// Makes changes together, or none of them if a precondition does not hold.
pub(crate) async fn together(space: &Space, changes: &mut [Change<'_>]) -> Result<Vec<Written>> {
    let capabilities = space.shared.store.capabilities();
    if capabilities.tier() != Tier::Atomic {
        let message =
            format!("the {} engine cannot change several records together", capabilities.engine);
        return Err(StoreError::new(ErrorKind::Unsupported, message).into());
    }
    atomic::write(space, changes).await
}

/// Adds the entries that a record lacks, where these are not kept in the same commit, and gives their
/// number. It is an error if the index `only` cannot take its value; another index that cannot holds
/// none of it.
pub(crate) async fn reindex(space: &Space, key: &Key, only: Option<&str>) -> Result<usize> {
    match space.guarantee() {
        Tier::Recoverable => recoverable::reindex(space, key, only).await,
        Tier::Atomic | Tier::Advisory => advisory::reindex(space, key, only).await,
    }
}

/// Refuses a record that one index cannot take.
fn require(space: &Space, indexes: &[Kept], only: Option<&str>, current: &Current) -> Result<()> {
    let target = admitted(space, &current.record.key);
    let named = |kept: &&[Kept]| only == Some(kept[0].layout.index.name.as_str());
    match indexes.chunks(1).find(named) {
        Some(kept) => space.entries(kept, &target, &current.record.value).map(drop),
        None => Ok(()),
    }
}

/// Moves a record to another key, in one commit with what goes along; gives the versions of that. Where
/// commits take one key, nothing can go along.
pub(crate) async fn relocate(
    from: &Space,
    old: &Admitted,
    to: &Space,
    new: &Admitted,
    belongs: &Belongs<'_>,
    along: &Commit,
) -> Result<(Relocated, Vec<Option<Version>>)> {
    match to.guarantee() {
        Tier::Atomic => atomic::relocate(from, old, to, new, belongs, along).await,
        Tier::Recoverable | Tier::Advisory => {
            refuse_along(to, along.checks.is_empty() && along.writes.is_empty())?;
            Ok((relocate_by_two(from, old, to, new, belongs).await?, Vec::new()))
        }
    }
}

/// Moves as many records as fit one commit, from the first on.
pub(crate) async fn relocate_together(
    from: &Space,
    to: &Space,
    moves: &[(Admitted, Admitted)],
    belongs: &Belongs<'_>,
    along: &(dyn Fn(usize) -> Result<Commit> + Send + Sync),
) -> Result<Together> {
    refuse_along(to, to.guarantee() == Tier::Atomic)?;
    atomic::relocate_together(from, to, moves, belongs, along).await
}

fn refuse_along(space: &Space, may: bool) -> Result<()> {
    if may {
        return Ok(());
    }
    let engine = space.shared.store.capabilities().engine;
    let message = format!("the {engine} engine cannot change several records together");
    Err(StoreError::new(ErrorKind::Unsupported, message).into())
}

/// The new record first, then the old one away: whenever this ends early, doing it again goes on.
async fn relocate_by_two(
    from: &Space,
    old: &Admitted,
    to: &Space,
    new: &Admitted,
    belongs: &Belongs<'_>,
) -> Result<Relocated> {
    let mut placed: Option<Version> = None;
    let mut backoff = Backoff::new(&from.shared, &old.key);
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 {
            backoff.pause().await;
        }
        let live = |current: &Current| !current.kept.marker;
        let Some(leaving) = from.current(&old.key).await?.filter(live) else {
            let moved = placed.is_some();
            return Ok(if moved { Relocated::Moved } else { Relocated::Absent });
        };
        if !belongs(&leaving.record, &new.key) {
            if let Some(version) = placed {
                // The copy that an attempt of ours put there, unless somebody has changed it since.
                let expect = Precondition::Version(version);
                let _ = one(to, Change { expect, ..Change::removing(new.clone()) }).await?;
            }
            return Ok(Relocated::Changed);
        }
        let there = to.current(&new.key).await?.filter(live);
        if !there.as_ref().is_some_and(|there| leaving.says_the_same_as(there)) {
            let expect = match there {
                None => Precondition::Absent,
                // Ours, of an attempt before the old record changed.
                Some(there) if Some(&there.record.version) == placed.as_ref() => {
                    Precondition::Version(there.record.version)
                }
                Some(_) => return Ok(Relocated::Taken),
            };
            let placing = Change { expect, ..Change::placing(new.clone(), &leaving) };
            match one(to, placing).await? {
                Written::Applied { version, .. } => placed = Some(version),
                _ => continue,
            }
        }
        let expect = Precondition::Version(leaving.record.version);
        let removed = one(from, Change { expect, ..Change::removing(old.clone()) }).await?;
        if removed.is_accepted() {
            return Ok(Relocated::Moved);
        }
    }
    Err(Error::Contended { key: old.key.clone(), attempts: ATTEMPTS_MAX })
}

/// Removes an entry that no record holds, where that is not done by one commit. False if somebody
/// was faster.
pub(crate) async fn remove_orphan(
    space: &Space,
    indexes: &[Kept],
    entry: &Key,
    seen: Version,
    owner: &Key,
) -> Result<bool> {
    match space.guarantee() {
        Tier::Recoverable => recoverable::remove_orphan(space, indexes, entry, seen, owner).await,
        Tier::Atomic | Tier::Advisory => {
            space.shared.store.delete(entry.clone()).await?;
            Ok(true)
        }
    }
}
