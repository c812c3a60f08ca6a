//! Taking messages from a queue.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use keyward_engine::{Commit, Cursor, Expect, Expiry, Put, Scan, Version};
use keyward_key::Key;
use tokio::time::Instant;

use crate::lease::lease_mark;
use crate::moment::Moment;
use crate::places::IndexEntry;
use crate::queue::Committed;
use crate::row::{Current, Row, State};
use crate::{Attempt, Queue, Result};

/// Why an attempt ended of which nothing more was heard.
const SILENT: &str = "the worker gave no sign of life for the time of its lease";

/// How many entries of each section a claim looks at.
const WINDOW_MIN: usize = 32;
/// How often a claim looks again when others took what it saw.
const LOOKS: usize = 4;

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
struct Candidate {
    entry: IndexEntry,
    key: Key,
    row: Row,
    version: Version,
}

struct Look {
    candidates: Vec<Candidate>,
    next_due: Option<Moment>,
    paused: bool,
}

enum Taken {
    /// These are held; none, if all that was picked went to the dead letters.
    Held(Vec<Attempt>),
    /// Somebody else took some of them; these are left.
    Outrun(Vec<Candidate>),
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
        let max = max.clamp(1, self.claim_max());
        let mut claims =
            Claims { attempts: Vec::new(), next_due: None, paused: false, contended: false };
        for _ in 0..LOOKS {
            let look = self.look(max).await?;
            claims.next_due = look.next_due.map(Moment::time);
            claims.paused = look.paused;
            claims.contended = false;
            if look.paused || look.candidates.is_empty() {
                return Ok(claims);
            }
            let mut left = look.candidates;
            while !left.is_empty() {
                let picked = self.pick(&mut left, max);
                match self.take(picked).await? {
                    Taken::Held(attempts) if attempts.is_empty() => {}
                    Taken::Held(attempts) => {
                        claims.attempts = attempts;
                        return Ok(claims);
                    }
                    Taken::Outrun(others) => left.extend(others),
                    Taken::Paused => {
                        claims.paused = true;
                        return Ok(claims);
                    }
                }
            }
            claims.contended = true;
        }
        Ok(claims)
    }

    fn claim_max(&self) -> usize {
        // Of each message a commit touches the row, two entries, the claim, and perhaps a dead
        // letter and a job.
        let fitting = self.0.store.limits().commit_keys_max.saturating_sub(1) / 6;
        fitting.clamp(1, Self::CLAIM_MAX)
    }

    /// Reads the heads of both sections, and the rows that they name.
    async fn look(&self, max: usize) -> Result<Look> {
        let Self(inner) = self;
        let window = WINDOW_MIN.max(2 * max);
        let ready = Scan::new(inner.places.ready_range()).keys_only().limit(window);
        let ready = inner.store.scan(&ready).await?;
        let after = self.due_after().as_ref().map(Cursor::after_key);
        let resumed = after.is_some();
        let due = Scan::new(inner.places.due_range()).keys_only().limit(window).after(after);
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
        if entries.is_empty() {
            *self.due_after() = None;
            // The head was passed over: look at it next time, soon.
            let next_due = if resumed { Some(now) } else { next_due };
            return Ok(Look { candidates: Vec::new(), next_due, paused: false });
        }
        let (candidates, taken_over) = self.read_rows(&entries, ready_count).await?;
        let Some(candidates) = candidates else {
            return Ok(Look { candidates: Vec::new(), next_due, paused: true });
        };
        // Where the head of `due` is all leased, the next look goes on behind it.
        let hints = entries.len() - ready_count;
        *self.due_after() = match entries.last() {
            Some(last) if hints > 0 && hints == due.rows.len() && taken_over == 0 => {
                due.next.is_some().then(|| last.key.clone())
            }
            _ => None,
        };
        Ok(Look { candidates, next_due, paused: false })
    }

    /// Of the entries, those whose rows can be taken, the longest waiting first, and how many of
    /// them are from `due`; no candidates at all where the queue is paused.
    async fn read_rows(
        &self,
        entries: &[IndexEntry],
        ready_count: usize,
    ) -> Result<(Option<Vec<Candidate>>, usize)> {
        let Self(inner) = self;
        let places = &inner.places;
        let mut keys = vec![places.paused().clone()];
        keys.extend(entries.iter().map(|entry| places.row(&entry.id)));
        keys.extend(entries[ready_count..].iter().map(|entry| places.claim(&entry.id)));
        let mut found = inner.store.get_many(&keys).await?;
        let claims = found.split_off(1 + entries.len());
        let rows = found.split_off(1);
        if matches!(found[..], [Some(_)]) {
            return Ok((None, 0));
        }
        let mut candidates = Vec::new();
        let mut stale = Vec::new();
        let mut from_due = 0;
        for (at, (entry, row)) in entries.iter().zip(rows).enumerate() {
            let key = places.row(&entry.id);
            let Some(stored) = row else {
                stale.push((entry.key.clone(), key, Expect::Absent));
                continue;
            };
            let row = self.decode(&key, &stored).ok();
            let Some(row) = row.filter(|row| row.entry(places, &entry.id) == entry.key) else {
                stale.push((entry.key.clone(), key, Expect::Version(stored.version)));
                continue;
            };
            let leased = at.checked_sub(ready_count).is_some_and(|at| claims[at].is_some());
            if row.state == State::Claimed && leased {
                continue;
            }
            from_due += usize::from(at >= ready_count);
            candidates.push(Candidate { entry: entry.clone(), key, row, version: stored.version });
        }
        if !stale.is_empty() {
            self.forget(stale).await?;
        }
        candidates.sort_by_key(|candidate| candidate.entry.at);
        Ok((Some(candidates), from_due))
    }

    /// Removes entries that lead to no row of theirs: rows that were deleted by hand, or damaged.
    /// Mostly they are gone by now, because their row moved between two reads.
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
    fn pick(&self, left: &mut Vec<Candidate>, max: usize) -> Vec<Candidate> {
        let spread = self.0.spread.load(Ordering::Relaxed);
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
        let Self(inner) = self;
        let (places, sent, now) = (&inner.places, Instant::now(), self.now());
        let nonce = inner.entropy.nonce()?;
        let mut commit = Commit::new().check(places.paused().clone(), Expect::Absent);
        // Which checks are about which candidate, and which write is its row.
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
                let lease = Put::new(lease_mark(&nonce, &inner.options.holder)?)
                    .expiring(Expiry::After(inner.options.lease));
                commit = commit.put(places.claim(id), lease);
                claimed.push((at, next));
            }
            checks_end.push(commit.checks.len());
        }
        let attempt = |(at, row): (usize, Row), version: Version| {
            Attempt::new(
                self.clone(),
                picked[at].entry.id.clone(),
                row,
                version,
                nonce.clone(),
                sent,
            )
        };
        let attempts = match self.commit(commit).await? {
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
