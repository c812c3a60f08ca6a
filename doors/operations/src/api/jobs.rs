//! Jobs: messages whose course and result are kept.

use futures_util::{Stream, StreamExt};
use keyward::queue::{Cancelled, Job, JobOptions, Jobs, Status, Submitted};
use keyward::{Json, Key};

use super::once::{Made, Once, once};
use super::queries::PAGE_BYTES_MAX;
use super::queues::{Paged, Paging, after, paged, question, reach, refuse_tasks};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::stores::Served;

pub(super) fn absent(id: &str) -> Problem {
    Problem::not_found(format!("there is no job {id:?}"))
        .hint("It may have been kept for as long as it was to be.")
}

pub(super) fn touch(who: &Identity, id: &str) {
    if let Ok(key) = Key::from_segments(["job", id]) {
        who.touches(&key);
    }
}

/// Submits a job to a queue. Tells its id, and whether it was `added` or is a `duplicate`.
pub async fn submit(
    who: &Identity,
    served: &Served,
    queue: &str,
    payload: &Json,
    options: &JobOptions,
    mark: Option<&Mark>,
) -> Result<(String, Once)> {
    let jobs = reach(who, served, Need::Write)?;
    refuse_tasks(served, queue)?;
    let Some(id) = options.id.clone().or_else(|| mark.map(|mark| mark.id(0))) else {
        let submitted = jobs.submit(queue, payload.clone(), options.clone()).await?;
        touch(who, submitted.id());
        let once = Once { word: "added".to_owned(), replayed: false };
        return Ok((submitted.id().to_owned(), once));
    };
    touch(who, &id);
    let options = JobOptions { id: Some(id.clone()), ..options.clone() };
    let once = once(jobs, mark, "added", |jobs| {
        let options = options.clone();
        async move {
            Ok(match jobs.submit(queue, payload.clone(), options).await? {
                Submitted::Added { .. } => Made::Changed,
                Submitted::Duplicate { .. } => Made::Unchanged("duplicate"),
            })
        }
    });
    Ok((id, once.await?))
}

/// A job with its status.
pub async fn show(who: &Identity, served: &Served, id: &str) -> Result<Job> {
    let jobs = reach(who, served, Need::Read)?;
    jobs.get(id).await?.ok_or_else(|| absent(id))
}

/// A page of the jobs, by id.
pub async fn list(who: &Identity, served: &Served, paging: &Paging) -> Result<Paged<Job>> {
    let jobs = reach(who, served, Need::Read)?;
    let question = question(who, served, &["jobs", &served.name]).await?;
    let after = after(served, &question, paging)?;
    let part = jobs.list_part(after.as_deref(), paging.limit, PAGE_BYTES_MAX).await?;
    Ok(paged(served, &question, part))
}

/// Cancels a job: `cancelled`, or `finished` if it had ended before.
pub async fn cancel(
    who: &Identity,
    served: &Served,
    id: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    touch(who, id);
    cancelled(who, reach(who, served, Need::Write)?, id, mark).await
}

/// The same, of jobs that the caller reaches.
pub(super) async fn cancelled(
    who: &Identity,
    jobs: &Jobs,
    id: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    once(jobs, mark, "cancelled", |jobs| async move {
        Ok(match jobs.cancel(id, who.tenant().name()).await? {
            Cancelled::Done => Made::Changed,
            Cancelled::Finished(_) => Made::Unchanged("finished"),
            Cancelled::Unknown => Made::Refused(absent(id)),
        })
    })
    .await
}

/// The statuses of a job from now on, the last one final.
pub async fn watch(
    who: &Identity,
    served: &Served,
    id: &str,
) -> Result<impl Stream<Item = Result<Status>> + Send + use<>> {
    let jobs = reach(who, served, Need::Read)?;
    if jobs.get(id).await?.is_none() {
        return Err(absent(id));
    }
    Ok(jobs.watch(id).map(|status| Ok(status?)))
}
