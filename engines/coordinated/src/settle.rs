//! Settling: dropping the coordinator's copy of a value once the value store is certain to show it.

use jiff::Timestamp;
use keyward_engine::{Commit, Expect, Outcome, Result, Version};
use keyward_key::Key;

use crate::Coordinated;
use crate::layout;
use crate::pending::Mark;
use crate::push::Planned;
use crate::takeover::Sighting;
use crate::work::Step;

/// How many keys are tended in one go.
const TENDED_AT_ONCE: usize = 32;
/// How many keys a commit tends besides its own.
const TENDED_PER_COMMIT: usize = 8;
/// How many keys that other processes left are looked at in one go.
const LEFT_MAX: usize = 64;

/// What [`Coordinated::settle`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    /// Keys that were brought to the value store.
    pub pushed: usize,
    /// Keys whose value is now in the value store only.
    pub settled: usize,
    /// Keys that are still held in the coordinator: they could not be pushed, or not enough time has passed.
    pub waiting: usize,
}

/// What became of some keys.
#[derive(Default)]
struct Tended {
    /// The value store has them, since now at the latest.
    shown: Vec<Planned>,
    pushed: usize,
}

impl Coordinated {
    /// Pushes everything that the value store does not have yet, and drops the coordinator's copy of every value that
    /// it is certain to show. Safe to call at any time, by several processes at once, and to interrupt.
    ///
    /// Commits do a part of this on the way. Fails if one of the two stores cannot be reached; what was done until
    /// then stays done.
    pub async fn settle(&self) -> Result<Settled> {
        let mut settled = Settled::default();
        let mut after = None;
        loop {
            let (rows, next) = self.coordinator_keys(layout::pending_range(), after).await?;
            self.plan_left(&rows, |_| self.now()).await?;
            self.settle_due(&mut settled, usize::MAX).await?;
            if next.is_none() {
                break;
            }
            after = next;
        }
        settled.waiting = self.work.planned();
        Ok(settled)
    }

    /// Settles some of what earlier processes left. Only the coordinator must be reachable.
    pub(crate) async fn settle_some(&self) -> Result<()> {
        let (mut rows, _) = self.coordinator_keys(layout::pending_range(), None).await?;
        rows.truncate(LEFT_MAX);
        // What was pushed a moment ago may not be visible yet, and need not be pushed again.
        let visible =
            |mark: &Mark| mark.committed.saturating_add(self.lag()).unwrap_or(Timestamp::MAX);
        self.plan_left(&rows, visible).await?;
        // The value store may be out of reach: the work stays.
        let _ = self.settle_due(&mut Settled::default(), LEFT_MAX).await;
        Ok(())
    }

    async fn settle_due(&self, settled: &mut Settled, mut limit: usize) -> Result<()> {
        loop {
            let due = self.work.take_due(self.now(), TENDED_AT_ONCE.min(limit));
            limit = limit.saturating_sub(due.len());
            if due.is_empty() {
                break;
            }
            let tended = self.tend(due).await?;
            settled.pushed += tended.pushed;
            self.note_shown(tended.shown).await?;
        }
        settled.settled += self.drop_done().await?;
        Ok(())
    }

    /// Tends some of what is due, as part of a commit. What fails is planned again.
    pub(crate) async fn tend_some(&self) {
        let now = self.now();
        let next_look = now.saturating_add(self.options.grace).unwrap_or(Timestamp::MAX);
        if self.work.is_time_to_look(now, next_look)
            && let Ok((mut rows, _)) = self.coordinator_keys(layout::pending_range(), None).await
        {
            rows.retain(|row| {
                layout::pending_subject(row).is_some_and(|key| !self.work.knows(&key))
            });
            rows.truncate(LEFT_MAX);
            // Most of them belong to processes that are alive, and will be done before that.
            let _ = self.plan_left(&rows, |_| next_look).await;
        }
        let due = self.work.take_due(now, TENDED_PER_COMMIT);
        if !due.is_empty() {
            let _ = self.tend(due).await;
        }
    }

    /// Plans what to do with pending rows that this process knows nothing of. `look_at` says when to look whether the
    /// value store has them, if no process has noted that it does.
    async fn plan_left(&self, rows: &[Key], look_at: impl Fn(&Mark) -> Timestamp) -> Result<()> {
        let keys: Vec<Key> = rows
            .iter()
            .filter_map(layout::pending_subject)
            .filter(|key| !self.work.knows(key))
            .collect();
        for some in keys.chunks(TENDED_AT_ONCE) {
            for Planned { key, pending, .. } in self.pendings(some).await? {
                match pending.mark.pushed {
                    Some(pushed) => {
                        let at = self.confirmable_at(pending.mark.committed, pushed);
                        self.work.plan(&key, at, Step::Confirm(pending.version));
                    }
                    None => self.work.plan(&key, look_at(&pending.mark), Step::Push),
                }
            }
        }
        Ok(())
    }

    /// Does what is due for some keys. On an error, all of them are planned again.
    async fn tend(&self, due: Vec<(Key, Step)>) -> Result<Tended> {
        let tended = self.tend_all(&due).await;
        if tended.is_err() {
            for (key, _) in &due {
                self.retry_later(key);
            }
        }
        tended
    }

    async fn tend_all(&self, due: &[(Key, Step)]) -> Result<Tended> {
        let keys: Vec<Key> = due.iter().map(|(key, _)| key.clone()).collect();
        // A key without a pending row was settled by another process.
        let planned = self.pendings(&keys).await?;
        let keys: Vec<Key> = planned.iter().map(|planned| planned.key.clone()).collect();
        let shown = self.shown(&keys).await?;
        let now = self.now();
        let mut tended = Tended::default();
        let mut sightings = Vec::new();
        let mut to_push = Vec::new();
        for (planned, shown) in planned.into_iter().zip(shown) {
            let Planned { key, pending, .. } = &planned;
            let step = due.iter().find(|(other, _)| other == key).map(|(_, step)| step);
            if pending.is_shown_by(shown.as_ref(), now, self.expiry_support()) {
                if step == Some(&Step::Confirm(pending.version.clone())) {
                    self.work.finish(key, pending.version.clone());
                } else {
                    let at = self.confirmable_at(pending.mark.committed, now);
                    self.work.plan(key, at, Step::Confirm(pending.version.clone()));
                    tended.shown.push(planned);
                }
            } else if pending.mark.foreign {
                sightings.push(Sighting {
                    key: key.clone(),
                    head: pending.head.clone(),
                    pending: Some(pending.version.clone()),
                    shown,
                });
            } else {
                to_push.push(planned);
            }
        }
        self.take_over(sightings).await?;
        let pushed = self.push(to_push).await;
        tended.pushed += pushed.len();
        tended.shown.extend(pushed);
        Ok(tended)
    }

    /// Notes in the pending rows since when the value store has the values, so that another process need not wait
    /// from the beginning.
    async fn note_shown(&self, shown: Vec<Planned>) -> Result<()> {
        let limits = self.capabilities.limits;
        let now = self.now();
        let mut batch: Vec<Planned> = Vec::new();
        let mut bytes = 0;
        for planned in shown {
            let size = planned.key.as_bytes().len()
                + planned.pending.value.as_ref().map_or(0, keyward_engine::Json::len);
            if batch.len() == limits.commit_keys_max || bytes + size > limits.commit_bytes_max {
                self.note_batch(std::mem::take(&mut batch), now).await?;
                bytes = 0;
            }
            bytes += size;
            batch.push(planned);
        }
        self.note_batch(batch, now).await
    }

    async fn note_batch(&self, batch: Vec<Planned>, now: Timestamp) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut commit = Commit::new();
        for Planned { key, pending, .. } in &batch {
            let mark = Mark { pushed: Some(now), ..pending.mark.clone() };
            let held = pending.value.as_ref().filter(|_| !mark.inline);
            let row = layout::pending(key);
            commit = commit
                .check(row.clone(), Expect::Version(pending.version.clone()))
                .put(row, mark.put(held)?);
        }
        // If one of them has changed, none is noted: a note only saves time.
        if let Outcome::Applied { versions, .. } = self.coordinator.commit(commit).await? {
            for (Planned { key, pending, .. }, version) in batch.iter().zip(versions) {
                if let Some(version) = version {
                    let at = self.confirmable_at(pending.mark.committed, now);
                    self.work.plan(key, at, Step::Confirm(version));
                }
            }
        }
        Ok(())
    }

    /// Deletes the pending rows that are no longer needed, and tells how many.
    async fn drop_done(&self) -> Result<usize> {
        let mut dropped = 0;
        let at_once = self.coordinator.capabilities().limits.commit_keys_max.min(TENDED_AT_ONCE);
        loop {
            let done = self.work.take_done(at_once, |_| true);
            if done.is_empty() {
                return Ok(dropped);
            }
            dropped += self.drop_rows(done).await?;
        }
    }

    async fn drop_rows(&self, mut done: Vec<(Key, Version)>) -> Result<usize> {
        while !done.is_empty() {
            let commit = done.iter().fold(Commit::new(), |commit, (key, version)| {
                let row = layout::pending(key);
                commit.check(row.clone(), Expect::Version(version.clone())).delete(row)
            });
            let outcome = self.coordinator.commit(commit).await;
            match outcome {
                Ok(Outcome::Applied { .. }) => return Ok(done.len()),
                Ok(Outcome::Conflicted { failed }) => {
                    let mut at = 0;
                    done.retain(|(key, _)| {
                        let holds = !failed.contains(&at);
                        at += 1;
                        if !holds {
                            self.retry_later(key);
                        }
                        holds
                    });
                }
                Err(error) => {
                    for (key, _) in &done {
                        self.retry_later(key);
                    }
                    return Err(error);
                }
            }
        }
        Ok(0)
    }
}
