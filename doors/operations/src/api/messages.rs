//! The messages of a queue.

use std::time::Duration;

use keyward::queue::{Enqueued, Listing, Message, QueuedMessage, State};
use keyward::{Commit, Json};

use super::commits::{self, Committed};
use super::once::{Made, Once, once};
use super::queries::PAGE_BYTES_MAX;
use super::queues::{Paged, Paging, after, paged, question, queue, reach, refuse_tasks, touch};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// A message to be enqueued.
#[derive(Debug, Clone)]
pub struct Draft {
    pub queue: String,
    pub payload: Json,
    pub id: Option<String>,
    pub version: Option<String>,
    pub delay: Option<Duration>,
    pub replaces: bool,
}

impl Draft {
    pub(super) fn message(&self) -> Message {
        let mut message = Message::new(self.payload.clone());
        if let Some(id) = &self.id {
            message = message.id(id);
        }
        if let Some(version) = &self.version {
            message = message.version(version);
        }
        if let Some(delay) = self.delay {
            message = message.delay(delay);
        }
        if self.replaces {
            message = message.replacing();
        }
        message
    }
}

/// Messages that were enqueued.
#[derive(Debug)]
pub struct Enqueuing {
    /// What became of each.
    pub fates: Vec<Enqueued>,
    /// Whether an earlier request with the same idempotency key enqueued them.
    pub replayed: bool,
}

/// Enqueues messages of one queue, all or none. An earlier try of the same request is found by its
/// mark, of a message whose id was given by that.
pub async fn enqueue(
    who: &Identity,
    served: &Served,
    name: &str,
    drafts: Vec<Draft>,
    mark: Option<&Mark>,
) -> Result<Enqueuing> {
    let queue = queue(who, served, Need::Write, name)?;
    refuse_tasks(served, name)?;
    if drafts.is_empty() {
        return Err(Problem::invalid("there is no message to enqueue"));
    }
    if mark.is_some() {
        return match commits::commit(who, served, Commit::new(), None, drafts, mark).await? {
            Committed::Applied { enqueued, replayed, .. } => {
                Ok(Enqueuing { fates: enqueued, replayed })
            }
            Committed::Conflicted(_) => Err(super::records::contended("the queue")),
        };
    }
    drafts.iter().for_each(|draft| touch(who, name, draft.id.as_deref()));
    let messages = drafts.iter().map(Draft::message).collect();
    Ok(Enqueuing { fates: queue.enqueue_all(messages).await?, replayed: false })
}

/// One message that is in its queue.
pub async fn show(who: &Identity, served: &Served, name: &str, id: &str) -> Result<QueuedMessage> {
    let queue = queue(who, served, Need::Read, name)?;
    queue.message(id).await?.ok_or_else(|| {
        Problem::not_found(format!("the queue {name} has no message {id:?}"))
            .hint("It may be done, or among the dead letters.")
    })
}

/// A page of messages by id; of those in one state, if that is said.
pub async fn list(
    who: &Identity,
    served: &Served,
    name: &str,
    state: Option<State>,
    paging: &Paging,
) -> Result<Paged<QueuedMessage>> {
    let queue = queue(who, served, Need::Read, name)?;
    let state_name = state.map_or_else(String::new, |state| state.to_string());
    let question = question(who, served, &["messages", &served.name, name, &state_name]).await?;
    let listing = Listing {
        after: after(served, &question, paging)?,
        limit: paging.limit,
        // What is read for a page is bounded, so what is left out makes it shorter.
        state: None,
    };
    let part = queue.list_part(&listing, PAGE_BYTES_MAX).await?;
    let mut page = paged(served, &question, part);
    page.items.retain(|message| state.is_none_or(|state| message.state == state));
    Ok(page)
}

/// Removes a message, also one that is being worked on.
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
        Ok(match jobs.queue(name)?.drop_message(id).await? {
            true => Made::Changed,
            false => Made::Unchanged("absent"),
        })
    })
    .await
}
