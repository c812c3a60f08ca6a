//! Entries of a namespace.

use keyward::agents::{self, AgentEntry, Entries, Keys, Namespace, Patch, Set};
use keyward::records::{self, Written};
use keyward::{Code, Json, Version};
use serde_json::json;

use super::super::records::{Changed, contended};
use super::change::{self, changed};
pub use super::change::{Deleted, missing};
use super::{Reached, Terms};
use crate::api::{queries::PAGE_BYTES_MAX, several};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};

/// How often several entries are set when the same request comes at the same time.
const TRIES_MAX: usize = 8;

/// An entry with everything that is known about it. It counts as accessed by the agent.
pub async fn get(who: &Identity, reached: &Reached<'_>, key: &str) -> Result<Option<AgentEntry>> {
    reached.require(who, Need::Read)?;
    Ok(reached.namespace.entry(key).await?)
}

/// The value of an entry: the quickest read. It counts as accessed by the agent.
pub async fn value(who: &Identity, reached: &Reached<'_>, key: &str) -> Result<Option<Json>> {
    reached.require(who, Need::Read)?;
    Ok(reached.namespace.get(key).await?)
}

/// The values of some entries, in the order of the keys.
pub async fn get_many(
    who: &Identity,
    reached: &Reached<'_>,
    keys: &[String],
) -> Result<Vec<Option<Json>>> {
    reached.require(who, Need::Read)?;
    several::refuse_twice(keys)?;
    let keys = keys.to_vec();
    let read = |namespace: Namespace| async move { namespace.get_many(&keys).await };
    let values = reached.beside(who, read).await?;
    several::check(values.iter().flatten().map(Json::len))?;
    Ok(values)
}

/// Makes an entry, or gives it a new value, with metadata merged into what it has. What the set itself
/// expects is not looked at; the terms say it.
pub async fn set(
    who: &Identity,
    reached: &Reached<'_>,
    key: &str,
    set: &Set,
    terms: &Terms,
) -> Result<Changed> {
    reached.admit(who, key)?;
    changed(reached, key, terms, |namespace, expect| {
        let set = set.clone().expecting(expect);
        async move { namespace.set(key, set).await }
    })
    .await
}

/// Merges parts into an entry, which must be there. What the patch itself expects is not looked at; the
/// terms say it.
pub async fn patch(
    who: &Identity,
    reached: &Reached<'_>,
    key: &str,
    patch: &Patch,
    terms: &Terms,
) -> Result<Changed> {
    reached.admit(who, key)?;
    changed(reached, key, terms, |namespace, expect| {
        let patch = patch.clone().expecting(expect);
        async move { namespace.patch(key, patch).await }
    })
    .await
}

/// Removes an entry.
pub async fn delete(
    who: &Identity,
    reached: &Reached<'_>,
    key: &str,
    terms: &Terms,
) -> Result<Deleted> {
    let place = reached.admit(who, key)?;
    change::deleted(reached, key, &place, terms).await
}

/// Entries that were set together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetMany {
    /// The new version of each, in the order given.
    pub versions: Vec<Version>,
    /// Whether an earlier request with the same idempotency key set them.
    pub replayed: bool,
}

/// Sets some entries: in one commit where the engine can, or none if one of them expects what is not so.
pub async fn set_many(
    who: &Identity,
    reached: &Reached<'_>,
    entries: &[(String, Set)],
    mark: Option<&Mark>,
) -> Result<SetMany> {
    for (key, _) in entries {
        reached.admit(who, key)?;
    }
    reached.require(who, Need::Write)?;
    if entries.is_empty() {
        return Err(Problem::invalid("at least one entry is set"));
    }
    let store = reached.store();
    for _ in 0..TRIES_MAX {
        let mut namespace = reached.namespace.clone();
        if let Some(mark) = mark {
            if let Some(replay) = mark.replay(store).await? {
                // All entries of a commit have one version.
                let versions = entries.iter().filter_map(|_| replay.version.clone()).collect();
                return Ok(SetMany { versions, replayed: true });
            }
            namespace = namespace.with_rider(mark.rider(store, true, false)?);
        }
        match namespace.set_many(entries.to_vec()).await {
            // The same request came at the same time, and was faster.
            Err(agents::Error::Records(records::Error::RiderRefused { .. })) if mark.is_some() => {}
            Err(error) => return Err(error.into()),
            Ok(written) => return told(entries, &written),
        }
    }
    Err(contended("these entries"))
}

fn told(entries: &[(String, Set)], written: &[Written]) -> Result<SetMany> {
    let both = || entries.iter().zip(written);
    let failed: Vec<_> = both()
        .enumerate()
        .filter(|(_, (_, written))| !written.is_accepted())
        .map(|(at, ((key, _), _))| json!({ "entry": at, "key": key }))
        .collect();
    if !failed.is_empty() {
        let detail = "what is there is not what the request expects";
        return Err(Problem::new(Code::PreconditionFailed, detail)
            .hint(
                "Read the entries that failed names again, and decide anew; they are as they were.",
            )
            .with("failed", failed));
    }
    let versions = written.iter().filter_map(|written| written.version().cloned());
    Ok(SetMany { versions: versions.collect(), replayed: false })
}

/// Which page of a namespace is meant.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// What keys start with; anything, if it is empty.
    pub prefix: String,
    pub cursor: Option<String>,
    pub limit: usize,
}

/// A page of keys, in order.
pub async fn keys(who: &Identity, reached: &Reached<'_>, part: Part) -> Result<Keys> {
    reached.require(who, Need::Read)?;
    let Part { prefix, cursor, limit } = part;
    let read =
        |namespace: Namespace| async move { namespace.list_keys(&prefix, cursor, limit).await };
    reached.beside(who, read).await
}

/// A page of entries, in the order of their keys. They do not count as accessed.
pub async fn all(who: &Identity, reached: &Reached<'_>, part: Part) -> Result<Entries> {
    reached.require(who, Need::Read)?;
    let Part { prefix, cursor, limit } = part;
    let read = |namespace: Namespace| async move {
        namespace.get_all_up_to(&prefix, cursor, limit, PAGE_BYTES_MAX).await
    };
    reached.beside(who, read).await
}
