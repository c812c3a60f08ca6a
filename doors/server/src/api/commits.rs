//! Several entries at once.

use keyward::locks::Ticket;
use keyward::{Commit, Entry, Key, Outcome, Revision, Version};

use super::locks::Fenced;
use super::reach::admit;
use crate::auth::{Identity, Need};
use crate::idempotency::Mark;
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// How a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Committed {
    /// All of it is done.
    Applied {
        revision: Option<Revision>,
        /// For each write, its new version; none, if the request was done before.
        versions: Vec<Option<Version>>,
        replayed: bool,
    },
    /// Nothing of it is done: these checks did not hold.
    Conflicted(Vec<usize>),
}

/// Applies all writes if all checks hold, else none.
pub(crate) async fn commit(
    who: &Identity,
    served: &Served,
    commit: Commit,
    lock: Option<&Ticket>,
    mark: Option<&Mark>,
) -> Result<Committed> {
    if commit.writes.is_empty() && commit.checks.is_empty() {
        return Err(Problem::invalid("a commit has at least one check or write"));
    }
    for check in &commit.checks {
        admit(who, served, &check.key, Need::Read)?;
    }
    for write in &commit.writes {
        admit(who, served, write.key(), Need::Write)?;
    }
    let store = served.store();
    let (checks, writes) = (commit.checks.len(), commit.writes.len());
    let versioned: Vec<bool> =
        commit.writes.iter().map(|write| !matches!(write, keyward::Write::Delete(_))).collect();
    let replayed = |version: Option<Version>| Committed::Applied {
        revision: None,
        versions: versioned.iter().map(|it| version.clone().filter(|_| *it)).collect(),
        replayed: true,
    };
    let (commit, fenced) = Fenced::add(who, served, commit, lock)?;
    let commit = match mark {
        None => commit,
        Some(mark) => match mark.replay(store).await? {
            Some(replay) => return Ok(replayed(replay.version)),
            None => mark.added_to(store, commit, true)?,
        },
    };
    match store.commit(commit).await? {
        Outcome::Applied { revision, mut versions } => {
            versions.truncate(writes);
            Ok(Committed::Applied { revision, versions, replayed: false })
        }
        Outcome::Conflicted { mut failed } => {
            if let Some(mark) = mark
                && failed.iter().any(|check| *check >= checks)
                && let Some(replay) = mark.replay(store).await?
            {
                return Ok(replayed(replay.version));
            }
            fenced.check(served, &failed).await?;
            failed.retain(|check| *check < checks);
            Ok(Committed::Conflicted(failed))
        }
    }
}

/// What some keys hold, in the order of the keys.
pub(crate) async fn get_many(
    who: &Identity,
    served: &Served,
    keys: &[Key],
) -> Result<Vec<Option<Entry>>> {
    for key in keys {
        admit(who, served, key, Need::Read)?;
    }
    let entries = served.store().get_many(keys).await?;
    Ok(entries.into_iter().map(keyward::locks::present).collect())
}
