//! From changes to one commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use keyward_engine::{Commit, Expect, Put, Version, Write};
use keyward_key::Key;

use super::step::{Step, Then, Versions, step};
use crate::catalog::Snapshot;
use crate::change::{Change, Current, Decision, Written};
use crate::index::IndexEntry;
use crate::space::Space;
use crate::{Error, Result};

/// How many records' parts are planned at the same time: some need to read their history.
const STEPS_AT_ONCE: usize = 16;

pub(super) enum Planned {
    /// Nothing is to be written.
    Done(Vec<Written>),
    Commit(Plan),
}

pub(super) struct Plan {
    pub steps: Vec<Step>,
}

pub(super) async fn plan(
    space: &Space,
    catalog: &Snapshot,
    changes: &mut [Change<'_>],
    currents: &[Option<Current>],
) -> Result<Planned> {
    let indexes = catalog.kept(&space.access.space.name);
    let mut decisions = Vec::with_capacity(changes.len());
    for (change, current) in changes.iter_mut().zip(currents) {
        decisions.push(change.decide(&space.access.space, current.as_ref())?);
    }
    if decisions.iter().any(|decision| matches!(decision, Decision::Conflict)) {
        return Ok(Planned::Done(refused(&decisions, currents)));
    }
    let mut planned = Vec::with_capacity(changes.len());
    for ((change, current), decision) in changes.iter().zip(currents).zip(decisions) {
        planned.push(step(space, &indexes, change, current.as_ref(), decision, Versions::Next));
    }
    let steps = stream::iter(planned).buffered(STEPS_AT_ONCE).try_collect::<Vec<Step>>().await?;
    if steps.iter().all(|step| matches!(step.then, Then::Stay)) {
        let unchanged = steps.into_iter().map(|step| Written::Unchanged { version: step.before });
        return Ok(Planned::Done(unchanged.collect()));
    }
    Ok(Planned::Commit(Plan { steps }))
}

/// What is told of changes none of which were made, because a precondition does not hold.
fn refused(decisions: &[Decision], currents: &[Option<Current>]) -> Vec<Written> {
    let versions = currents.iter().map(|c| c.as_ref().map(|c| c.record.version.clone()));
    let refused = decisions.iter().zip(versions).map(|(decision, version)| match decision {
        Decision::Conflict => Written::Conflicted { current: version },
        Decision::Leave | Decision::Remove | Decision::Write(_) => Written::Unchanged { version },
    });
    refused.collect()
}

/// What a check is about.
pub(super) enum Meaning {
    Record,
    Catalog,
    /// The earlier version that a change restores.
    Restored(Key),
    History,
    /// A unique entry that a change wants for itself.
    Unique(usize, IndexEntry),
    /// A check of the rider, by its place there.
    Rider(usize),
}

pub(super) struct Assembled {
    pub commit: Commit,
    pub meanings: Vec<Meaning>,
    /// For each step, which write of the commit is its record's.
    pub order: Vec<Option<usize>>,
}

impl Plan {
    pub fn assemble(&self, space: &Space, catalog: &Arc<Snapshot>) -> Result<Assembled> {
        let mut commit = Commit::new();
        let mut meanings = Vec::new();
        let mut order = Vec::with_capacity(self.steps.len());
        let catalog_key = space.shared.catalog.key().clone();
        commit = commit.check(catalog_key, catalog.expect());
        meanings.push(Meaning::Catalog);
        // One record may give up a unique value that another of the same commit takes.
        let mut entries: BTreeMap<&Key, Option<(usize, &IndexEntry)>> = BTreeMap::new();
        for step in &self.steps {
            entries.extend(step.removed.iter().map(|key| (key, None)));
        }
        let given_up: Vec<&Key> = entries.keys().copied().collect();
        for (n, step) in self.steps.iter().enumerate() {
            for entry in &step.added {
                if let Some(Some((other, _))) = entries.insert(&entry.key, Some((n, entry)))
                    && other != n
                {
                    return Err(space.clash(&entry.key, Some(self.steps[other].key.clone())));
                }
            }
        }
        let mut absent = BTreeSet::new();
        for (n, step) in self.steps.iter().enumerate() {
            let expect = step.before.clone().map_or(Expect::Absent, Expect::Version);
            commit = commit.check(step.key.clone(), expect);
            meanings.push(Meaning::Record);
            order.push(match &step.then {
                Then::Stay => None,
                Then::Remove => {
                    commit = commit.delete(step.key.clone());
                    Some(commit.writes.len() - 1)
                }
                Then::Write(put) => {
                    commit = commit.put(step.key.clone(), put.clone());
                    Some(commit.writes.len() - 1)
                }
            });
            for entry in step.added.iter().filter(|entry| entry.unique) {
                if given_up.binary_search(&&entry.key).is_err() && absent.insert(&entry.key) {
                    commit = commit.check(entry.key.clone(), Expect::Absent);
                    meanings.push(Meaning::Unique(n, entry.clone()));
                }
            }
            for key in step.absent.iter().filter(|key| !entries.contains_key(key)) {
                if absent.insert(key) {
                    commit = commit.check(key.clone(), Expect::Absent);
                    meanings.push(Meaning::Record);
                }
            }
            if let Some((row, version)) = &step.restored {
                commit = commit.check(row.clone(), Expect::Version(version.clone()));
                meanings.push(Meaning::Restored(row.clone()));
            }
            if let Some(row) = &step.history {
                commit = commit.check(row.key.clone(), Expect::Absent);
                meanings.push(Meaning::History);
                commit.writes.extend(row.writes());
            }
        }
        for (key, entry) in entries {
            commit.writes.push(match entry {
                None => Write::Delete(key.clone()),
                Some((n, entry)) => {
                    let expiry = self.steps[n].expiry;
                    let put = Put { value: entry.value.clone(), metadata: None, expiry };
                    Write::Put(key.clone(), put)
                }
            });
        }
        let (commit, ridden) = space.join_rider(catalog, commit)?;
        meanings.extend((0..ridden).map(Meaning::Rider));
        Ok(Assembled { commit, meanings, order })
    }

    pub fn answer(
        &self,
        versions: &[Option<Version>],
        order: &[Option<usize>],
    ) -> Result<Vec<Written>> {
        let steps = self.steps.iter().zip(order);
        let written = steps.map(|(step, at)| match (&step.then, at) {
            (Then::Write(_), Some(at)) => {
                let version = versions.get(*at).cloned().flatten().ok_or_else(|| {
                    Error::Damaged(format!("{} was written without a version", step.key))
                })?;
                Ok(Written::Applied { version, created: step.before.is_none() })
            }
            (Then::Remove, _) => Ok(Written::Removed),
            _ => Ok(Written::Unchanged { version: step.before.clone() }),
        });
        written.collect()
    }
}
