//! Taking messages from a queue.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use keyward_engine::{Commit, Cursor, ErrorKind, Expect, Expiry, Page, Put, Scan, Version};
use keyward_key::Key;
use tokio::time::Instant;

use crate::lease::lease_mark;
use crate::moment::Moment;
use crate::places::IndexEntry;
use crate::queue::Committed;
use crate::row::{Current, Row, State};
use crate::{Attempt, Error, Queue, Result};

/// Why an attempt ended of which nothing more was heard.
const SILENT: &str = "the worker gave no sign of life for the time of its lease";

/// How many entries of each section a claim looks at; of `ready` fewer, as long as nobody else takes
/// what it sees.
const WINDOW_MIN: usize = 32;
const READY_MIN: usize = 4;
/// How often a claim looks: again, when others took what it saw, and further, when nothing of what it
/// saw can be taken.
const LOOKS: usize = 8;

/// What a claim gave.
#[derive(Debug)]
pub struct Claims {
    /// The messages, now held by this process until their leases end.
    pub attempts: Vec<Attempt>,
    /// When the next message that waits for its time should be looked at, by this process's clock.
    pub next_due: Option<Timestamp>,
    /// Whether the queue is paused; then nothing was claimed.
    pub paused: bool,
    /// Whether others may have taken what could be seen, so that it is worth looking again.
    pub contended: bool,
}

/// A message that can be taken.
#[derive(Debug)]
pub(crate) struct Candidate {
    entry: IndexEntry,
    key: Key,
    row: Row,
    version: Version,
}

struct Look {
    candidates: Vec<Candidate>,
    next_due: Option<Moment>,
    paused: bool,
    /// Where it ended, in the sections that go on.
    end: Passed,
}

/// What was passed over of each section, because nothing of it can be taken: all is leased, or this
/// process cannot read it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Passed {
    ready: Option<Key>,
    due: Option<Key>,
}

impl Passed {
    fn is_none(&self) -> bool {
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

/// A claim as it is committed.
pub(crate) struct Taking {
    picked: Vec<Candidate>,
    /// Which of them are going to be held, with their new rows; the others become dead letters.
    claimed: Vec<(usize, Row)>,
    /// Which write is the row of each that is going to be held.
    row_writes: Vec<usize>,
    /// Where the checks about each that was picked end.
    checks_end: Vec<usize>,
    nonce: String,
    sent: Instant,
    now: Moment,
}

pub(crate) enum Taken {
    /// These are held; none, if all that was picked went to the dead letters.
    Held(Vec<Attempt>),
    /// Somebody else took some of them; these are left.
    Outrun(Vec<Candidate>),
    /// Together they are more than the store takes.
    TooLarge(Vec<Candidate>),
    Paused,
}

impl Queue {
    /// The most messages that are claimed together.
    pub const CLAIM_MAX: usize = 256;

    /// Claims up to `max` messages in one commit, those first that are longest in line. Messages
    /// whose worker gave no sign of life are taken over, or, after too many attempts, become dead
    /// letters.
    ///
    /// Each claimed message counts as an attempt, and is held for a lease; [`Attempt::beat`] holds
    /// it longer. While the queue is paused nothing is claimed.
    pub async fn claim(&self, max: usize) -> Result<Claims> {
        self.claim_looking(max, 0).await.map(|(claims, _)| claims)
    }

    /// The same, which reads so many more messages than it takes; those are given back, as they were
    /// seen.
    pub(crate) async fn claim_looking(
        &self,
        max: usize,
        further: usize,
    ) -> Result<(Claims, Vec<Candidate>)> {
        let max = max.clamp(1, self.claim_max());
        let mut left = Vec::new();
        let mut claims =
            Claims { attempts: Vec::new(), next_due: None, paused: false, contended: false };
        // Whether the heads of both sections are still to be seen.
        let mut unseen = !self.passed().is_none();
        for _ in 0..LOOKS {
            let look = self.look(max, further).await?;
            claims.next_due = look.next_due.map(Moment::time);
            claims.paused = look.paused;
            claims.contended = false;
            if look.paused {
                return Ok((claims, Vec::new()));
            }
            if look.candidates.is_empty() {
                if self.passed().is_none() && !std::mem::take(&mut unseen) {
                    return Ok((claims, Vec::new()));
                }
                continue;
            }
            left = look.candidates;
            let (taken, outrun) = self.take_some(&mut left, max).await?;
            match taken {
                Some(Taken::Held(attempts)) => {
                    claims.contended = outrun && attempts.len() < max;
                    claims.attempts = attempts;
                    break;
                }
                Some(Taken::Paused) => {
                    claims.paused = true;
                    return Ok((claims, Vec::new()));
                }
                Some(_) => claims.contended = true,
                None => *self.passed() = look.end,
            }
        }
        if !self.passed().is_none() {
            claims.next_due = Some(self.now().time());
        }
        Ok((claims, left))
    }

    /// Reads about so many messages that can be taken, and takes none.
    pub(crate) async fn look_only(&self, max: usize) -> Result<Vec<Candidate>> {
        self.look(max, 0).await.map(|look| look.candidates)
    }

    /// Takes what it can get of the candidates, in one commit if nothing is in the way; `None`, if none
    /// of them can be taken by this process. Tells too whether others took some of them.
    async fn take_some(
        &self,
        left: &mut Vec<Candidate>,
        max: usize,
    ) -> Result<(Option<Taken>, bool)> {
        let mut most = max;
        let (mut ended, mut outrun) = (None, false);
        while !left.is_empty() {
            let picked = self.pick(left, most);
            match self.take(picked).await? {
                // All that was picked went to the dead letters.
                Taken::Held(attempts) if attempts.is_empty() => {
                    ended = Some(Taken::Outrun(Vec::new()));
                }
                Taken::Outrun(others) => {
                    left.extend(others);
                    ended = Some(Taken::Outrun(Vec::new()));
                    outrun = true;
                }
                Taken::TooLarge(picked) if picked.len() > 1 => {
                    left.splice(..0, picked);
                    most = 1;
                }
                Taken::TooLarge(_) => drop(self.0.metrics.passed_over.inc()),
                taken => return Ok((Some(taken), outrun)),
            }
        }
        Ok((ended, outrun))
    }

    /// Among how many rows at the head a claim chooses: none, where nobody else takes what it sees.
    pub(crate) fn spread(&self) -> usize {
        self.0.spread.load(Ordering::Relaxed)
    }

    fn claim_max(&self) -> usize {
        // Of each message a commit touches the row, two entries, the claim, and perhaps a dead
        // letter and a job.
        let fitting = self.0.store.limits().commit_keys_max.saturating_sub(1) / 6;
        fitting.clamp(1, Self::CLAIM_MAX)
    }

    /// Reads both sections from their heads, or behind what was passed over, and the rows that they
    /// name.
    async fn look(&self, max: usize, further: usize) -> Result<Look> {
        let Self(inner) = self;
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
        let Self(inner) = self;
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
        let found = self.0.store.get_many(&entries).await?;
        for ((entry, row, expect), found) in stale.into_iter().zip(found) {
            if found.is_some() {
                // If the row moved meanwhile, its entry is right after all.
                self.commit(Commit::new().check(row, expect).delete(entry)).await?;
            }
        }
        Ok(())
    }

    /// Picks the head; after lost races, from anywhere in a part of the line that grows with them.
    pub(crate) fn pick(&self, left: &mut Vec<Candidate>, max: usize) -> Vec<Candidate> {
        let spread = self.spread();
        let latest = left.len().saturating_sub(max).min(spread);
        let start = if latest == 0 { 0 } else { self.0.entropy.below(latest + 1) };
        let bytes_max = self.0.store.limits().commit_bytes_max / 4;
        let mut bytes = 0;
        let fitting = left[start..].iter().take(max).take_while(|candidate| {
            bytes += candidate.row.payload.len();
            bytes <= bytes_max
        });
        let count = fitting.count().max(1);
        left.drain(start..start + count).collect()
    }

    /// Claims candidates in one commit.
    async fn take(&self, picked: Vec<Candidate>) -> Result<Taken> {
        let (commit, taking) = self.taking(picked)?;
        let committed = match self.commit(commit).await {
            Err(Error::Store(error)) if error.kind() == ErrorKind::LimitExceeded => {
                return Ok(Taken::TooLarge(taking.picked));
            }
            committed => committed?,
        };
        self.took(taking, committed).await
    }

    /// The commit that claims candidates.
    pub(crate) fn taking(&self, picked: Vec<Candidate>) -> Result<(Commit, Taking)> {
        let Self(inner) = self;
        let (places, sent, now) = (&inner.places, Instant::now(), self.now());
        let nonce = inner.entropy.nonce()?;
        let lease = lease_mark(&nonce, &inner.options.holder)?;
        let mut commit = Commit::new().check(places.paused().clone(), Expect::Absent);
        let mut checks_end = Vec::with_capacity(picked.len());
        let mut claimed: Vec<(usize, Row)> = Vec::with_capacity(picked.len());
        let mut row_writes = Vec::with_capacity(picked.len());
        for (at, Candidate { entry, key, row, version }) in picked.iter().enumerate() {
            let id = &entry.id;
            let mut next = row.clone();
            let takes_over = row.state == State::Claimed;
            if takes_over {
                commit = commit.check(places.claim(id), Expect::Absent);
                next.end_attempt(now, SILENT);
            }
            if takes_over && next.retry_count >= inner.options.retry.attempts_max {
                commit = self.remove_row(commit, id, row, version);
                commit = self.bury(commit, id, next, now, SILENT)?;
            } else {
                next.state = State::Claimed;
                next.due_at = Some(now.after(inner.options.lease));
                next.attempt = Some(Current {
                    number: next.next_attempt(),
                    nonce: nonce.clone(),
                    by: inner.options.holder.clone(),
                    at: now,
                });
                let new_entry = next.entry(places, id);
                commit = commit.check(key.clone(), Expect::Version(version.clone()));
                if new_entry != entry.key {
                    commit = commit.delete(entry.key.clone());
                }
                row_writes.push(commit.writes.len());
                commit = self.put_row(commit, id, &next)?;
                let lease = Put::new(lease.clone()).expiring(Expiry::After(inner.options.lease));
                commit = commit.put(places.claim(id), lease);
                claimed.push((at, next));
            }
            checks_end.push(commit.checks.len());
        }
        Ok((commit, Taking { picked, claimed, row_writes, checks_end, nonce, sent, now }))
    }

    /// What became of a claim, by the outcome of its commit.
    pub(crate) async fn took(&self, taking: Taking, committed: Committed) -> Result<Taken> {
        let Self(inner) = self;
        let Taking { picked, claimed, row_writes, checks_end, nonce, sent, now } = taking;
        let attempt = |(at, row): (usize, Row), version: Version| {
            let id = picked[at].entry.id.clone();
            Attempt::new(self.clone(), id, row, version, nonce.clone(), sent)
        };
        let attempts = match committed {
            Committed::Applied(versions) => {
                inner
                    .spread
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spread| Some(spread / 2))
                    .ok();
                let versions = row_writes.iter().map(|at| versions.get(*at).cloned().flatten());
                let with_versions = claimed.into_iter().zip(versions);
                with_versions.filter_map(|(row, version)| Some(attempt(row, version?))).collect()
            }
            Committed::Conflicted(failed) => {
                if failed.contains(&0) {
                    return Ok(Taken::Paused);
                }
                inner.metrics.conflicts.inc();
                let wider = |spread: usize| Some((2 * spread).clamp(8, 4 * WINDOW_MIN));
                inner.spread.fetch_update(Ordering::Relaxed, Ordering::Relaxed, wider).ok();
                let lost = |at: usize| {
                    let begin = if at == 0 { 1 } else { checks_end[at - 1] };
                    failed.iter().any(|check| (begin..checks_end[at]).contains(check))
                };
                let left = picked.into_iter().enumerate().filter(|(at, _)| !lost(*at));
                return Ok(Taken::Outrun(left.map(|(_, candidate)| candidate).collect()));
            }
            Committed::Unknown(error) => {
                let keys: Vec<Key> = picked.iter().map(|candidate| candidate.key.clone()).collect();
                let found = self.read_again(&keys, error).await?;
                let mut attempts = Vec::new();
                for (at, row) in claimed {
                    let Some(stored) = &found[at] else { continue };
                    let Ok(now) = self.decode(&keys[at], stored) else { continue };
                    if now.attempt.as_ref().is_some_and(|current| current.nonce == nonce) {
                        attempts.push(attempt((at, row), stored.version.clone()));
                    }
                }
                attempts
            }
        };
        self.count_claims(&picked, &attempts, now);
        Ok(Taken::Held(attempts))
    }

    fn count_claims(&self, picked: &[Candidate], attempts: &[Attempt], now: Moment) {
        let metrics = &self.0.metrics;
        metrics.claimed.inc_by(attempts.len() as u64);
        for candidate in picked {
            let held = attempts.iter().any(|attempt| attempt.id() == candidate.entry.id);
            match (candidate.row.state, held) {
                (State::Claimed, true) => drop(metrics.taken_over.inc()),
                (State::Claimed, false) => drop(metrics.dead_lettered.inc()),
                (_, true) => {
                    let waited = now.time().duration_since(candidate.row.place_in_line().time());
                    metrics.wait_seconds.observe(waited.as_secs_f64().max(0.0));
                }
                (_, false) => {}
            }
        }
    }
}
