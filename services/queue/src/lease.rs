//! What the key of a claim holds, and keeping it.

use keyward_engine::{Commit, Entry, Expiry, Json, Put};
use serde::{Deserialize, Serialize};

use crate::enqueue::json;
use crate::queue::Committed;
use crate::{Attempt, Queue, Result};

/// What the key of a claim holds: a lease, or for a while the mark of a completion.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mark {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

pub(crate) fn lease_mark(nonce: &str, by: &str) -> Result<Json> {
    let (nonce, by) = (Some(nonce.to_owned()), Some(by.to_owned()));
    json(&Mark { nonce, by, done: None, digest: None })
}

/// The mark of a completion, with what tells the content where the id was given.
pub(crate) fn completion_mark(nonce: &str, digest: Option<String>) -> Result<Json> {
    json(&Mark { nonce: None, by: None, done: Some(nonce.to_owned()), digest })
}

/// The mark of a completion, if it is one.
pub(crate) fn done_mark(entry: &Entry) -> Option<Mark> {
    serde_json::from_str(entry.value.as_str()).ok().filter(|mark: &Mark| mark.done.is_some())
}

/// Gives a sign of life for several attempts in one commit. Tells for each whether it is still the
/// current one.
pub(crate) async fn beat_all(queue: &Queue, attempts: &[&Attempt]) -> Result<Vec<bool>> {
    let inner = &queue.inner;
    let mut alive = vec![true; attempts.len()];
    let keys_max = inner.store.limits().commit_keys_max.max(2) / 2;
    for (chunk_at, chunk) in attempts.chunks(keys_max).enumerate() {
        let begin = chunk_at * keys_max;
        loop {
            let live: Vec<usize> = (begin..begin + chunk.len()).filter(|at| alive[*at]).collect();
            if live.is_empty() {
                break;
            }
            let mut commit = Commit::new();
            for at in &live {
                let attempt = attempts[*at];
                let mark = Put::new(lease_mark(attempt.nonce(), attempt.holder())?)
                    .expiring(Expiry::After(attempt.lease()));
                commit.checks.push(attempt.fence());
                commit = commit.put(inner.places.claim(attempt.id()), mark);
            }
            match queue.commit(commit).await? {
                Committed::Applied(_) => break,
                Committed::Conflicted(failed) => {
                    let lost: Vec<usize> =
                        failed.iter().filter_map(|check| live.get(*check).copied()).collect();
                    if lost.is_empty() {
                        return Err(queue.contended("the leases"));
                    }
                    lost.into_iter().for_each(|at| alive[at] = false);
                }
                Committed::Unknown(error) => return Err(error.into()),
            }
        }
    }
    Ok(alive)
}
