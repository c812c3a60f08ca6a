//! What waits for the consumers of a registry, and what they could not be told.

use keyward::Code;
use keyward::queue::{DeadLetter, Listing, QueueStats, QueuedMessage, Requeued};
use keyward::registry::Page;

use super::reach;
use crate::api::once::{Made, Once, once};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::registries::Kept;
use crate::services::Services;

fn absent(registry: &str, policy: &str) -> Problem {
    Problem::not_found(format!("the registry {registry} has no dead letter {policy:?}"))
}

/// Remembers for the audit log that a dead letter is changed.
fn touch(who: &Identity, services: &Services, name: &str, policy: &str) {
    let kept = services.registries().get(name);
    if let Some(Ok(key)) = kept.map(|kept| kept.key("dead-letter", policy)) {
        who.touches(&key);
    }
}

/// What waits, and a page of it by name.
pub async fn show(
    who: &Identity,
    services: &Services,
    name: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<(QueueStats, Page<QueuedMessage>)> {
    let queue = reach(who, services, name, Need::Read)?.registry.queue();
    let listing = Listing { after: after.map(str::to_owned), limit, state: None };
    let items = queue.list(&listing).await?;
    let next = items.last().filter(|_| items.len() >= limit).map(|last| last.id.clone());
    Ok((queue.stats().await?, Page { items, next }))
}

/// A page of the dead letters, by name.
pub async fn dead_letters(
    who: &Identity,
    services: &Services,
    name: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<DeadLetter>> {
    Ok(reach(who, services, name, Need::Read)?.registry.dead_letters(after, limit).await?)
}

/// Puts a dead letter back in line.
pub async fn requeue(
    who: &Identity,
    services: &Services,
    name: &str,
    policy: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    touch(who, services, name, policy);
    let kept = reach(who, services, name, Need::Write)?;
    once(kept.registry.queue(), mark, "requeued", |queue| async move {
        Ok(match queue.requeue(policy).await? {
            Requeued::Done => Made::Changed,
            Requeued::Unknown => Made::Refused(absent(name, policy)),
            Requeued::Occupied => Made::Refused(superseded(policy)),
        })
    })
    .await
}

fn superseded(policy: &str) -> Problem {
    Problem::new(Code::IdTaken, format!("a later change of {policy:?} is in line"))
        .hint("Drop the dead letter: consumers are told of the later change.")
}

/// Dead letters of a page that were put back.
#[derive(Debug)]
pub struct Revived {
    pub requeued: u64,
    /// Where to go on.
    pub next: Option<String>,
}

/// Puts back the dead letters of a page, one after the other.
pub async fn requeue_page(
    who: &Identity,
    services: &Services,
    name: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Revived> {
    let Kept { registry, .. } = reach(who, services, name, Need::Write)?;
    let page = registry.dead_letters(after, limit).await?;
    let mut requeued = 0;
    for dead in &page.items {
        touch(who, services, name, &dead.id);
        requeued += u64::from(registry.requeue(&dead.id).await? == Requeued::Done);
    }
    Ok(Revived { requeued, next: page.next })
}

/// Removes a dead letter for good.
pub async fn remove(
    who: &Identity,
    services: &Services,
    name: &str,
    policy: &str,
    mark: Option<&Mark>,
) -> Result<Once> {
    touch(who, services, name, policy);
    let kept = reach(who, services, name, Need::Admin)?;
    once(kept.registry.queue(), mark, "dropped", |queue| async move {
        Ok(match queue.drop_dead_letter(policy).await? {
            true => Made::Changed,
            false => Made::Unchanged("absent"),
        })
    })
    .await
}
