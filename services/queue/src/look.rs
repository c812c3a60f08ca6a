//! Reading what a claim can take.

use keyward_engine::{Commit, Cursor, Expect, Page, Scan, Version};
use keyward_key::Key;

use crate::moment::Moment;
use crate::places::IndexEntry;
use crate::row::{Row, State};
use crate::{Queue, Result};

/// How many entries of each section a claim looks at; of `ready` fewer, as long as nobody else takes
/// what it sees.
pub(crate) const WINDOW_MIN: usize = 32;
const READY_MIN: usize = 4;

/// A message that can be taken.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub entry: IndexEntry,
    pub key: Key,
    pub row: Row,
    pub version: Version,
}

/// What a look at a queue saw.
pub(crate) struct Look {
    pub candidates: Vec<Candidate>,
    pub next_due: Option<Moment>,
    pub paused: bool,
    /// Where it ended, in the sections that go on.
    pub end: Passed,
}

/// What was passed over of each section, because nothing of it can be taken: all is leased, or this
/// process cannot read it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Passed {
    ready: Option<Key>,
    due: Option<Key>,
}

impl Passed {
    pub fn is_none(&self) -> bool {
        self.ready.is_none() && self.due.is_none()
    }
}

/// What the rows say that a look has read.
struct Rows {
    candidates: Vec<Candidate>,
    /// How many of them are of the section `ready`, and `due`.
    from_ready: usize,
    from_due: usize,
}

impl Queue {
    /// Reads both sections from their heads, or behind what was passed over, and the rows that they
    /// name.
    pub(crate) async fn look(&self, max: usize, further: usize) -> Result<Look> {
        let Self { inner, .. } = self;
        let window = WINDOW_MIN.max(2 * max).max(max + further);
        let passed = self.passed().clone();
        let section = |range, passed: Option<Key>, window| {
            let after = passed.as_ref().map(Cursor::after_key);
            Scan::new(range).keys_only().limit(window).after(after)
        };
        // Every row that is seen is read.
        let ready_window = match passed.ready {
            Some(_) => window,
            None => (max + self.spread().max(READY_MIN).max(further)).min(window),
        };
        let ready = section(inner.places.ready_range(), passed.ready, ready_window);
        let ready = inner.store.scan(&ready).await?;
        let due = section(inner.places.due_range(), passed.due, window);
        let due = inner.store.scan(&due).await?;
        let now = self.now();
        let mut next_due = None;
        let mut entries: Vec<IndexEntry> =
            ready.rows.iter().filter_map(|row| inner.places.ready_entry(&row.key)).collect();
        let ready_count = entries.len();
        for row in &due.rows {
            match inner.places.due_entry(&row.key) {
                Some(entry) if entry.at <= now => entries.push(entry),
                Some(entry) => {
                    next_due = Some(entry.at);
                    break;
                }
                None => {}
            }
        }
        let last = |page: &Page| page.rows.last().map(|row| row.key.clone());
        let end = Passed {
            ready: ready.next.as_ref().and_then(|_| last(&ready)),
            // What is not due yet is the end of what is.
            due: due.next.as_ref().and_then(|_| last(&due)).filter(|_| next_due.is_none()),
        };
        let Some(rows) = self.read_rows(&entries, ready_count).await? else {
            let end = Passed::default();
            return Ok(Look { candidates: Vec::new(), next_due, paused: true, end });
        };
        *self.passed() = Passed {
            ready: end.ready.clone().filter(|_| rows.from_ready == 0),
            due: end.due.clone().filter(|_| rows.from_due == 0),
        };
        Ok(Look { candidates: rows.candidates, next_due, paused: false, end })
    }

    /// Of the entries, those whose rows can be taken, the longest waiting first; `None` where the
    /// queue is paused.
    async fn read_rows(&self, entries: &[IndexEntry], ready_count: usize) -> Result<Option<Rows>> {
        let Self { inner, .. } = self;
        let places = &inner.places;
        let mut read = Rows { candidates: Vec::new(), from_ready: 0, from_due: 0 };
        if entries.is_empty() {
            return Ok(Some(read));
        }
        let mut keys = vec![places.paused().clone()];
        keys.extend(entries.iter().map(|entry| places.row(&entry.id)));
        keys.extend(entries[ready_count..].iter().map(|entry| places.claim(&entry.id)));
        let mut found = inner.store.get_many(&keys).await?;
        let claims = found.split_off(1 + entries.len());
        let rows = found.split_off(1);
        if matches!(found[..], [Some(_)]) {
            return Ok(None);
        }
        let mut stale = Vec::new();
        for (at, (entry, row)) in entries.iter().zip(rows).enumerate() {
            let key = places.row(&entry.id);
            let Some(stored) = row else {
                stale.push((entry.key.clone(), key, Expect::Absent));
                continue;
            };
            let Ok(row) = self.decode(&key, &stored) else {
                // Others may be able to read it, and need its entry to find it.
                inner.metrics.passed_over.inc();
                continue;
            };
            if row.entry(places, &entry.id) != entry.key {
                stale.push((entry.key.clone(), key, Expect::Version(stored.version)));
                continue;
            }
            let leased = at.checked_sub(ready_count).is_some_and(|at| claims[at].is_some());
            if row.state == State::Claimed && leased {
                continue;
            }
            match at < ready_count {
                true => read.from_ready += 1,
                false => read.from_due += 1,
            }
            let version = stored.version;
            read.candidates.push(Candidate { entry: entry.clone(), key, row, version });
        }
        if !stale.is_empty() {
            self.forget(stale).await?;
        }
        read.candidates.sort_by_key(|candidate| candidate.entry.at);
        Ok(Some(read))
    }

    /// Removes entries that lead to no row of theirs: rows that were deleted or moved by hand. Mostly
    /// they are gone by now, because their row moved between two reads.
    async fn forget(&self, stale: Vec<(Key, Key, Expect)>) -> Result<()> {
        let entries: Vec<Key> = stale.iter().map(|(entry, ..)| entry.clone()).collect();
        let found = self.inner.store.get_many(&entries).await?;
        for ((entry, row, expect), found) in stale.into_iter().zip(found) {
            if found.is_some() {
                // If the row moved meanwhile, its entry is right after all.
                self.commit(Commit::new().check(row, expect).delete(entry)).await?;
            }
        }
        Ok(())
    }
}
