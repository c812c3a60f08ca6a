//! Messages that nobody could work off.

use keyward::Code;
use keyward::queue::{DeadLetter, Listing, Requeued};

use super::once::{Made, Once, once};
use super::queries::PAGE_BYTES_MAX;
use super::queues::{Paged, Paging, after, paged, question, queue, reach, touch};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::stores::Served;

fn absent(name: &str, id: &str) -> Problem {
    Problem::not_found(format!("the queue {name} has no dead letter {id:?}"))
}

/// One dead letter.
pub async fn show(who: &Identity, served: &Served, name: &str, id: &str) -> Result<DeadLetter> {
    let queue = queue(who, served, Need::Read, name)?;
    queue.dead_letter(id).await?.ok_or_else(|| absent(name, id))
}

/// A page of the dead letters, by id.
pub async fn list(
    who: &Identity,
    served: &Served,
    name: &str,
    paging: &Paging,
) -> Result<Paged<DeadLetter>> {
    page(who, served, name, Need::Read, paging).await
}

async fn page(
    who: &Identity,
    served: &Served,
    name: &str,
    need: Need,
    paging: &Paging,
) -> Result<Paged<DeadLetter>> {
    let queue = queue(who, served, need, name)?;
    let question = question(who, served, &["dead-letters", &served.name, name]).await?;
    let after = after(served, &question, paging)?;
    let listing = Listing { after, limit: paging.limit, state: None };
    let part = queue.dead_letters_part(&listing, PAGE_BYTES_MAX).await?;
    Ok(paged(served, &question, part))
}

/// Puts a dead letter back in line.
pub async fn requeue(
    who: &Identity,
    served: &Served,
    name: &str,
    id: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    touch(who, name, id);
    let jobs = reach(who, served, Need::Write)?;
    once(jobs, mark, "requeued", |jobs| async move {
        Ok(match jobs.queue(name)?.requeue(id).await? {
            Requeued::Done => Made::Changed,
            Requeued::Unknown => Made::Refused(absent(name, id)),
            Requeued::Occupied => Made::Refused(
                Problem::new(Code::IdTaken, format!("another message or job has the id {id:?}"))
                    .hint("Wait until that has ended, or drop one of them."),
            ),
        })
    })
    .await
}

/// A part of the dead letters that were put back.
#[derive(Debug)]
pub struct Revived {
    pub requeued: u64,
    /// Where to go on.
    pub next: Option<String>,
}

/// Puts back the dead letters of a page, those whose reason contains a text if one is given.
pub async fn requeue_page(
    who: &Identity,
    served: &Served,
    name: &str,
    reason: Option<&str>,
    paging: &Paging,
) -> Result<Revived> {
    let Paged { items, next } = page(who, served, name, Need::Admin, paging).await?;
    let queue = queue(who, served, Need::Admin, name)?;
    let mut requeued = 0;
    for dead in &items {
        if reason.is_none_or(|part| dead.reason.contains(part)) {
            touch(who, name, dead.id.as_str());
            requeued += u64::from(queue.requeue(&dead.id).await? == Requeued::Done);
        }
    }
    Ok(Revived { requeued, next })
}

/// Removes a dead letter for good.
pub async fn remove(
    who: &Identity,
    served: &Served,
    name: &str,
    id: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    touch(who, name, id);
    let jobs = reach(who, served, Need::Admin)?;
    once(jobs, mark, "dropped", |jobs| async move {
        Ok(match jobs.queue(name)?.drop_dead_letter(id).await? {
            true => Made::Changed,
            false => Made::Unchanged("absent"),
        })
    })
    .await
}
