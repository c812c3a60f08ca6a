//! One message in the hands of a handler, until its attempt has ended.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use keyward_engine::{ErrorKind, Json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::completions::Asking;
use super::keeper::Hold;
use super::room::{Ending, Places, Room};
use super::{Delivery, Handler, POLL_MIN};
use crate::{Attempt, Ended, Error, Failure, Result};

/// How one attempt went.
pub(super) enum Done {
    Completed,
    Failed,
    Refused,
    Unknown,
}

/// What a message is worked on with.
pub(super) struct Workplace {
    pub handler: Handler,
    pub hold: watch::Receiver<Hold>,
    pub stopping: watch::Receiver<bool>,
    pub grace: Duration,
    pub room: Room,
    pub place: Places,
    pub together: Asking,
}

/// Runs the handler on one message, and ends the attempt by what comes of it.
pub(super) async fn work(workplace: Workplace, attempt: Arc<Attempt>) -> (Done, Option<Ending>) {
    let Workplace { handler, hold, stopping, grace, room, place, together } = workplace;
    let begun = Instant::now();
    let delivery = Delivery::new(attempt.clone(), hold.clone(), stopping);
    let lost = delivery.clone();
    let run = AssertUnwindSafe(async move { handler(delivery).await }).catch_unwind();
    let timeout = async {
        match attempt.timeout() {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        biased;
        outcome = run => match outcome {
            Ok(outcome) => outcome,
            Err(panic) => Err(Failure::new(format!("the handler panicked: {}", said(&*panic)))),
        },
        () = timeout => {
            let limit = attempt.timeout().unwrap_or_default();
            Err(Failure::new(format!("took longer than {} ms", limit.as_millis())))
        }
        () = async { lost.lost().await; tokio::time::sleep(grace).await } => {
            return (Done::Refused, None);
        }
    };
    let ending = room.end(place);
    attempt.queue().inner.metrics.run_seconds.observe(begun.elapsed().as_secs_f64());
    let done = match outcome {
        Ok(result) => match complete(&attempt, &hold, result, together).await {
            Ok(Ended::Accepted) => Done::Completed,
            Ok(Ended::Refused) => Done::Refused,
            Err(error) if error.is_passing() => Done::Unknown,
            Err(error) => {
                let failure = Failure::new(format!("the result cannot be kept: {error}"));
                fail(&attempt, &hold, failure).await
            }
        },
        Err(failure) => fail(&attempt, &hold, failure).await,
    };
    (done, Some(ending))
}

async fn complete(
    attempt: &Arc<Attempt>,
    hold: &watch::Receiver<Hold>,
    result: Option<Json>,
    together: Asking,
) -> Result<Ended> {
    if let Some(ended) = together.complete(attempt, &result).await {
        return Ok(ended);
    }
    persist(hold, || attempt.complete(result.clone())).await
}

async fn fail(attempt: &Attempt, hold: &watch::Receiver<Hold>, failure: Failure) -> Done {
    match persist(hold, || attempt.fail(failure.clone())).await {
        Ok(Ended::Accepted) => Done::Failed,
        Ok(Ended::Refused) => Done::Refused,
        Err(_) => Done::Unknown,
    }
}

/// Tries to end an attempt again while the store cannot be reached, as long as it is held.
async fn persist<F: Future<Output = Result<Ended>>>(
    hold: &watch::Receiver<Hold>,
    end: impl Fn() -> F,
) -> Result<Ended> {
    let mut pause = POLL_MIN / 4;
    loop {
        match end().await {
            Err(error) if error.is_passing() && *hold.borrow() == Hold::Held => {
                // Nothing that is left tells: asking again will not either.
                if matches!(&error, Error::Store(e) if e.kind() == ErrorKind::OutcomeUnknown)
                    && pause > POLL_MIN * 8
                {
                    return Err(error);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(POLL_MIN * 10);
            }
            ended => return ended,
        }
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}
