//! Changes of entries that are made if what is expected holds, and once if the request is marked.

use keyward::agents::{self, Namespace};
use keyward::records::{self, Precondition as Expected, Written};
use keyward::{Code, Commit, Expect, Key, Outcome};

use super::super::records::{Changed, contended, first, next};
use super::{Reached, Terms};
use crate::problem::{Problem, Result};

/// How often a change is tried when what is expected changes meanwhile.
const TRIES_MAX: usize = 32;
/// What is remembered of a request that removed an entry.
const REMOVED: &str = "removed";
/// What is remembered of a request that had nothing to remove.
const ABSENT: &str = "absent";

/// An entry that is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// Whether it was there.
    pub deleted: bool,
    /// Whether an earlier request with the same idempotency key removed it.
    pub replayed: bool,
}

/// Makes a change that gives an entry a new version. `not-found`, if there is no entry to change.
pub(super) async fn changed<F>(
    reached: &Reached<'_>,
    key: &str,
    terms: &Terms,
    make: impl Fn(Namespace, Expected) -> F,
) -> Result<Changed>
where
    F: Future<Output = agents::Result<Written>>,
{
    let (store, mark) = (reached.store(), terms.mark.as_ref());
    if let Some(mark) = mark
        && let Some(replay) = mark.replay(store).await?
    {
        return Ok(replay.into());
    }
    let mut expect = first(&terms.expected, mark.is_some());
    for _ in 0..TRIES_MAX {
        let mut namespace = reached.namespace.clone();
        if let Some(mark) = mark {
            let created = expect == Expected::Absent;
            namespace = namespace.with_rider(mark.rider(store, true, created)?);
        }
        match make(namespace, expect.clone()).await {
            Ok(Written::Applied { version, created }) => {
                return Ok(Changed { version: Some(version), created, ..Changed::default() });
            }
            Ok(Written::Unchanged { version: Some(version) }) => {
                return Ok(Changed { version: Some(version), ..Changed::default() });
            }
            Ok(Written::Unchanged { version: None } | Written::Removed) => {
                return Err(missing(key));
            }
            Ok(Written::Conflicted { current }) => {
                expect = next(&terms.expected, &expect, current.as_ref())
                    .ok_or_else(|| failed(key, current.is_some()))?;
            }
            // The same request came at the same time, and was faster.
            Err(agents::Error::Records(records::Error::RiderRefused { .. })) => {
                if let Some(mark) = mark
                    && let Some(replay) = mark.replay(store).await?
                {
                    return Ok(replay.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(contended(&format!("the entry {key:?}")))
}

/// Removes an entry, and says whether it was there.
pub(super) async fn deleted(
    reached: &Reached<'_>,
    key: &str,
    place: &Key,
    terms: &Terms,
) -> Result<Deleted> {
    let (store, mark) = (reached.store(), terms.mark.as_ref());
    let mut expect = first(&terms.expected, false);
    for _ in 0..TRIES_MAX {
        let mut namespace = reached.namespace.clone();
        if let Some(mark) = mark {
            if let Some(replay) = mark.replay(store).await? {
                let deleted = replay.told.as_deref() == Some(REMOVED);
                return Ok(Deleted { deleted, replayed: true });
            }
            namespace = namespace.with_rider(mark.telling(store, Commit::new(), REMOVED)?);
        }
        match namespace.delete_expecting(key, expect.clone()).await {
            Ok(Written::Removed | Written::Applied { .. }) => {
                return Ok(Deleted { deleted: true, replayed: false });
            }
            Ok(Written::Unchanged { .. }) => {
                let Some(mark) = mark else {
                    return Ok(Deleted { deleted: false, replayed: false });
                };
                // Nothing was there to delete, and so nothing remembered it.
                let absent = Commit::new().check(place.clone(), Expect::Absent);
                let alone = mark.telling(store, absent, ABSENT)?;
                if let Outcome::Applied { .. } = store.commit(alone).await? {
                    return Ok(Deleted { deleted: false, replayed: false });
                }
            }
            Ok(Written::Conflicted { current }) => {
                expect = next(&terms.expected, &expect, current.as_ref())
                    .ok_or_else(|| failed(key, current.is_some()))?;
            }
            Err(agents::Error::Records(records::Error::RiderRefused { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(contended(&format!("the entry {key:?}")))
}

/// That there is no entry.
pub fn missing(key: &str) -> Problem {
    Problem::not_found(format!("there is no entry {key:?} in this namespace"))
        .hint("List the keys of the namespace, or set the entry first.")
}

fn failed(key: &str, is_there: bool) -> Problem {
    let detail = match is_there {
        true => format!("the entry {key:?} is not what the request expects"),
        false => format!("the entry {key:?} is not there, which is not what the request expects"),
    };
    Problem::new(Code::PreconditionFailed, detail)
        .hint("Read it again, and decide anew; nothing was done.")
}
