//! Mending what can be mended without touching a record.

use keyward_engine::{Commit, Expect, Tier};
use keyward_key::Key;

use super::{Finding, Flaw, Inspector, LOOKS_MAX};
use crate::build::complete;
use crate::change::Current;
use crate::{Error, Result, write};

impl Inspector {
    /// Mends one finding, if it is still so: never by changing a record. Whether it is well now.
    pub async fn mend(&self, finding: &Finding) -> Result<bool> {
        match (finding.flaw, &finding.record) {
            (Flaw::MissingEntry | Flaw::WrongEntry | Flaw::TakenEntry, Some(record)) => {
                let Some(space) = self.space_of(record) else { return Ok(false) };
                let completed = match space.guarantee() {
                    Tier::Atomic => complete(space, record, None).await,
                    Tier::Recoverable | Tier::Advisory => write::reindex(space, record, None).await,
                };
                match completed {
                    Ok(_) => Ok(true),
                    // Two records have one value: a person has to say which keeps it.
                    Err(Error::UniqueClash { .. } | Error::Unindexable { .. }) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            (Flaw::LeftMarker, _) => self.remove_marker(&finding.key).await,
            (flaw, record) if flaw.is_mendable() => {
                self.remove_entry(&finding.key, record.as_ref()).await
            }
            _ => Ok(false),
        }
    }

    pub(super) async fn remove_marker(&self, key: &Key) -> Result<bool> {
        let store = &self.shared.store;
        let Some(entry) = store.get(key).await? else { return Ok(true) };
        let current = Current::new(key.clone(), entry)?;
        if !current.kept.marker {
            return Ok(true);
        }
        // A writer who does come back finds its mark gone, and begins again.
        let mut commit = Commit::new().delete(key.clone());
        if store.capabilities().tier() != Tier::Advisory {
            commit = commit.check(key.clone(), Expect::Version(current.record.version));
        }
        Ok(store.commit(commit).await?.is_applied())
    }

    /// Removes an entry that no record holds, unless one holds it by now.
    pub(super) async fn remove_entry(&self, key: &Key, record: Option<&Key>) -> Result<bool> {
        let store = &self.shared.store;
        for _ in 0..LOOKS_MAX {
            let Some(entry) = store.get(key).await? else { return Ok(true) };
            let primary = match (self.led_to(key, &entry.value), record) {
                (Ok(primary), Some(_)) => Some(primary),
                (Err(_), None) => None,
                // It is not any more what was found.
                _ => return Ok(false),
            };
            let owner = match &primary {
                Some(primary) => store.get(primary).await?,
                None => None,
            };
            let base = owner.as_ref().map(|owner| owner.version.clone());
            if let (Some(primary), Some(owner)) = (&primary, owner)
                && self.holds(primary, owner, key)
            {
                return Ok(true);
            }
            let removed = match (store.capabilities().tier(), &primary) {
                (Tier::Atomic, primary) => {
                    let mut commit = Commit::new()
                        .check(self.shared.catalog.key().clone(), self.catalog.expect())
                        .check(key.clone(), Expect::Version(entry.version))
                        .delete(key.clone());
                    if let Some(primary) = primary {
                        let expect = base.map_or(Expect::Absent, Expect::Version);
                        commit = commit.check(primary.clone(), expect);
                    }
                    store.commit(commit).await?.is_applied()
                }
                (Tier::Recoverable, None) => {
                    let expect = Expect::Version(entry.version);
                    let commit = Commit::new().check(key.clone(), expect).delete(key.clone());
                    store.commit(commit).await?.is_applied()
                }
                (Tier::Advisory, None) => {
                    store.delete(key.clone()).await?;
                    true
                }
                (Tier::Recoverable | Tier::Advisory, Some(primary)) => {
                    let Some(space) = self.space_of(primary) else { return Ok(false) };
                    let kept = self.catalog.kept(&space.access.space.name);
                    write::remove_orphan(space, &kept, key, entry.version, primary).await?
                }
            };
            if removed {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
