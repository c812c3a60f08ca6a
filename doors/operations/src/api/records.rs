//! Changes of the records of a space, one at a time.

use keyward::records::{self, Draft, Listing, Merge, Precondition as Expected, Space, Written};
use keyward::{Bindings, Code, Commit, Expect, Key, Outcome, Version};

use super::entries::Precondition;
use super::spaces::Reached;
use crate::idempotency::{Mark, Replay};
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// How often a change is tried when what is expected changes meanwhile.
const TRIES_MAX: usize = 32;

/// How many keys are counted at once.
const COUNTED_TOGETHER: usize = 1_000;
/// Up to how many records are counted.
const COUNT_MAX: u64 = 1_000_000;

/// What is to become of a record. What must be so for it is said apart.
#[derive(Debug, Clone)]
pub enum Change {
    Put(Draft),
    Merge(Merge),
    Delete,
    /// What it had in the version with this number.
    Restore(u64),
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    /// The new version, unless it was deleted.
    pub version: Option<Version>,
    /// Whether there was no record before.
    pub created: bool,
    /// Whether there was no record to delete.
    pub was_absent: bool,
    /// Whether it was made by an earlier request with the same idempotency key.
    pub replayed: bool,
}

impl From<Replay> for Changed {
    fn from(replay: Replay) -> Self {
        let was_absent = replay.was_nothing();
        let Replay { version, created, .. } = replay;
        Self { version, created, was_absent, replayed: true }
    }
}

/// Changes a record if what is expected holds; once, if the request is marked.
pub async fn change(
    who: &Identity,
    reached: &Reached<'_>,
    key: &Key,
    change: &Change,
    expected: &Precondition,
    mark: Option<&Mark>,
) -> Result<Changed> {
    who.touches(key);
    reached.require(who, Need::Write)?;
    let store = reached.served.store();
    if let Some(mark) = mark
        && let Some(replay) = mark.replay(store).await?
    {
        return Ok(replay.into());
    }
    let tells = mark.is_some() && !matches!(change, Change::Delete);
    // Only a deletion finds nothing to do.
    let was_absent = matches!(change, Change::Delete);
    let mut expect = first(expected, tells);
    for _ in 0..TRIES_MAX {
        let mut space = reached.space.clone();
        if let Some(mark) = mark {
            let versioned = !matches!(change, Change::Delete);
            let created = versioned && expect == Expected::Absent;
            space = space.with_rider(mark.rider(store, versioned, created)?);
        }
        match (made(&space, key, change, expect.clone()).await, mark) {
            (Ok(Written::Applied { version, created }), _) => {
                return Ok(Changed { version: Some(version), created, ..Changed::default() });
            }
            (Ok(Written::Removed), _) => {
                return Ok(Changed::default());
            }
            (Ok(Written::Unchanged { version }), None) => {
                return Ok(Changed { version, was_absent, ..Changed::default() });
            }
            // Nothing was there to delete, and so nothing remembered it.
            (Ok(Written::Unchanged { version }), Some(mark)) => {
                if remembered(reached, std::slice::from_ref(key), mark).await? {
                    return Ok(Changed { version, was_absent, ..Changed::default() });
                }
            }
            (Ok(Written::Conflicted { current }), _) => {
                expect = next(expected, &expect, current.as_ref())
                    .ok_or_else(|| failed(key, current.is_some()))?;
            }
            // The same request came at the same time, and was faster.
            (Err(records::Error::RiderRefused { .. }), Some(mark)) => {
                if let Some(replay) = mark.replay(store).await? {
                    return Ok(replay.into());
                }
            }
            (Err(error), _) => return Err(error.into()),
        }
    }
    Err(contended(&key.to_string()))
}

async fn made(
    space: &Space,
    key: &Key,
    change: &Change,
    expect: Expected,
) -> records::Result<Written> {
    match change {
        Change::Put(draft) => space.put(key, draft.clone().expecting(expect)).await,
        Change::Merge(merge) => space.merge(key, merge.clone(), expect).await,
        Change::Delete => space.delete(key, expect).await,
        Change::Restore(number) => space.restore(key, *number, expect).await,
    }
}

/// How many records that the caller may list lie below leading values.
pub async fn count(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    values: &Bindings,
) -> Result<u64> {
    let counted = counted(reached.space.clone(), values.clone());
    services.reads().run(who, reached.served.store(), counted).await
}

async fn counted(space: Space, values: Bindings) -> Result<u64> {
    let mut listing = Listing::new(values).limit(COUNTED_TOGETHER);
    let mut count = 0;
    loop {
        let listed = space.list(&listing).await?;
        count += listed.items.len() as u64;
        if count > COUNT_MAX {
            let detail = format!("there are more than {COUNT_MAX} records");
            return Err(Problem::new(Code::LimitExceeded, detail)
                .hint("Do it in parts, with longer prefixes; nothing was done."));
        }
        match listed.next {
            Some(next) => listing = listing.after(Some(next)),
            None => return Ok(count),
        }
    }
}

/// Removes the records below leading values, at most as many as were confirmed, and returns how many. Many are
/// removed in several commits: what an error leaves behind, the next call removes.
pub async fn remove_below(
    who: &Identity,
    reached: &Reached<'_>,
    values: Bindings,
    confirmed: usize,
) -> Result<usize> {
    let prefix = reached.space.declaration().key.prefix(&values).ok();
    if let Some(key) = prefix.and_then(|prefix| Key::from_segments(prefix.segments()).ok()) {
        who.touches(&key);
    }
    reached.require(who, Need::Write)?;
    Ok(reached.space.delete_prefix_up_to(values, confirmed).await?)
}

/// Remembers a request that had nothing to delete, if that is still so.
pub(super) async fn remembered(reached: &Reached<'_>, keys: &[Key], mark: &Mark) -> Result<bool> {
    let store = reached.served.store();
    let mut commit = Commit::new();
    for key in keys {
        commit = commit.check(key.clone(), Expect::Absent);
    }
    let outcome = store.commit(mark.of_nothing(store, commit)?).await?;
    Ok(matches!(outcome, Outcome::Applied { .. }))
}

/// What is tried first. What is remembered tells whether there was a record, so that must be known
/// before.
pub(super) fn first(expected: &Precondition, tells: bool) -> Expected {
    match expected {
        Precondition::None if tells => Expected::Absent,
        Precondition::None => Expected::Any,
        Precondition::Absent => Expected::Absent,
        Precondition::Present => Expected::Present,
        // No record has the version that an empty text stands for.
        Precondition::OneOf(versions) => {
            Expected::Version(versions.first().cloned().unwrap_or_else(|| Version::parse("")))
        }
    }
}

/// What is tried after `tried` did not hold; nothing, if what is there is not what is expected.
pub(super) fn next(
    expected: &Precondition,
    tried: &Expected,
    current: Option<&Version>,
) -> Option<Expected> {
    match (expected, current) {
        (Precondition::None, Some(_)) => Some(Expected::Present),
        (Precondition::None, None) => Some(Expected::Absent),
        (Precondition::OneOf(versions), Some(current)) if versions.contains(current) => {
            let now = Expected::Version(current.clone());
            (now != *tried).then_some(now)
        }
        _ => None,
    }
}

fn failed(key: &Key, is_there: bool) -> Problem {
    let detail = match is_there {
        true => format!("{key} is not what the request expects"),
        false => format!("{key} is not there, which is not what the request expects"),
    };
    Problem::new(Code::PreconditionFailed, detail)
        .hint("Read it again, and decide anew; nothing was done.")
}

pub(super) fn contended(what: &str) -> Problem {
    Problem::new(Code::Contended, format!("others kept changing {what} at the same time"))
        .hint("Try again; nothing was done.")
        .retryable()
}
