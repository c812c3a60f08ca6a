//! A claimed message, and how it ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use keyward_engine::{
    Check, Commit, Error as StoreError, ErrorKind, Expect, Expiry, Json, Put, Version,
};
use keyward_key::Key;
use tokio::time::Instant;

use crate::job;
use crate::lease::{beat_all, completion_mark, done_mark};
use crate::queue::{Committed, Found, TRIES};
use crate::row::{Row, State, shortened};
use crate::{Activity, Error, Failure, PastAttempt, Queue, Result};

/// A message in hand. Its row's version is its fence: whatever ends the attempt checks it, so that of
/// all who ever held a message at most one completes it.
///
/// Dropping it does nothing: the lease ends by itself, and the attempt has counted.
#[derive(Debug, Clone)]
pub struct Attempt {
    queue: Queue,
    id: String,
    row: Row,
    version: Version,
    nonce: String,
    /// Before the claim was sent: from then on the lease may run.
    sent: Instant,
    ending: Arc<Ending>,
}

/// What an attempt remembers of its ends whose answers were lost.
#[derive(Debug, Default)]
struct Ending {
    /// When the first was sent.
    since: OnceLock<Instant>,
    /// Whether one may have been done.
    unsure: AtomicBool,
}

/// Whether the end of an attempt was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It is done.
    Accepted,
    /// The attempt is no longer the current one: another worker took over, or the message was
    /// cancelled, dropped or replaced. Nothing was changed.
    Refused,
}

/// What reading tells about an end whose answer was lost.
enum Fate {
    Ended(Ended),
    /// It was not done: the row is as it was.
    Undone,
    /// Nothing that is left tells.
    Untold,
}

impl Attempt {
    pub(crate) fn new(
        queue: Queue,
        id: String,
        row: Row,
        version: Version,
        nonce: String,
        sent: Instant,
    ) -> Self {
        Self { queue, id, row, version, nonce, sent, ending: Arc::default() }
    }

    /// The message's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What was enqueued.
    pub fn payload(&self) -> &Json {
        &self.row.payload
    }

    /// The version of its content, if it was given one.
    pub fn version(&self) -> Option<&str> {
        self.row.version.as_deref()
    }

    /// Which attempt this is, counted from 1.
    pub fn number(&self) -> u32 {
        self.row.next_attempt()
    }

    /// How many attempts ended without a completion before this one.
    pub fn retry_count(&self) -> u32 {
        self.row.retry_count
    }

    /// The attempts before this one, the latest of them.
    pub fn history(&self) -> &[PastAttempt] {
        &self.row.history
    }

    /// The mark of this attempt alone: 128 random bits shared by what was claimed together.
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Whether the message is a job.
    pub fn is_job(&self) -> bool {
        self.row.job.is_some()
    }

    /// How long the handler may take, if its job says so.
    pub fn timeout(&self) -> Option<Duration> {
        self.row.job.as_ref()?.timeout_ms.map(Duration::from_millis)
    }

    /// The queue it came from.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Who has it in hand, for people.
    pub fn holder(&self) -> &str {
        let current = self.row.attempt.as_ref();
        current.map_or(&self.queue.inner.options.holder, |current| &current.by)
    }

    /// How long it is held without a sign of life.
    pub fn lease(&self) -> Duration {
        let own = self.row.attempt.as_ref().and_then(|current| current.lease_ms);
        own.map_or(self.queue.inner.options.lease, Duration::from_millis)
    }

    pub(crate) fn sent(&self) -> Instant {
        self.sent
    }

    pub(crate) fn row_key(&self) -> Key {
        self.queue.inner.places.row(&self.id)
    }

    /// A check that holds as long as this attempt is the current one. A commit of other data that
    /// carries it is refused once another worker took over.
    pub fn fence(&self) -> Check {
        Check { key: self.row_key(), expect: Expect::Version(self.version.clone()) }
    }

    fn fenced(&self) -> Commit {
        Commit { checks: vec![self.fence()], ..Commit::new() }
    }

    fn entry(&self) -> Key {
        self.row.entry(&self.queue.inner.places, &self.id)
    }

    /// Gives a sign of life: the message is held for another lease.
    pub async fn beat(&self) -> Result<Ended> {
        let beaten = beat_all(&self.queue, &[self]).await?;
        Ok(if beaten[..] == [true] { Ended::Accepted } else { Ended::Refused })
    }

    /// Completes the message: it leaves the queue. The result is kept if it is a job.
    ///
    /// A lost answer is found out about; [`ErrorKind::OutcomeUnknown`] is told only where nothing
    /// can be read any more, or nothing that is left tells.
    ///
    /// [`ErrorKind::OutcomeUnknown`]: keyward_engine::ErrorKind::OutcomeUnknown
    pub async fn complete(&self, result: Option<Json>) -> Result<Ended> {
        let ended = self.try_complete(result).await?;
        self.count(ended, &self.queue.inner.metrics.completed);
        Ok(ended)
    }

    /// The same, not counted.
    pub(crate) async fn try_complete(&self, result: Option<Json>) -> Result<Ended> {
        let commit = self.completing(result)?;
        self.end(commit, |found, elapsed| self.completion(found, elapsed)).await
    }

    /// The commit that completes the message. Its one check is the fence.
    pub(crate) fn completing(&self, result: Option<Json>) -> Result<Commit> {
        let options = &self.queue.inner.options;
        let places = &self.queue.inner.places;
        let keyed = self.row.keyed;
        let lease = options.lease.max(self.lease());
        let kept = if keyed { options.remembered.max(lease) } else { lease };
        let mark = completion_mark(&self.nonce, keyed.then(|| self.row.digest()))?;
        let result = result.unwrap_or_else(|| Json::from_stored("null"));
        let now = self.queue.now();
        let commit = self
            .fenced()
            .delete(self.row_key())
            .delete(self.entry())
            .put(places.claim(&self.id), Put::new(mark).expiring(Expiry::After(kept)));
        self.queue.finish_job(commit, &self.id, &self.row, now, Ok(result))
    }

    /// Fails the attempt: the message waits and is tried again, or becomes a dead letter.
    pub async fn fail(&self, failure: Failure) -> Result<Ended> {
        let (ended, is_dead) = self.try_fail(failure).await?;
        self.count_failure(ended, is_dead);
        Ok(ended)
    }

    /// The same, not counted; tells too whether it is the end of the message.
    pub(crate) async fn try_fail(&self, failure: Failure) -> Result<(Ended, bool)> {
        let inner = &self.queue.inner;
        let (places, now) = (&inner.places, self.queue.now());
        let mut row = self.row.clone();
        row.end_attempt(now, &failure.reason);
        let is_dead = failure.is_final || row.retry_count >= inner.options.retry.attempts_max;
        let commit = if is_dead {
            let commit = self.queue.remove_row(Commit::new(), &self.id, &self.row, &self.version);
            self.queue.bury(commit, &self.id, row, now, &failure.reason)?
        } else {
            let chance = inner.entropy.fraction();
            let wait = failure
                .retry_after
                .unwrap_or_else(|| inner.options.retry.backoff(row.retry_count, chance));
            row.state = State::Delayed;
            row.due_at = Some(now.after(wait));
            self.moved(&row)?.delete(places.claim(&self.id))
        };
        let reason = shortened(&failure.reason);
        let ended = self
            .end(commit, |found, _| {
                // A row that is near its limit keeps but the beginning of an error.
                let mine = |past: &PastAttempt| {
                    past.nonce == self.nonce && reason.starts_with(&past.error)
                };
                self.trace_of(found, mine)
            })
            .await?;
        Ok((ended, is_dead))
    }

    pub(crate) fn count_failure(&self, ended: Ended, is_dead: bool) {
        let metrics = &self.queue.inner.metrics;
        self.count(ended, &metrics.failed);
        if is_dead && ended == Ended::Accepted {
            metrics.dead_lettered.inc();
        }
    }

    /// Gives the message back, as if it had not been claimed: it stands in line where it stood, and
    /// the attempt does not count.
    pub async fn give_back(&self) -> Result<Ended> {
        let mut row = self.row.clone();
        row.make_ready();
        let commit = self.moved(&row)?.delete(self.queue.inner.places.claim(&self.id));
        // Whether it was this or something later that took it away makes no difference here.
        self.end(commit, |_, _| Fate::Ended(Ended::Accepted)).await
    }

    /// Writes what the handler is doing into the job, if it is one. Refused once the attempt is no
    /// longer the current one.
    pub(crate) async fn tell(&self, activity: &Activity) -> Result<()> {
        let Some(tag) = &self.row.job else { return Ok(()) };
        let told = job::underway(self.queue.name(), tag, activity, &self.nonce)?;
        let commit = self.fenced().put(job::key(&self.id)?, told);
        match self.queue.commit(commit).await? {
            Committed::Applied(_) => Ok(()),
            Committed::Conflicted(_) => Err(Error::Lost { id: self.id.clone() }),
            Committed::Unknown(error) => Err(error.into()),
        }
    }

    /// The commit that writes the row anew, with its entry where it belongs then.
    fn moved(&self, row: &Row) -> Result<Commit> {
        let mut commit = self.fenced();
        if self.entry() != row.entry(&self.queue.inner.places, &self.id) {
            commit = commit.delete(self.entry());
        }
        self.queue.put_row(commit, &self.id, row)
    }

    /// Commits an end; finds out where the answer was lost, and tries again where it was not done.
    async fn end(&self, commit: Commit, fate: impl Fn(&Found, Duration) -> Fate) -> Result<Ended> {
        let since = *self.ending.since.get_or_init(Instant::now);
        let is_unsure = || self.ending.unsure.load(Ordering::Relaxed);
        let mut message = "the answer to an earlier attempt to end this was lost".to_owned();
        for _ in 0..TRIES {
            match self.queue.commit(commit.clone()).await {
                Ok(Committed::Applied(_)) => return Ok(Ended::Accepted),
                Ok(Committed::Conflicted(_)) if !is_unsure() => return Ok(Ended::Refused),
                // An earlier try may be what is in the way.
                Ok(Committed::Conflicted(_)) => {}
                Ok(Committed::Unknown(error)) => {
                    self.ending.unsure.store(true, Ordering::Relaxed);
                    message = error.to_string();
                }
                Err(error) if is_unsure() && error.is_passing() => {}
                Err(error) => return Err(error),
            }
            let unknown = || StoreError::new(ErrorKind::OutcomeUnknown, &*message);
            let keys = self.queue.keys_of(&self.id);
            let entries = self.queue.read_again(&keys, unknown()).await?;
            let found = self.queue.found(&keys, entries)?;
            let is_mine = found.row.as_ref().is_some_and(|(_, version)| *version == self.version);
            match if is_mine { Fate::Undone } else { fate(&found, since.elapsed()) } {
                Fate::Ended(ended) => return Ok(ended),
                Fate::Undone => {}
                Fate::Untold => return Err(unknown().into()),
            }
        }
        Err(StoreError::new(ErrorKind::OutcomeUnknown, message).into())
    }

    /// Whether the message was completed by this attempt.
    fn completion(&self, found: &Found, elapsed: Duration) -> Fate {
        let mark = found.claim.as_ref().and_then(done_mark).and_then(|mark| mark.done);
        match mark {
            Some(done) if done == self.nonce => return Fate::Ended(Ended::Accepted),
            // Completed by another who had taken over. Where ids are given, it may also be a later
            // message, after this one was completed and replaced.
            Some(_) if !self.row.keyed => return Fate::Ended(Ended::Refused),
            Some(_) => return Fate::Untold,
            None => {}
        }
        // A mark lives as long as a lease: if none is there so soon, none was made.
        if found.row.is_none() && elapsed < self.queue.inner.options.lease / 2 {
            return Fate::Ended(Ended::Refused);
        }
        match self.trace_of(found, |past| past.nonce == self.nonce) {
            Fate::Ended(_) => Fate::Ended(Ended::Refused),
            other => other,
        }
    }

    fn trace_of(&self, found: &Found, mine: impl Fn(&PastAttempt) -> bool) -> Fate {
        let rows = found.row.iter().chain(&found.dead);
        let mut past = rows.flat_map(|(row, _)| &row.history);
        let mut known = past.clone().filter(|past| past.nonce == self.nonce);
        if past.any(&mine) {
            Fate::Ended(Ended::Accepted)
        } else if known.next().is_some() {
            Fate::Ended(Ended::Refused)
        } else {
            Fate::Untold
        }
    }

    /// Takes note that a completion of it is sent with others.
    pub(crate) fn completion_sent(&self) {
        self.ending.since.get_or_init(Instant::now);
    }

    /// Takes note that the answer to its completion was lost.
    pub(crate) fn completion_unanswered(&self) {
        self.ending.unsure.store(true, Ordering::Relaxed);
    }

    /// Whether it was completed, by a commit that was done, or refused because of its fence. `None`
    /// where an earlier try may be what is in the way.
    pub(crate) fn completion_answered(&self, ended: Ended) -> Option<Ended> {
        if ended == Ended::Refused && self.ending.unsure.load(Ordering::Relaxed) {
            return None;
        }
        self.count(ended, &self.queue.inner.metrics.completed);
        Some(ended)
    }

    pub(crate) fn count(
        &self,
        ended: Ended,
        counter: &prometheus_client::metrics::counter::Counter,
    ) {
        match ended {
            Ended::Accepted => counter.inc(),
            Ended::Refused => self.queue.inner.metrics.refused.inc(),
        };
    }
}
