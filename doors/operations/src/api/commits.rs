//! Several entries at once, and messages with them.

use std::collections::BTreeMap;

use keyward::locks::Ticket;
use keyward::queue::Enqueued;
use keyward::{Commit, Entry, Key, Outcome, Revision, Version};

use super::locks::{Fenced, Roots};
use super::messages::Draft;
use super::queues::{reach, refuse_tasks, touch};
use super::records::contended;
use super::several;
use crate::authorize::admit;
use crate::idempotency::{Mark, Replay};
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;
use crate::stores::Served;

/// How a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// All of it is done.
    Applied {
        revision: Option<Revision>,
        /// For each write, its new version; none, if the request was done before.
        versions: Vec<Option<Version>>,
        /// What became of each message.
        enqueued: Vec<Enqueued>,
        replayed: bool,
    },
    /// Nothing of it is done: these checks did not hold.
    Conflicted(Vec<usize>),
}

/// How often a commit is tried when messages that it enqueues change meanwhile.
const TRIES_MAX: usize = 32;

/// Applies all writes and enqueues all messages if all checks hold, else none.
pub async fn commit(
    who: &Identity,
    served: &Served,
    commit: Commit,
    lock: Option<&Ticket>,
    mut drafts: Vec<Draft>,
    mark: Option<&Mark>,
) -> Result<Committed> {
    for check in &commit.checks {
        admit(who, served, &check.key, Need::Read)?;
    }
    for write in &commit.writes {
        admit(who, served, write.key(), Need::Write)?;
    }
    if !drafts.is_empty() {
        reach(who, served, Need::Write)?;
    }
    for (at, draft) in drafts.iter_mut().enumerate() {
        refuse_tasks(served, &draft.queue)?;
        if let (None, Some(mark)) = (&draft.id, mark) {
            draft.id = Some(mark.id(at));
        }
        touch(who, &draft.queue, draft.id.as_deref());
    }
    apply(who, served, commit, (lock, Roots::Spared), &drafts, mark).await
}

/// Does what [`commit`] does, for those who were admitted.
pub(super) async fn apply(
    who: &Identity,
    served: &Served,
    commit: Commit,
    (lock, roots): (Option<&Ticket>, Roots),
    drafts: &[Draft],
    mark: Option<&Mark>,
) -> Result<Committed> {
    if commit.writes.is_empty() && commit.checks.is_empty() && drafts.is_empty() {
        return Err(Problem::invalid("a commit has at least one check, write or message"));
    }
    // What only looks is not remembered.
    let mark = mark.filter(|_| !commit.writes.is_empty() || !drafts.is_empty());
    let store = served.store();
    let (checks, writes) = (commit.checks.len(), commit.writes.len());
    let (commit, fenced) = Fenced::add(who, served, commit, (lock, roots)).await?;
    for _ in 0..TRIES_MAX {
        if let Some(mark) = mark
            && let Some(replay) = mark.replay(store).await?
        {
            return Ok(replayed(&commit, drafts, replay));
        }
        let (mut whole, enqueued) = enqueued(served, commit.clone(), drafts).await?;
        if let Some(mark) = mark {
            whole = match drafts.is_empty() {
                true => mark.added_to(store, whole, true)?,
                false => mark.telling(store, whole, &letters(&enqueued))?,
            };
        }
        match store.commit(whole).await? {
            Outcome::Applied { revision, mut versions } => {
                versions.truncate(writes);
                count(served, drafts, &enqueued)?;
                return Ok(Committed::Applied { revision, versions, enqueued, replayed: false });
            }
            Outcome::Conflicted { mut failed } => {
                if let Some(mark) = mark
                    && let Some(replay) = mark.replay(store).await?
                {
                    return Ok(replayed(&commit, drafts, replay));
                }
                fenced.check(served, &failed).await?;
                failed.retain(|check| *check < checks);
                // Otherwise a message came to be, or changed, meanwhile.
                if !failed.is_empty() || drafts.is_empty() {
                    return Ok(Committed::Conflicted(failed));
                }
            }
        }
    }
    Err(contended("the messages"))
}

/// Adds messages to a commit; tells what becomes of each if it is applied.
async fn enqueued(
    served: &Served,
    mut commit: Commit,
    drafts: &[Draft],
) -> Result<(Commit, Vec<Enqueued>)> {
    let mut fates: Vec<Option<Enqueued>> = vec![None; drafts.len()];
    for (name, places) in by_queue(drafts) {
        let messages = places.iter().map(|at| drafts[*at].message()).collect();
        let told;
        (commit, told) = served.jobs()?.queue(name)?.enqueue_in(commit, messages).await?;
        for (at, fate) in places.into_iter().zip(told) {
            fates[at] = Some(fate);
        }
    }
    Ok((commit, fates.into_iter().flatten().collect()))
}

/// Which drafts are of which queue.
fn by_queue(drafts: &[Draft]) -> BTreeMap<&str, Vec<usize>> {
    let mut queues: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, draft) in drafts.iter().enumerate() {
        queues.entry(&draft.queue).or_default().push(at);
    }
    queues
}

fn count(served: &Served, drafts: &[Draft], enqueued: &[Enqueued]) -> Result<()> {
    for (draft, fate) in drafts.iter().zip(enqueued) {
        served.jobs()?.queue(&draft.queue)?.count_enqueued(std::slice::from_ref(fate));
    }
    Ok(())
}

/// What became of messages, a letter for each: remembered with a request.
fn letters(fates: &[Enqueued]) -> String {
    let letter = |fate: &Enqueued| match fate {
        Enqueued::Added { .. } => 'a',
        Enqueued::Duplicate { .. } => 'd',
        Enqueued::Replaced { .. } => 'r',
    };
    fates.iter().map(letter).collect()
}

/// What the same request did before.
fn replayed(commit: &Commit, drafts: &[Draft], replay: Replay) -> Committed {
    let Replay { version, told, .. } = replay;
    let is_versioned = |write: &keyward::Write| !matches!(write, keyward::Write::Delete(_));
    let versions = commit.writes.iter().map(|it| version.clone().filter(|_| is_versioned(it)));
    let told = told.unwrap_or_default();
    let enqueued = drafts.iter().zip(told.chars()).map(|(draft, letter)| {
        let id = draft.id.clone().unwrap_or_default();
        match letter {
            'd' => Enqueued::Duplicate { id },
            'r' => Enqueued::Replaced { id },
            _ => Enqueued::Added { id },
        }
    });
    Committed::Applied {
        revision: None,
        versions: versions.collect(),
        enqueued: enqueued.collect(),
        replayed: true,
    }
}

/// What some keys hold, in the order of the keys.
pub async fn get_many(
    who: &Identity,
    services: &Services,
    served: &Served,
    keys: &[Key],
) -> Result<Vec<Option<Entry>>> {
    for key in keys {
        admit(who, served, key, Need::Read)?;
    }
    let entries = several::read(who, services, served.store(), keys).await?;
    Ok(entries.into_iter().map(keyward::locks::present).collect())
}
