//! Changes that other programs make in the value store: taken over into the coordinator when they are noticed.

use jiff::Timestamp;
use keyward_engine::{Commit, Entry, Expect, Expiry, Outcome, Put, Result, Version};
use keyward_key::Key;

use crate::head::{Hash, Head};
use crate::layout;
use crate::pending::Mark;
use crate::shared::Shared;
use crate::work::Step;

/// A key of the value store that is not as the coordinator says, although it has been for longer than reads are late.
#[derive(Debug)]
pub(crate) struct Sighting {
    pub key: Key,
    /// The version of the head beside which it was seen; `None` if there was none.
    pub head: Option<Version>,
    /// The version of the pending row, likewise.
    pub pending: Option<Version>,
    /// What the value store shows.
    pub shown: Option<Entry>,
}

impl Shared {
    /// Makes the coordinator agree with what was seen, by compare-and-swap. What changed since it was seen is left
    /// alone: the caller reads again.
    ///
    /// The value is held in a pending row at first, as if it had been written here. Without that, a reader that is
    /// late would see the value from before, and take that one over in turn.
    pub(crate) async fn take_over(&self, sightings: Vec<Sighting>) -> Result<()> {
        let limits = self.capabilities.limits;
        let mut batch = Vec::new();
        let mut bytes = 0;
        for sighting in sightings {
            let size = sighting.size();
            if batch.len() == limits.commit_keys_max || bytes + size > limits.commit_bytes_max {
                self.swap(std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += size;
            batch.push(sighting);
        }
        self.swap(batch).await
    }

    async fn swap(&self, mut sightings: Vec<Sighting>) -> Result<()> {
        while !sightings.is_empty() {
            let now = self.now();
            let mut commit = Commit::new();
            for sighting in &sightings {
                commit = self.swapped(commit, sighting, now)?;
            }
            match self.coordinator.commit(commit).await? {
                Outcome::Applied { versions, .. } => {
                    // A commit has one version; one of deletes alone writes pending rows too.
                    let version = versions.into_iter().flatten().next();
                    let at = self.confirmable_at(now, now);
                    for (Sighting { key, .. }, version) in
                        sightings.iter().zip(version.iter().cycle())
                    {
                        self.work.plan(key, at, Step::Confirm(version.clone()));
                    }
                    return Ok(());
                }
                // Each sighting has two checks.
                Outcome::Conflicted { failed } => {
                    let mut at = 0;
                    sightings.retain(|_| {
                        at += 1;
                        !failed.iter().any(|check| check / 2 == at - 1)
                    });
                }
            }
        }
        Ok(())
    }

    fn swapped(&self, commit: Commit, sighting: &Sighting, now: Timestamp) -> Result<Commit> {
        let Sighting { key, head, pending, shown } = sighting;
        let expect =
            |version: &Option<Version>| version.clone().map_or(Expect::Absent, Expect::Version);
        let row = layout::pending(key);
        let mut mark = Mark {
            hash: None,
            committed: now,
            pushed: Some(now),
            expires: None,
            inline: false,
            foreign: true,
        };
        let commit = commit.check(key.clone(), expect(head)).check(row.clone(), expect(pending));
        let Some(shown) = shown else {
            return Ok(commit.delete(key.clone()).put(row, mark.put(None)?));
        };
        let hash = Hash::of(&shown.value);
        mark.hash = Some(hash.clone());
        mark.expires = shown.expires;
        let stored = Put {
            value: Head::Stored(hash).to_json(),
            metadata: shown.metadata.clone(),
            expiry: shown.expires.map(Expiry::At),
        };
        let commit = commit.put(key.clone(), stored);
        // Another program may write what is too large for the coordinator. Such a value is read where it is.
        Ok(if shown.value.len() <= self.capabilities.limits.value_bytes_max {
            commit.put(row, mark.put(Some(&shown.value))?)
        } else {
            commit.delete(row)
        })
    }
}

impl Sighting {
    fn size(&self) -> usize {
        let shown = self.shown.as_ref();
        let held = shown.map_or(0, |shown| {
            shown.value.len() + shown.metadata.as_ref().map_or(0, |metadata| metadata.len())
        });
        self.key.as_bytes().len() + held
    }
}
