//! Claims of messages, and the ends of attempts. Nothing of them is kept in the server: what names an
//! attempt is sent with everything that is asked about it, to whichever server of the store.

use std::time::Duration;

use keyward::queue::{Activity, Claimant, Claims, Ended, Failure, Ticket};
use keyward::{Code, Json};

use super::once::{Made, Once, once};
use super::queues::{queue, reach, refuse_tasks, touch};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// Claims messages; waits for some until `patience` ends. Dropped while it waits, it has claimed none.
pub async fn claim(
    who: &Identity,
    served: &Served,
    name: &str,
    claimant: &Claimant,
    max: usize,
    patience: impl Future<Output = ()>,
) -> Result<Claims> {
    let queue = queue(who, served, Need::Write, name)?;
    refuse_tasks(served, name)?;
    let claims = queue.claim_in_time(claimant, max, patience).await?;
    claims.attempts.iter().for_each(|attempt| touch(who, name, attempt.id()));
    Ok(claims)
}

/// How an attempt ends.
#[derive(Debug, Clone)]
pub enum End {
    /// The message is done, with this result if it is a job.
    Complete(Option<Json>),
    /// The attempt failed.
    Fail(Failure),
    /// The attempt is over, as if it had not been.
    Release,
}

/// Ends an attempt.
pub async fn end(
    who: &Identity,
    served: &Served,
    name: &str,
    ticket: &Ticket,
    end: &End,
    mark: Option<&Mark>,
) -> Result<Once> {
    touch(who, name, ticket.id.as_str());
    let jobs = reach(who, served, Need::Write)?;
    refuse_tasks(served, name)?;
    let word = match end {
        End::Complete(_) => "completed",
        End::Fail(_) => "failed",
        End::Release => "released",
    };
    once(jobs, mark, word, |jobs| async move {
        let queue = jobs.queue(name)?;
        let ended = match end {
            End::Complete(result) => queue.complete(ticket, result.clone()).await?,
            End::Fail(failure) => queue.fail(ticket, failure.clone()).await?,
            End::Release => queue.give_back(ticket).await?,
        };
        Ok(match ended {
            Ended::Accepted => Made::Changed,
            Ended::Refused => Made::Refused(lost(&ticket.id)),
        })
    })
    .await
}

/// Gives a sign of life, and tells for how long the message is held now.
pub async fn beat(
    who: &Identity,
    served: &Served,
    name: &str,
    ticket: &Ticket,
) -> Result<Duration> {
    touch(who, name, ticket.id.as_str());
    let queue = queue(who, served, Need::Write, name)?;
    match queue.attempt(ticket).await? {
        Some(attempt) if attempt.beat().await? == Ended::Accepted => Ok(attempt.lease()),
        _ => Err(lost(&ticket.id)),
    }
}

/// Says what is being done, for those who watch the job.
pub async fn tell(
    who: &Identity,
    served: &Served,
    name: &str,
    ticket: &Ticket,
    activity: Activity,
) -> Result<()> {
    touch(who, name, ticket.id.as_str());
    let queue = queue(who, served, Need::Write, name)?;
    match queue.tell(ticket, activity).await? {
        Ended::Accepted => Ok(()),
        Ended::Refused => Err(lost(&ticket.id)),
    }
}

fn lost(id: &str) -> Problem {
    let detail = format!("the message {id:?} is no longer held by this attempt");
    Problem::new(Code::AttemptLost, detail).hint(
        "Stop working on it: it is done, or another worker has it, or it was cancelled, dropped or \
         replaced. Nothing was changed.",
    )
}
