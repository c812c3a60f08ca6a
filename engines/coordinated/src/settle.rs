//! Settling: dropping the coordinator's copy of a value once the value store is certain to show it.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Commit, Cursor, Expect, Outcome, Result, Scan, Version};
use keyward_key::Key;

use crate::layout;
use crate::pending::{Mark, read_mark};
use crate::push::{Planned, RETRY_AFTER};
use crate::shared::Shared;
use crate::takeover::Sighting;
use crate::tasks::within;
use crate::work::Step;

/// How many keys are tended in one step: what value stores read in one request.
const TENDED_AT_ONCE: usize = 100;
/// How many keys are tended after a commit.
const TENDED_PER_COMMIT: usize = 32;
/// How many steps a round of the background task takes at most, so that the task can end between rounds.
const STEPS_PER_ROUND: usize = 32;
/// How many keys an opening confirms. It only saves space, and the next opening goes on.
const CONFIRMED_PER_OPENING: usize = 64;
/// How many pending rows are looked at in one step: their values are read too.
const LOOKED_AT_ONCE: usize = 256;
/// How long the next page of a look waits.
const LOOK_ON_AFTER: Duration = Duration::from_secs(1);
/// How long a row of another process rests. Its process usually pushes it within this time.
const OTHERS_REST: Duration = Duration::from_secs(60);
/// How long an opening waits for one step. A value store that takes longer is left to the background task, or to the
/// next opening.
const OPENING_STEP_WAIT: Duration = Duration::from_secs(5);

/// How many steps of an opening the value store may refuse whole. One can consist of keys that it never takes.
const OPENING_REFUSALS_MAX: usize = 3;

/// What [`Coordinated::settle`](crate::Coordinated::settle) did.
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
    /// How many were to be pushed.
    tried: usize,
}

impl Tended {
    /// Whether the value store took nothing of what was pushed, so that there is no use in going on.
    fn is_refused(&self) -> bool {
        self.tried > 0 && self.pushed == 0
    }
}

impl Shared {
    /// [`Coordinated::settle`](crate::Coordinated::settle).
    pub async fn settle(&self) -> Result<Settled> {
        let mut settled = Settled::default();
        let mut after = None;
        loop {
            after = self.plan_left(after, |_| self.now()).await?;
            loop {
                let due = self.work.take_due(self.now(), TENDED_AT_ONCE);
                if due.is_empty() {
                    break;
                }
                let tended = self.tend(due).await?;
                settled.pushed += tended.pushed;
                self.note_shown(tended.shown).await?;
            }
            settled.settled += self.drop_done().await?;
            if after.is_none() {
                break;
            }
        }
        settled.waiting = self.work.planned();
        Ok(settled)
    }

    /// Pushes all values that earlier processes could not push, and settles some of what they left. Only the
    /// coordinator must be reachable: what the value store does not take stays planned.
    pub async fn catch_up(&self) -> Result<()> {
        let mut after = None;
        loop {
            // What was pushed a moment ago may not be visible yet, and need not be pushed again.
            after = self.plan_left(after, |mark| self.visible_at(mark.committed)).await?;
            if after.is_none() {
                break;
            }
        }
        self.work.look_at(self.next_look());
        let mut to_confirm = CONFIRMED_PER_OPENING;
        let mut refusals = 0;
        loop {
            let mut due = self.work.take_pushes(self.now(), TENDED_AT_ONCE);
            if due.is_empty() {
                due = self.work.take_due(self.now(), to_confirm);
                to_confirm -= due.len();
            }
            if due.is_empty() {
                break;
            }
            let Some(Ok(tended)) = within(OPENING_STEP_WAIT, self.tend(due.clone())).await else {
                // Out of reach, or too slow. A step that was cut off is still to be done.
                for (key, _) in &due {
                    self.retry_later(key);
                }
                break;
            };
            refusals += usize::from(tended.is_refused());
            // A note only saves work, and a row that could not be dropped is planned again.
            let _ = self.note_shown(tended.shown).await;
            if refusals == OPENING_REFUSALS_MAX {
                break;
            }
        }
        let _ = self.drop_done().await;
        Ok(())
    }

    /// Tends some of what is due, after a commit. What fails is planned again.
    pub async fn tend_some(&self) {
        self.look_around().await;
        let due = self.work.take_due(self.now(), TENDED_PER_COMMIT);
        if !due.is_empty() {
            let _ = self.tend(due).await;
        }
    }

    /// Tends what is due, in the background. Ends early if one of the stores is out of reach.
    pub async fn tend_round(&self) {
        for _ in 0..STEPS_PER_ROUND {
            self.look_around().await;
            let due = self.work.take_due(self.now(), TENDED_AT_ONCE);
            if due.is_empty() {
                break;
            }
            match self.tend(due).await {
                Ok(tended) if !tended.is_refused() => {}
                _ => break,
            }
        }
        // What cannot be dropped now is planned again.
        let _ = self.drop_done().await;
    }

    /// Whether there is something to tend.
    pub fn is_something_due(&self) -> bool {
        self.work.is_due(self.now()) || self.is_relisting_due()
    }

    /// Looks at the next pending rows for what other processes left, and completes the adoption, if it is time to.
    async fn look_around(&self) {
        let now = self.now();
        self.relist_if_due().await;
        self.work.look_at(self.next_look());
        let Some(after) = self.work.take_look(now) else { return };
        let look_at = |mark: &Mark| {
            let rested = mark.committed.saturating_add(OTHERS_REST).unwrap_or(Timestamp::MAX);
            self.visible_at(rested)
        };
        let soon = now.saturating_add(LOOK_ON_AFTER).unwrap_or(Timestamp::MAX);
        match self.plan_left(after.clone(), look_at).await {
            Ok(None) => self.work.looked(None, self.next_look()),
            Ok(next) => self.work.looked(next, soon),
            Err(_) => self.work.looked(after, soon),
        }
    }

    /// When to begin to look for what others left: most of them are alive, and do it before that.
    fn next_look(&self) -> Timestamp {
        self.now().saturating_add(self.options.grace).unwrap_or(Timestamp::MAX)
    }

    /// Plans what to do with a page of pending rows that this process knows nothing of, and says where the next page
    /// begins. `look_at` says when to look whether the value store has them, if no process has noted that it does.
    async fn plan_left(
        &self,
        after: Option<Cursor>,
        look_at: impl Fn(&Mark) -> Timestamp,
    ) -> Result<Option<Cursor>> {
        let limit = self.coordinator.capabilities().limits.scan_rows_max.min(LOOKED_AT_ONCE);
        let scan = Scan::new(layout::pending_range()).after(after).limit(limit);
        let page = self.coordinator.scan(&scan).await?;
        for row in page.rows {
            let (Some(key), Some(entry)) = (layout::pending_subject(&row.key), row.entry) else {
                continue;
            };
            if self.work.knows(&key) {
                continue;
            }
            let mark = read_mark(&key, &entry)?;
            match mark.pushed {
                Some(pushed) => {
                    let at = self.confirmable_at(mark.committed, pushed);
                    self.work.plan(&key, at, Step::Confirm(entry.version));
                }
                None => self.work.plan(&key, look_at(&mark), Step::Push),
            }
        }
        Ok(page.next)
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
        // Until this is dropped, no other task settles one of these keys, and this one settles none that another task
        // may still send an older value of.
        let flight = self.work.begin(keys.clone());
        let contended: HashSet<Key> =
            keys.iter().filter(|key| self.work.flights(key) > 1).cloned().collect();
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
            // What another program writes under a key that is bookkeeping here stays there, unseen.
            let is_hidden = pending.is_kept && pending.mark.foreign;
            let is_shown = pending.is_shown_by(shown.as_ref(), now, self.expiry_support());
            let was_pushed = matches!(step, Some(Step::Confirm(_))) || pending.mark.foreign;
            if is_hidden || is_shown && (was_pushed || pending.has_text_of(shown.as_ref())) {
                let is_confirmed = step == Some(&Step::Confirm(pending.version.clone()));
                if is_confirmed && contended.contains(key) {
                    let again = now.saturating_add(RETRY_AFTER).unwrap_or(Timestamp::MAX);
                    self.work.plan(key, again, Step::Confirm(pending.version.clone()));
                } else if is_confirmed {
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
        tended.tried = to_push.len();
        let pushed = self.push(to_push).await;
        tended.pushed += pushed.len();
        tended.shown.extend(pushed);
        drop(flight);
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
