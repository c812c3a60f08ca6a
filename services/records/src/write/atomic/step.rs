//! One record's part of a commit.

use keyward_engine::{Expiry, Put, Version};
use keyward_key::{Key, KeyRange};

use super::holder;
use crate::bookkeeping::Bookkeeping;
use crate::catalog::{IndexState, Kept};
use crate::change::{Change, ChangeKind, Current, Decision, NewState};
use crate::index::IndexEntry;
use crate::space::Space;
use crate::{Result, history};

/// One record's part of the commit.
pub(super) struct Step {
    pub key: Key,
    /// The version it must have; `None`: it must be absent.
    pub before: Option<Version>,
    pub then: Then,
    pub removed: Vec<Key>,
    pub added: Vec<IndexEntry>,
    /// Entries that nobody has, and nobody may get meanwhile.
    pub absent: Vec<Key>,
    pub expiry: Option<Expiry>,
    /// The earlier version that it goes by, which must not change meanwhile.
    pub restored: Option<(Key, Version)>,
    pub history: Option<history::Row>,
}

/// Which version of a record a change makes, in spaces that keep history.
#[derive(Debug, Clone, Copy)]
pub(super) enum Versions {
    /// A new one.
    Next,
    /// None: the record has those it had under another key.
    Moved {
        /// The newest of them.
        newest: Option<u64>,
        /// Until when all of them are kept at least.
        until_ms: Option<i64>,
    },
}

pub(super) enum Then {
    /// Nothing changes, but the others go by what it is.
    Stay,
    Remove,
    Write(Put),
}

pub(super) async fn step(
    space: &Space,
    indexes: &[Kept],
    change: &Change<'_>,
    current: Option<&Current>,
    decision: Decision,
    versions: Versions,
) -> Result<Step> {
    let target = &change.target;
    let before = current.map(|current| current.record.version.clone());
    let old = match current {
        Some(current) => space.held(indexes, target, &current.record.value),
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
        restored: match &change.kind {
            ChangeKind::Restore { row, version, .. } => Some((row.clone(), version.clone())),
            _ => None,
        },
        history: None,
    };
    match decision {
        Decision::Conflict | Decision::Leave => {}
        Decision::Remove => {
            if let Versions::Next = versions {
                step.history = history::next(space, change, current, None).await?;
            }
            step.removed = old.into_iter().map(|entry| entry.key).collect();
            step.then = Then::Remove;
            unheld.spare(&mut step);
        }
        Decision::Write(new) => {
            let entries = change.entries(space, indexes, &new.value)?;
            // Entries end together with their record, so they all move when its end does.
            let ends = new.expiry.is_some()
                || current.is_some_and(|current| current.record.expires.is_some());
            let is_new = |entry: &IndexEntry| ends || !old.contains(entry);
            step.added = entries.iter().filter(|entry| is_new(entry)).cloned().collect();
            let gone = old.iter().filter(|o| !entries.iter().any(|entry| entry.key == o.key));
            step.removed = gone.map(|entry| entry.key.clone()).collect();
            let kept = match versions {
                Versions::Next => {
                    let mut kept = current.map(|current| current.kept.clone()).unwrap_or_default();
                    kept.past_until_ms =
                        history::prolong(space, &target.key, &kept, new.expiry).await?;
                    step.history = history::next(space, change, current, Some(&new)).await?;
                    if let Some(row) = &step.history {
                        row.note(&mut kept);
                    }
                    kept
                }
                Versions::Moved { newest: seq, until_ms: past_until_ms } => {
                    Bookkeeping { seq, past_until_ms, ..Bookkeeping::default() }
                }
            };
            step.expiry = new.expiry;
            step.then = Then::Write(record_put(new, kept)?);
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

fn record_put(new: NewState, kept: Bookkeeping) -> Result<Put> {
    let kept = Bookkeeping { ttl_ms: new.ttl_ms, marker: false, ..kept };
    let metadata = kept.join(new.metadata.as_ref())?;
    Ok(Put { value: new.value, metadata, expiry: new.expiry })
}
