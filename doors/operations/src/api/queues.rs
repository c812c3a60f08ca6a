//! The queues of a store. They are the store's, and no user's.

use keyward::queue::{Jobs, Part, Queue, QueueStats, queue_names};
use keyward::records::Question;
use keyward::{Code, Key, agreements};

use super::once::{Made, Once, once};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// How many queues are listed.
pub const LISTED_MAX: usize = 1_000;

/// The queues and jobs of a store, for who may do this with them. What is refused does not depend on
/// what is stored.
pub fn reach<'s>(who: &Identity, served: &'s Served, need: Need) -> Result<&'s Jobs> {
    who.require(need, &Target::Store(&served.name))?;
    if who.bound_to().is_some() {
        return Err(Problem::forbidden(
            "queues and jobs are the store's, and this credential is bound to a user",
        )
        .hint("Use a credential that is not bound to a user."));
    }
    served.jobs()
}

/// Remembers for the audit log and the quota that a message is changed, or one without a name is made.
pub(super) fn touch<'i>(who: &Identity, queue: &str, id: impl Into<Option<&'i str>>) {
    let segments = ["queue", queue].into_iter().chain(id.into());
    if let Ok(key) = Key::from_segments(segments) {
        who.touches(&key);
    }
}

/// A listing that is asked for in pages.
#[derive(Debug, Clone)]
pub struct Paging {
    pub limit: usize,
    pub cursor: Option<String>,
}

/// A page, and the cursor of the next one.
#[derive(Debug)]
pub struct Paged<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

/// What makes the cursors of a listing of this caller.
pub(super) async fn question(who: &Identity, served: &Served, parts: &[&str]) -> Result<Question> {
    let mut question = served.records.question(who.caller()).await?;
    question.part(who.tenant().name().as_bytes());
    parts.iter().for_each(|part| question.part(part.as_bytes()));
    Ok(question)
}

/// The id after which a page begins.
pub(super) fn after(
    served: &Served,
    question: &Question,
    paging: &Paging,
) -> Result<Option<String>> {
    let Some(cursor) = &paging.cursor else { return Ok(None) };
    let position = question.position(cursor, served.records.clock().now())?;
    let id = String::from_utf8(position);
    id.map(Some).map_err(|_| Problem::new(Code::BadCursor, "the cursor is not one of this listing"))
}

/// A page of what a queue gave, with the cursor after its last item if there may be more.
pub(super) fn paged<T>(served: &Served, question: &Question, part: Part<T>) -> Paged<T> {
    let now = served.records.clock().now();
    let next = part.next.map(|id| question.cursor(id.as_bytes(), now));
    Paged { items: part.items, next }
}

/// The names of queues that have something, and whether there may be more.
pub async fn list(who: &Identity, served: &Served) -> Result<(Vec<String>, bool)> {
    reach(who, served, Need::Read)?;
    let mut names = queue_names(served.store(), LISTED_MAX).await?;
    let more = names.len() >= LISTED_MAX;
    names.truncate(LISTED_MAX);
    Ok((names, more))
}

/// What a queue has. One that nothing was ever put into is an empty one.
pub async fn stats(who: &Identity, served: &Served, queue: &str) -> Result<QueueStats> {
    Ok(reach(who, served, Need::Read)?.queue(queue)?.stats().await?)
}

/// Pauses a queue: nothing is claimed from now on.
pub async fn pause(
    who: &Identity,
    served: &Served,
    queue: &str,
    reason: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    let jobs = reach(who, served, Need::Admin)?;
    once(jobs, mark, "paused", |jobs| async move {
        jobs.queue(queue)?.pause(reason).await.map(|()| Made::Changed)
    })
    .await
}

/// Lets a paused queue go on.
pub async fn resume(
    who: &Identity,
    served: &Served,
    queue: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    let jobs = reach(who, served, Need::Admin)?;
    once(jobs, mark, "resumed", |jobs| async move {
        jobs.queue(queue)?.resume().await.map(|()| Made::Changed)
    })
    .await
}

/// Refuses to put something into a queue, or take something out of it, that a workspace works off: what
/// stands there is done in somebody's name, for whom the workspace itself asks for other scopes.
pub(super) fn refuse_tasks(served: &Served, queue: &str) -> Result<()> {
    match served.rules.workspace() {
        Some(workspace) if queue == agreements::QUEUE => {
            let detail = format!("the workspace {workspace} works off the queue {queue}");
            Err(Problem::new(Code::Reserved, detail)
                .hint("Submit tasks to the workspace: POST /v1/agreements/{workspace}/tasks."))
        }
        _ => Ok(()),
    }
}

/// A queue, for who may do this with it.
pub(super) fn queue(who: &Identity, served: &Served, need: Need, name: &str) -> Result<Queue> {
    Ok(reach(who, served, need)?.queue(name)?)
}
