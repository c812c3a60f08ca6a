//! Taking messages that were seen, in one commit.

use std::sync::atomic::Ordering;

use keyward_engine::{Commit, ErrorKind, Expect, Expiry, Put, Version};
use keyward_key::Key;
use tokio::time::Instant;

use crate::lease::lease_mark;
use crate::look::{Candidate, WINDOW_MIN};
use crate::moment::{Moment, millis};
use crate::queue::Committed;
use crate::row::{Current, Row, State};
use crate::{Attempt, Claimant, Error, Queue, Result};

/// Why an attempt ended of which nothing more was heard.
const SILENT: &str = "the worker gave no sign of life for the time of its lease";

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
    /// Picks the head; after lost races, from anywhere in a part of the line that grows with them.
    pub(crate) fn pick(&self, left: &mut Vec<Candidate>, max: usize) -> Vec<Candidate> {
        let spread = self.spread();
        let latest = left.len().saturating_sub(max).min(spread);
        let start = if latest == 0 { 0 } else { self.inner.entropy.below(latest + 1) };
        let bytes_max = self.inner.store.limits().commit_bytes_max / 4;
        let mut bytes = 0;
        let fitting = left[start..].iter().take(max).take_while(|candidate| {
            bytes += candidate.row.payload.len();
            bytes <= bytes_max
        });
        let count = fitting.count().max(1);
        left.drain(start..start + count).collect()
    }

    /// Claims candidates in one commit.
    pub(crate) async fn take(&self, claimant: &Claimant, picked: Vec<Candidate>) -> Result<Taken> {
        let (commit, taking) = self.taking(claimant, picked)?;
        let committed = match self.commit(commit).await {
            Err(Error::Store(error)) if error.kind() == ErrorKind::LimitExceeded => {
                return Ok(Taken::TooLarge(taking.picked));
            }
            committed => committed?,
        };
        self.took(taking, committed).await
    }

    /// The commit that claims candidates.
    pub(crate) fn taking(
        &self,
        claimant: &Claimant,
        picked: Vec<Candidate>,
    ) -> Result<(Commit, Taking)> {
        let Self { inner, .. } = self;
        let (places, sent, now) = (&inner.places, Instant::now(), self.now());
        let nonce = inner.entropy.nonce()?;
        let holder = claimant.holder.as_ref().unwrap_or(&inner.options.holder);
        let lease_time = claimant.lease.unwrap_or(inner.options.lease);
        let lease = lease_mark(&nonce, holder)?;
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
                next.due_at = Some(now.after(lease_time));
                next.attempt = Some(Current {
                    number: next.next_attempt(),
                    nonce: nonce.clone(),
                    by: holder.clone(),
                    at: now,
                    lease_ms: claimant.lease.map(millis),
                });
                let new_entry = next.entry(places, id);
                commit = commit.check(key.clone(), Expect::Version(version.clone()));
                if new_entry != entry.key {
                    commit = commit.delete(entry.key.clone());
                }
                row_writes.push(commit.writes.len());
                commit = self.put_row(commit, id, &next)?;
                let lease = Put::new(lease.clone()).expiring(Expiry::After(lease_time));
                commit = commit.put(places.claim(id), lease);
                claimed.push((at, next));
            }
            checks_end.push(commit.checks.len());
        }
        Ok((commit, Taking { picked, claimed, row_writes, checks_end, nonce, sent, now }))
    }

    /// What became of a claim, by the outcome of its commit.
    pub(crate) async fn took(&self, taking: Taking, committed: Committed) -> Result<Taken> {
        let Self { inner, .. } = self;
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
        let metrics = &self.inner.metrics;
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
