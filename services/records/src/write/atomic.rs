//! A record and its index entries in one commit, with a check of the record's version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use keyward_engine::{Commit, Entry, Expect, Expiry, Outcome, Put, Version, Write};
use keyward_key::{Key, KeyRange};

use super::ATTEMPTS_MAX;
use crate::access::Admitted;
use crate::bookkeeping::Bookkeeping;
use crate::catalog::{IndexState, Kept, Snapshot};
use crate::change::{Change, ChangeKind, Current, Decision, NewState, Precondition, Written};
use crate::index::IndexEntry;
use crate::relocate::Relocated;
use crate::space::Space;
use crate::{Error, Result, history};

/// Makes changes to distinct records, all or none.
pub(super) async fn write(space: &Space, changes: &mut [Change<'_>]) -> Result<Vec<Written>> {
    space.ensure_indexes().await?;
    let shared = &space.shared;
    let mut catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
    for attempt in 0..ATTEMPTS_MAX {
        let currents = read(space, changes, attempt).await?;
        let planned = match plan(space, &catalog, changes, &currents).await? {
            Planned::Done(written) => return Ok(written),
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
    let key = changes.first().map(|change| change.target.key.clone());
    let key = key.unwrap_or_else(|| shared.catalog.key().clone());
    Err(Error::Contended { key, attempts: ATTEMPTS_MAX })
}

/// Moves a record to another key, which may be another space's, unless there is a record already.
pub(super) async fn relocate(
    from: &Space,
    old: &Admitted,
    to: &Space,
    new: &Admitted,
) -> Result<Relocated> {
    to.ensure_indexes().await?;
    let shared = &to.shared;
    let mut catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
    let keys = [old.key.clone(), new.key.clone()];
    for _ in 0..ATTEMPTS_MAX {
        let mut entries = shared.store.get_many(&keys).await?.into_iter();
        let mut current = |key: &Key| {
            let entry = entries.next().flatten();
            entry.map(|entry| Current::new(key.clone(), entry)).transpose()
        };
        let (leaving, there) = (current(&old.key)?, current(&new.key)?);
        let Some(leaving) = leaving else { return Ok(Relocated::Absent) };
        let same = there.as_ref().is_some_and(|there| leaving.says_the_same_as(there));
        if there.is_some() && !same {
            return Ok(Relocated::Taken);
        }
        let mut placing = Change::placing(new.clone(), &leaving);
        let mut decision = placing.decide(&to.access.space, there.as_ref())?;
        if same {
            decision = Decision::Leave;
        }
        let leaving_indexes = catalog.kept(&from.access.space.name);
        let removing = Change::removing(old.clone());
        let removal = Decision::Remove;
        let steps = vec![
            step(from, &leaving_indexes, &removing, Some(&leaving), removal).await?,
            step(to, &catalog.kept(&to.access.space.name), &placing, there.as_ref(), decision)
                .await?,
        ];
        let planned = Plan { steps };
        let Assembled { commit, meanings, .. } = planned.assemble(to, &catalog)?;
        match shared.store.commit(commit).await? {
            Outcome::Applied { .. } => return Ok(Relocated::Moved),
            Outcome::Conflicted { failed } => {
                let failed = failed.iter().filter_map(|&check| meanings.get(check));
                look_again(to, &planned, failed, &mut catalog).await?;
            }
        }
    }
    Err(Error::Contended { key: old.key.clone(), attempts: ATTEMPTS_MAX })
}

/// Why a commit was refused: an error if another record has a unique value, else nothing that does
/// not pass when it is planned again.
async fn look_again<'m>(
    space: &Space,
    planned: &Plan,
    failed: impl Iterator<Item = &'m Meaning>,
    catalog: &mut Arc<Snapshot>,
) -> Result<()> {
    let shared = &space.shared;
    let mut clash = None;
    let mut stale = false;
    for meaning in failed {
        match meaning {
            Meaning::Unique(step, entry) => clash = Some((*step, entry)),
            Meaning::Record | Meaning::History => stale = true,
            Meaning::Catalog => {
                stale = true;
                *catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
            }
        }
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

enum Planned {
    /// Nothing is to be written.
    Done(Vec<Written>),
    Commit(Plan),
}

struct Plan {
    steps: Vec<Step>,
}

/// One record's part of the commit.
struct Step {
    key: Key,
    /// The version it must have; `None`: it must be absent.
    before: Option<Version>,
    then: Then,
    removed: Vec<Key>,
    added: Vec<IndexEntry>,
    /// Entries that nobody has, and nobody may get meanwhile.
    absent: Vec<Key>,
    expiry: Option<Expiry>,
    history: Option<history::Row>,
}

enum Then {
    /// Nothing changes, but the others go by what it is.
    Stay,
    Remove,
    Write(Put),
}

async fn plan(
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
    let mut steps = Vec::with_capacity(changes.len());
    for ((change, current), decision) in changes.iter().zip(currents).zip(decisions) {
        steps.push(step(space, &indexes, change, current.as_ref(), decision).await?);
    }
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

async fn step(
    space: &Space,
    indexes: &[Kept],
    change: &Change<'_>,
    current: Option<&Current>,
    decision: Decision,
) -> Result<Step> {
    let target = &change.target;
    let before = current.map(|current| current.record.version.clone());
    let old = match current {
        Some(current) => space.entries(indexes, target, &current.record.value)?,
        None => Vec::new(),
    };
    let unheld = unheld(space, indexes, &target.key, &old).await?;
    let mut step = Step {
        key: target.key.clone(),
        before,
        then: Then::Stay,
        removed: Vec::new(),
        added: Vec::new(),
        absent: Vec::new(),
        expiry: None,
        history: None,
    };
    match decision {
        Decision::Conflict | Decision::Leave => {}
        Decision::Remove => {
            step.history = history::next(space, change, current, None).await?;
            step.removed = old.into_iter().map(|entry| entry.key).collect();
            step.then = Then::Remove;
            unheld.spare(&mut step);
        }
        Decision::Write(new) => {
            let entries = space.entries(indexes, target, &new.value)?;
            // Entries end together with their record, so they all move when its end does.
            let ends = new.expiry.is_some()
                || current.is_some_and(|current| current.record.expires.is_some());
            let is_new = |entry: &IndexEntry| ends || !old.contains(entry);
            step.added = entries.iter().filter(|entry| is_new(entry)).cloned().collect();
            let gone = old.iter().filter(|o| !entries.iter().any(|entry| entry.key == o.key));
            step.removed = gone.map(|entry| entry.key.clone()).collect();
            step.history = history::next(space, change, current, Some(&new)).await?;
            step.expiry = new.expiry;
            let seq = step.history.as_ref().map(|row| row.seq);
            let seq = seq.or_else(|| current.and_then(|current| current.kept.seq));
            step.then = Then::Write(record_put(new, seq)?);
            // What the record holds already is no clash with itself.
            for entry in &mut step.added {
                let held = old.iter().any(|old| old.key == entry.key);
                entry.unique &= !held || unheld.absent.contains(&entry.key);
            }
            unheld.spare(&mut step);
        }
    }
    Ok(step)
}

/// Unique entries that a record's value asks for and the record does not have. That is so only while
/// the index is being built: another record may have the same value, and hold the entry.
#[derive(Default)]
struct Unheld {
    /// Those that nobody has.
    absent: Vec<Key>,
    /// Those that another record has.
    taken: Vec<Key>,
}

impl Unheld {
    /// Leaves to others what is theirs.
    fn spare(self, step: &mut Step) {
        let Self { absent, taken } = self;
        step.removed.retain(|key| !absent.contains(key) && !taken.contains(key));
        step.added.retain(|entry| !taken.contains(&entry.key));
        let is_added = |key: &Key| step.added.iter().any(|entry| entry.key == *key);
        step.absent = absent.into_iter().filter(|key| !is_added(key)).collect();
    }
}

async fn unheld(
    space: &Space,
    indexes: &[Kept],
    record: &Key,
    old: &[IndexEntry],
) -> Result<Unheld> {
    let mut unheld = Unheld::default();
    let building = |kept: &&Kept| kept.state == IndexState::Building && kept.layout.is_unique();
    let ranges: Vec<KeyRange> =
        indexes.iter().filter(building).map(|kept| KeyRange::under(kept.layout.prefix())).collect();
    let is_building = |key: &Key| ranges.iter().any(|range| range.contains(key));
    let keys: Vec<Key> = old.iter().map(|e| e.key.clone()).filter(|key| is_building(key)).collect();
    if keys.is_empty() {
        return Ok(unheld);
    }
    for (key, entry) in keys.iter().zip(space.shared.store.get_many(&keys).await?) {
        match entry {
            None => unheld.absent.push(key.clone()),
            Some(entry) if holder(&entry).as_ref() == Some(record) => {}
            Some(_) => unheld.taken.push(key.clone()),
        }
    }
    Ok(unheld)
}

fn record_put(new: NewState, seq: Option<u64>) -> Result<Put> {
    let kept = Bookkeeping { seq, ttl_ms: new.ttl_ms, ..Bookkeeping::default() };
    let metadata = kept.join(new.metadata.as_ref())?;
    Ok(Put { value: new.value, metadata, expiry: new.expiry })
}

/// What a check is about.
enum Meaning {
    Record,
    Catalog,
    History,
    /// A unique entry that a change wants for itself.
    Unique(usize, IndexEntry),
}

struct Assembled {
    commit: Commit,
    meanings: Vec<Meaning>,
    /// For each step, which write of the commit is its record's.
    order: Vec<Option<usize>>,
}

impl Plan {
    fn assemble(&self, space: &Space, catalog: &Arc<Snapshot>) -> Result<Assembled> {
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
            if let Some(row) = &step.history {
                commit = commit.check(row.key.clone(), Expect::Absent);
                meanings.push(Meaning::History);
                commit.writes.extend(row.writes(step.expiry));
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
        Ok(Assembled { commit, meanings, order })
    }

    fn answer(
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
