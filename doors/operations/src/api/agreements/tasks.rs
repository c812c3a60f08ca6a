//! Tasks of a workspace, each as a job.

use std::pin::pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use keyward::Code;
use keyward::agreements::{QUEUE, Task};
use keyward::queue::{Job, Status, Submitted};

use super::{name_of, reach};
use crate::agreements::Kept;
use crate::api::jobs::{absent, cancelled, touch};
use crate::api::once::Once;
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// A job that somebody wanted.
#[derive(Debug)]
pub struct Wanted {
    pub job: Job,
    /// Whether an earlier request made it.
    pub replayed: bool,
}

/// What a task needs.
fn need(task: &Task) -> Need {
    match task {
        Task::Clear { .. } | Task::Purge { .. } => Need::Admin,
        _ => Need::Write,
    }
}

/// Submits a task. A request with an idempotency key gives the job its id, so that it is done once.
pub async fn submit(
    who: &Identity,
    services: &Services,
    name: &str,
    task: Task,
    mark: Option<&Mark>,
) -> Result<Wanted> {
    let kept = reach(who, services, name, need(&task))?;
    let submitted = kept.workspace.submit(task, name_of(who), mark.map(Mark::name)).await?;
    touch(who, submitted.id());
    let replayed = matches!(submitted, Submitted::Duplicate { .. });
    Ok(Wanted { job: job_of(kept, submitted.id()).await?, replayed })
}

/// A job of a workspace.
async fn job_of(kept: &Kept, id: &str) -> Result<Job> {
    let found = kept.workspace.jobs().get(id).await?;
    // Other jobs of the store are nobody's here.
    found.filter(|job| job.queue == QUEUE).ok_or_else(|| absent(id))
}

/// A job with its status.
pub async fn show(who: &Identity, services: &Services, name: &str, id: &str) -> Result<Job> {
    job_of(reach(who, services, name, Need::Read)?, id).await
}

/// Cancels a job: `cancelled`, or `finished` if it had ended before.
pub async fn cancel(
    who: &Identity,
    services: &Services,
    name: &str,
    id: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    let kept = reach(who, services, name, Need::Write)?;
    touch(who, id);
    job_of(kept, id).await?;
    cancelled(who, kept.workspace.jobs(), id, mark).await
}

/// The statuses of a job from now on, the last one final.
pub async fn watch(
    who: &Identity,
    services: &Services,
    name: &str,
    id: &str,
) -> Result<impl Stream<Item = Result<Status>> + Send + use<>> {
    let kept = reach(who, services, name, Need::Read)?;
    job_of(kept, id).await?;
    Ok(kept.workspace.jobs().watch(id).map(|status| Ok(status?)))
}

/// How a job ended, or what it does after some time.
pub(super) async fn ended(
    who: &Identity,
    services: &Services,
    kept: &Kept,
    id: &str,
    wait: Duration,
) -> Result<Job> {
    if !wait.is_zero() {
        let mut statuses = pin!(kept.workspace.jobs().watch(id));
        let last = async {
            while let Some(status) = statuses.next().await {
                if status?.is_final() {
                    break;
                }
            }
            Ok(())
        };
        // In time or not: how it stands is told.
        let in_time = async { tokio::time::timeout(wait, last).await.unwrap_or(Ok(())) };
        services.waits().during(who, wait, services.lifecycle(), in_time).await?;
    }
    job_of(kept, id).await
}

/// Why a job came to nothing, as its worker told it: `code: message`.
pub fn failed(message: &str, id: &str) -> Problem {
    let told =
        message.split_once(": ").and_then(|(code, said)| Some((Code::from_name(code)?, said)));
    let (code, detail) = told.unwrap_or((Code::TaskFailed, message));
    Problem::new(code, detail)
        .hint("Put right what is said to be wrong, and ask again.")
        .with("job", id)
}
