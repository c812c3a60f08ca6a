//! Pushing: bringing the value store to what the coordinator says.
//!
//! The value store cannot compare, so an older value may land on a newer one. Whoever pushes therefore reads the
//! pending row again after the value store answered, and pushes again if the row has changed: *what was pushed last
//! is what the row said after it landed*. Only a process that dies between the two leaves an older value behind, and
//! the row is still there then: confirming finds it.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use keyward_engine::{Commit, Error, ErrorKind, Put, Result};
use keyward_key::Key;
use tokio::time::sleep;

use crate::layout;
use crate::pending::Pending;
use crate::shared::Shared;
use crate::tasks::within;
use crate::work::Step;

/// How often a push follows a row that changes meanwhile before it leaves the rest to later.
const ROUNDS_MAX: usize = 4;
/// How many keys are pushed at once. A value store that takes many in one request joins them.
const PUSHED_AT_ONCE: usize = 100;
/// How long a failed push rests.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The pauses between looks at whether the value store shows a value.
const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(50);
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(5);
/// How much longer than reads of the value store are late to look.
const LOOK_LONGER: Duration = Duration::from_secs(5);
/// With less grace than this, a plan is still as good as with this.
const GRACE_LEAST: Duration = Duration::from_secs(60);

/// A key to push, as its rows said at `read_at`.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub key: Key,
    pub pending: Pending,
    pub read_at: Timestamp,
}

impl Shared {
    /// Pushes keys until the value store has what their rows say. Gives those that it has now; the others are planned
    /// for later. Never fails: the rows say what is left to do.
    pub(crate) async fn push(&self, planned: Vec<Planned>) -> Vec<Planned> {
        let mut left = planned;
        let mut pushed = Vec::new();
        for _ in 0..ROUNDS_MAX {
            if left.is_empty() {
                break;
            }
            let sent = self.send_all(left).await;
            left = match self.compared(sent).await {
                Ok((same, changed)) => {
                    pushed.extend(same);
                    changed
                }
                Err(sent) => {
                    self.push_later(&sent);
                    Vec::new()
                }
            };
        }
        self.push_later(&left);
        let now = self.now();
        for Planned { key, pending, .. } in &pushed {
            let at = self.confirmable_at(pending.mark.committed, now);
            self.work.plan(key, at, Step::Confirm(pending.version.clone()));
        }
        pushed
    }

    /// When a read of the value store is certain to show a change, and whatever landed on it: all that is older has
    /// landed by the end of the grace, and what has landed is visible after the value store's lag.
    pub(crate) fn confirmable_at(&self, committed: Timestamp, pushed: Timestamp) -> Timestamp {
        let landed = committed.saturating_add(self.options.grace).unwrap_or(Timestamp::MAX);
        self.visible_at(landed.max(pushed))
    }

    /// Reads the rows of some keys, and gives those that are pending.
    pub(crate) async fn pendings(&self, keys: &[Key]) -> Result<Vec<Planned>> {
        let read_at = self.now();
        let rows = self.rows_of(keys).await?;
        let mut planned = Vec::new();
        for (key, rows) in keys.iter().zip(rows) {
            if let Some(row) = &rows.pending {
                let pending = Pending::read(key, row, rows.head.as_ref())?;
                planned.push(Planned { key: key.clone(), pending, read_at });
            }
        }
        Ok(planned)
    }

    /// Sends each to the value store, and gives those that it acknowledged. The others are planned for later.
    async fn send_all(&self, planned: Vec<Planned>) -> Vec<Planned> {
        let mut sent = Vec::with_capacity(planned.len());
        for some in planned.chunks(PUSHED_AT_ONCE) {
            let answers = join_all(some.iter().map(|planned| self.send(planned))).await;
            for (planned, answer) in some.iter().zip(answers) {
                if answer.is_ok() {
                    sent.push(planned.clone());
                } else {
                    self.push_later(std::slice::from_ref(planned));
                }
            }
        }
        sent
    }

    async fn send(&self, planned: &Planned) -> Result<()> {
        let Planned { key, pending, read_at } = planned;
        let now = self.now();
        // After a long pause of this process, the row may have been written again and confirmed, and the
        // coordinator's copy dropped. Sending the old value then would be sending it too late.
        let age = now.duration_since(*read_at).unsigned_abs();
        let is_fresh = age <= self.options.grace.max(GRACE_LEAST) / 4;
        let wanted: Option<Put> = pending.wanted(now, self.expiry_support());
        let commit = match wanted {
            Some(put) => Commit::new().put(key.clone(), put),
            None => Commit::new().delete(key.clone()),
        };
        if !is_fresh {
            let message = "this process paused for so long that the value may be an old one";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        self.values.commit(commit).await.map(drop)
    }

    /// [`Engine::push_through`](keyward_engine::Engine::push_through).
    pub(crate) async fn push_through(&self, key: &Key) -> Result<Option<bool>> {
        if self.is_kept(key) || layout::is_reserved(key) {
            return Ok(None);
        }
        let keys = std::slice::from_ref(key);
        let shows = async || -> Result<Option<Planned>> {
            let Some(planned) = self.pendings(keys).await?.pop() else { return Ok(None) };
            let found = self.values.get(key).await?;
            let is_shown =
                planned.pending.is_shown_by(found.as_ref(), self.now(), self.expiry_support());
            Ok((!is_shown).then_some(planned))
        };
        // Noted before the row is read: until then, no other task settles the key.
        let _flight = self.work.begin(keys.to_vec());
        let Some(planned) = shows().await? else { return Ok(Some(true)) };
        if !self.work.is_pushed(key, &planned.pending.version) {
            // Alone, to learn why it is refused.
            self.send(&planned).await?;
            self.push(vec![planned]).await;
        }
        let waiting = async {
            let mut pause = LOOK_AGAIN_FIRST;
            loop {
                sleep(pause).await;
                if shows().await?.is_none() {
                    return Ok(());
                }
                pause = (pause * 2).min(LOOK_AGAIN_MAX);
            }
        };
        let longest = self.lag().saturating_add(LOOK_LONGER);
        Ok(Some(within(longest, waiting).await.transpose()?.is_some()))
    }

    /// Which of those sent are still what their rows say, and what has changed. If the rows cannot be read, all are
    /// given back.
    async fn compared(
        &self,
        sent: Vec<Planned>,
    ) -> std::result::Result<(Vec<Planned>, Vec<Planned>), Vec<Planned>> {
        let keys: Vec<Key> = sent.iter().map(|planned| planned.key.clone()).collect();
        let Ok(now) = self.pendings(&keys).await else { return Err(sent) };
        let mut same = Vec::new();
        let mut changed = Vec::new();
        for current in now {
            let before = sent.iter().find(|planned| planned.key == current.key);
            // A row that is gone was confirmed by another process.
            match before {
                Some(before) if before.pending.version == current.pending.version => {
                    same.push(current)
                }
                _ => changed.push(current),
            }
        }
        Ok((same, changed))
    }

    pub(crate) fn push_later(&self, planned: &[Planned]) {
        for Planned { key, .. } in planned {
            self.retry_later(key);
        }
    }

    /// Plans to look at a key's rows again after a rest.
    pub(crate) fn retry_later(&self, key: &Key) {
        let again = self.now().saturating_add(RETRY_AFTER).unwrap_or(Timestamp::MAX);
        self.work.plan(key, again, Step::Push);
    }
}
