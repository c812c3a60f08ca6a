//! What the store holds, and how a commit changes it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use keyward_engine::{
    Change, ChangeKind, Check, Commit, Cursor, Entry, Error, ErrorKind, Expect, Json, LogSlice,
    Order, Outcome, Page, Result, Revision, Row, Scan, Stats, Version, Want, Write,
};
use keyward_key::Key;

/// How many expired entries one commit reclaims at most.
const RECLAIMED_PER_COMMIT: usize = 64;
/// How many commits one read of the log gives at most.
const LOG_READ_MAX: usize = 256;

pub(crate) struct State {
    slots: BTreeMap<Bytes, Slot>,
    /// Ends of entries, soonest first. May hold ends of entries that were since written again.
    ends: BTreeSet<(Timestamp, Bytes)>,
    revision: u64,
    log: VecDeque<(Revision, Vec<Change>)>,
    history: usize,
    lag: Duration,
}

/// What a key holds, and what late readers still see.
#[derive(Default)]
struct Slot {
    current: Option<Entry>,
    /// Earlier contents with the moment they were replaced, oldest first.
    replaced: VecDeque<(Timestamp, Option<Entry>)>,
}

impl Slot {
    /// What a reader sees who is `lag` behind `now`.
    fn seen(&self, now: Timestamp, lag: Duration) -> Option<&Entry> {
        let horizon = now.saturating_sub(lag).unwrap_or(Timestamp::MIN);
        let late = self.replaced.iter().find(|(replaced_at, _)| *replaced_at > horizon);
        let entry = late.map_or(&self.current, |(_, entry)| entry);
        entry.as_ref().filter(|entry| !entry.is_expired(now))
    }
}

impl State {
    pub(crate) fn new(history: usize, lag: Duration) -> Self {
        Self {
            slots: BTreeMap::new(),
            ends: BTreeSet::new(),
            revision: 0,
            log: VecDeque::new(),
            history,
            lag,
        }
    }

    pub(crate) fn get(&self, key: &Key, now: Timestamp) -> Option<Entry> {
        self.slots.get(key.as_bytes())?.seen(now, self.lag).cloned()
    }

    pub(crate) fn scan(&self, scan: &Scan, now: Timestamp) -> Page {
        let range = scan.remaining();
        if range.is_empty() {
            return Page::default();
        }
        let mut rows = self
            .slots
            .range::<[u8], _>(range)
            .filter_map(|(key, slot)| Some((key, slot.seen(now, self.lag)?)));
        let next = || match scan.order {
            Order::Ascending => rows.next(),
            Order::Descending => rows.next_back(),
        };
        let mut page = Page::default();
        for (key, entry) in std::iter::from_fn(next) {
            if page.rows.len() == scan.limit {
                page.next = page.rows.last().map(|row| Cursor::after_key(&row.key));
                break;
            }
            let entry = (scan.want == Want::Entries).then(|| entry.clone());
            page.rows.push(Row { key: Key::from_stored(key.clone()), entry });
        }
        page
    }

    pub(crate) fn commit(&mut self, commit: Commit, now: Timestamp) -> Result<Outcome> {
        let failed: Vec<usize> = commit
            .checks
            .iter()
            .enumerate()
            .filter(|(_, check)| !self.holds(check, now))
            .map(|(at, _)| at)
            .collect();
        if !failed.is_empty() {
            return Ok(Outcome::Conflicted { failed });
        }
        let sums = self.sums(&commit, now)?;
        self.reclaim(now);

        let revision = self.revision + 1;
        let mut changes = Vec::with_capacity(commit.writes.len());
        let mut versions = Vec::with_capacity(commit.writes.len());
        for (write, sum) in commit.writes.into_iter().zip(sums) {
            let kind = match &write {
                // Expired and not reclaimed yet: it was absent already, so nobody deleted it.
                Write::Delete(key) if self.present(key, now).is_none() => ChangeKind::Expired,
                Write::Delete(_) => ChangeKind::Deleted,
                Write::Put(..) | Write::Add(..) => ChangeKind::Put,
            };
            let key = write.key().clone();
            let new = match (write, sum) {
                (Write::Put(_, put), _) => Some(Entry {
                    value: put.value,
                    metadata: put.metadata,
                    version: Version::from(revision),
                    expires: put.expiry.map(|expiry| expiry.moment(now)),
                }),
                (Write::Add(..), Some(sum)) => {
                    let old = self.present(&key, now);
                    Some(Entry {
                        value: Json::from_integer(sum),
                        metadata: old.and_then(|old| old.metadata.clone()),
                        version: Version::from(revision),
                        expires: old.and_then(|old| old.expires),
                    })
                }
                (Write::Delete(_) | Write::Add(..), _) => None,
            };
            versions.push(new.as_ref().map(|entry| entry.version.clone()));
            if self.replace(&key, new, now) {
                changes.push(Change { key, kind });
            }
        }
        self.log(changes);
        Ok(Outcome::Applied { revision: Some(Revision(self.revision)), versions })
    }

    pub(crate) fn read_log(&self, after: Revision) -> LogSlice {
        let earliest = self.earliest();
        if after < earliest || after.0 > self.revision {
            return LogSlice::TooOld { earliest };
        }
        let skipped = (after.0 - earliest.0) as usize;
        LogSlice::Commits(self.log.iter().skip(skipped).take(LOG_READ_MAX).cloned().collect())
    }

    pub(crate) fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    /// How many entries have expired and still occupy space.
    pub(crate) fn expired(&self, now: Timestamp) -> u64 {
        let entries = self.slots.values().filter_map(|slot| slot.current.as_ref());
        entries.map(|entry| u64::from(entry.is_expired(now))).sum()
    }

    pub(crate) fn stats(&self) -> Stats {
        let size = |entry: &Entry| entry.value.len() + entry.metadata.as_ref().map_or(0, Json::len);
        let entries =
            self.slots.iter().filter_map(|(key, slot)| Some((key, slot.current.as_ref()?)));
        let (count, bytes) = entries.fold((0, 0), |(count, bytes), (key, entry)| {
            (count + 1, bytes + key.len() + size(entry))
        });
        Stats {
            entries: count,
            bytes: Some(bytes as u64),
            revision: Some(self.revision()),
            earliest_revision: Some(self.earliest()),
        }
    }

    /// The revision before the oldest kept commit.
    fn earliest(&self) -> Revision {
        Revision(self.revision - self.log.len() as u64)
    }

    /// What a writer finds: never late, but expired is absent.
    fn present(&self, key: &Key, now: Timestamp) -> Option<&Entry> {
        let entry = self.slots.get(key.as_bytes())?.current.as_ref();
        entry.filter(|entry| !entry.is_expired(now))
    }

    fn holds(&self, check: &Check, now: Timestamp) -> bool {
        match (self.present(&check.key, now), &check.expect) {
            (None, Expect::Absent) => true,
            (Some(entry), Expect::Version(version)) => entry.version == *version,
            (None, Expect::Version(_)) | (Some(_), Expect::Absent) => false,
        }
    }

    /// What each add comes to; before anything is written, since one bad sum refuses the commit.
    fn sums(&self, commit: &Commit, now: Timestamp) -> Result<Vec<Option<i64>>> {
        let sum = |write: &Write| {
            let Write::Add(key, amount) = write else {
                return Ok(None);
            };
            let old = self.present(key, now).map(|entry| &entry.value);
            Json::sum(old, *amount).map(Some).map_err(|reason| {
                Error::new(ErrorKind::Invalid, format!("cannot add to {key}: {reason}"))
            })
        };
        commit.writes.iter().map(sum).collect()
    }

    /// Puts new contents into a slot; says whether that changed anything.
    fn replace(&mut self, key: &Key, new: Option<Entry>, now: Timestamp) -> bool {
        if let Some(at) = new.as_ref().and_then(|entry| entry.expires) {
            self.ends.insert((at, key.to_bytes()));
        }
        let gone = new.is_none();
        let slot = self.slots.entry(key.to_bytes()).or_default();
        let old = std::mem::replace(&mut slot.current, new);
        let changed = old.is_some() || !gone;
        if self.lag.is_zero() {
            if gone {
                self.slots.remove(key.as_bytes());
            }
        } else {
            slot.replaced.push_back((now, old));
            let horizon = now.saturating_sub(self.lag).unwrap_or(Timestamp::MIN);
            slot.replaced.retain(|(replaced_at, _)| *replaced_at > horizon);
        }
        changed
    }

    fn log(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        self.revision += 1;
        self.log.push_back((Revision(self.revision), changes));
        while self.log.len() > self.history {
            self.log.pop_front();
        }
    }

    /// Frees the space of some expired entries.
    fn reclaim(&mut self, now: Timestamp) {
        let mut changes = Vec::new();
        while changes.len() < RECLAIMED_PER_COMMIT {
            let Some((at, key)) = self.ends.first().cloned() else {
                break;
            };
            if at > now {
                break;
            }
            self.ends.pop_first();
            let key = Key::from_stored(key);
            let current = self.slots.get(key.as_bytes()).and_then(|slot| slot.current.as_ref());
            if current.is_some_and(|entry| entry.is_expired(now)) {
                self.replace(&key, None, now);
                changes.push(Change { key, kind: ChangeKind::Expired });
            }
        }
        self.log(changes);
    }
}
