//! Taking messages from a queue.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::BoxFuture;

use crate::look::Candidate;
use crate::moment::Moment;
use crate::queue::check_lease;
use crate::take::Taken;
use crate::{Attempt, Options, Queue, Result};

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

/// Who claims, where it is not the process itself: somebody whom it works for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claimant {
    /// Who has the messages in hand, for people; the queue's own holder, if it is left out. Of more
    /// than [`Options::HOLDER_BYTES_MAX`] bytes the first are kept.
    pub holder: Option<String>,
    /// How long they are held without a sign of life; the queue's own lease, if it is left out.
    pub lease: Option<Duration>,
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
        self.claim_as(&Claimant::default(), max).await
    }

    /// Claims as [`Queue::claim`] does, for somebody else and with a lease of their own, which signs
    /// of life keep to as well. Refused where the engine cannot keep that lease.
    pub async fn claim_as(&self, claimant: &Claimant, max: usize) -> Result<Claims> {
        if let Some(lease) = claimant.lease {
            check_lease(self.store(), lease)?;
        }
        let claimant = Claimant {
            holder: claimant.holder.as_deref().map(Options::shortened_holder),
            lease: claimant.lease,
        };
        self.claim_looking(&claimant, max, 0).await.map(|(claims, _)| claims)
    }

    /// The same, which reads so many more messages than it takes; those are given back, as they were
    /// seen.
    pub(crate) fn claim_looking<'a>(
        &'a self,
        claimant: &'a Claimant,
        max: usize,
        further: usize,
    ) -> BoxFuture<'a, Result<(Claims, Vec<Candidate>)>> {
        Box::pin(async move {
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
                let (taken, outrun) = self.take_some(claimant, &mut left, max).await?;
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
        })
    }

    /// Reads about so many messages that can be taken, and takes none.
    pub(crate) async fn look_only(&self, max: usize) -> Result<Vec<Candidate>> {
        self.look(max, 0).await.map(|look| look.candidates)
    }

    /// Takes what it can get of the candidates, in one commit if nothing is in the way; `None`, if none
    /// of them can be taken by this process. Tells too whether others took some of them.
    async fn take_some(
        &self,
        claimant: &Claimant,
        left: &mut Vec<Candidate>,
        max: usize,
    ) -> Result<(Option<Taken>, bool)> {
        let mut most = max;
        let (mut ended, mut outrun) = (None, false);
        while !left.is_empty() {
            let picked = self.pick(left, most);
            match self.take(claimant, picked).await? {
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
                Taken::TooLarge(_) => drop(self.inner.metrics.passed_over.inc()),
                taken => return Ok((Some(taken), outrun)),
            }
        }
        Ok((ended, outrun))
    }

    /// Among how many rows at the head a claim chooses: none, where nobody else takes what it sees.
    pub(crate) fn spread(&self) -> usize {
        self.inner.spread.load(Ordering::Relaxed)
    }

    fn claim_max(&self) -> usize {
        // Of each message a commit touches the row, two entries, the claim, and perhaps a dead
        // letter and a job.
        let fitting = self.inner.store.limits().commit_keys_max.saturating_sub(1) / 6;
        fitting.clamp(1, Self::CLAIM_MAX)
    }
}
