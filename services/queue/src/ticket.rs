//! Attempts that outlive the object that claimed them.

use keyward_engine::Json;
use tokio::time::Instant;

use crate::lease::done_mark;
use crate::queue::{Found, TRIES};
use crate::row::shortened;
use crate::{Activity, Attempt, Ended, Error, Failure, Queue, Result};

/// What names an attempt wherever it is gone on with, in this process or another: the message, and
/// the mark that its claim left in the row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The message.
    pub id: String,
    /// [`Attempt::nonce`].
    pub nonce: String,
}

impl Attempt {
    /// What names this attempt.
    pub fn ticket(&self) -> Ticket {
        Ticket { id: self.id().to_owned(), nonce: self.nonce().to_owned() }
    }
}

/// With a ticket the store itself is asked each time whether the attempt is still the current one.
/// What is done about it is fenced as ever: whoever took over in between has it refused.
impl Queue {
    /// The attempt, if it is still the current one of its message.
    pub async fn attempt(&self, ticket: &Ticket) -> Result<Option<Attempt>> {
        Ok(self.current(ticket, &self.find(&ticket.id).await?))
    }

    fn current(&self, ticket: &Ticket, found: &Found) -> Option<Attempt> {
        let (row, version) = found.row.as_ref()?;
        row.attempt.as_ref().filter(|current| current.nonce == ticket.nonce)?;
        let Ticket { id, nonce } = ticket.clone();
        Some(Attempt::new(self.clone(), id, row.clone(), version.clone(), nonce, Instant::now()))
    }

    /// Gives a sign of life, as [`Attempt::beat`] does.
    pub async fn beat(&self, ticket: &Ticket) -> Result<Ended> {
        match self.attempt(ticket).await? {
            Some(attempt) => attempt.beat().await,
            None => Ok(Ended::Refused),
        }
    }

    /// Completes the message, as [`Attempt::complete`] does. An attempt that has completed it before
    /// is told so again, as long as that is remembered: for a lease, or where the id was given for
    /// [`Options::remembered`](crate::Options::remembered).
    pub async fn complete(&self, ticket: &Ticket, result: Option<Json>) -> Result<Ended> {
        for _ in 0..TRIES {
            let found = self.find(&ticket.id).await?;
            let Some(attempt) = self.current(ticket, &found) else {
                let mark = found.claim.as_ref().and_then(done_mark).and_then(|mark| mark.done);
                return Ok(self.told(mark.as_deref() == Some(&ticket.nonce)));
            };
            if attempt.try_complete(result.clone()).await? == Ended::Accepted {
                attempt.count(Ended::Accepted, &self.inner.metrics.completed);
                return Ok(Ended::Accepted);
            }
        }
        Err(self.contended(format_args!("the message {}", ticket.id)))
    }

    /// Fails the attempt, as [`Attempt::fail`] does. One that has failed for the same reason before is
    /// told so again, as long as its message remembers it.
    pub async fn fail(&self, ticket: &Ticket, failure: Failure) -> Result<Ended> {
        let reason = shortened(failure.reason());
        for _ in 0..TRIES {
            let found = self.find(&ticket.id).await?;
            let Some(attempt) = self.current(ticket, &found) else {
                let rows = found.row.iter().chain(&found.dead);
                let mut past = rows.flat_map(|(row, _)| &row.history);
                return Ok(self.told(
                    past.any(|past| past.nonce == ticket.nonce && reason.starts_with(&past.error)),
                ));
            };
            let (ended, is_dead) = attempt.try_fail(failure.clone()).await?;
            if ended == Ended::Accepted {
                attempt.count_failure(ended, is_dead);
                return Ok(ended);
            }
        }
        Err(self.contended(format_args!("the message {}", ticket.id)))
    }

    /// Gives the message back, as [`Attempt::give_back`] does. Nothing tells later whether this was
    /// done: given back again it is refused.
    pub async fn give_back(&self, ticket: &Ticket) -> Result<Ended> {
        match self.attempt(ticket).await? {
            Some(attempt) => attempt.give_back().await,
            None => Ok(Ended::Refused),
        }
    }

    /// Says what is being done, for those who watch the job. Does nothing for messages that are no
    /// jobs. The number of the attempt is filled in.
    pub async fn tell(&self, ticket: &Ticket, activity: Activity) -> Result<Ended> {
        let Some(attempt) = self.attempt(ticket).await? else { return Ok(Ended::Refused) };
        match attempt.tell(&Activity { attempt: attempt.number(), ..activity }).await {
            Ok(()) => Ok(Ended::Accepted),
            Err(Error::Lost { .. }) => Ok(Ended::Refused),
            Err(error) => Err(error),
        }
    }

    fn told(&self, is_done: bool) -> Ended {
        if is_done {
            return Ended::Accepted;
        }
        self.inner.metrics.refused.inc();
        Ended::Refused
    }
}
