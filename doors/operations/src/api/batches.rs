//! Several records of a space at once.

use keyward::records::{self, Operation, Written};
use keyward::{Code, Key, Version};
use serde_json::json;

use super::records::{contended, remembered};
use super::spaces::Reached;
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};

/// How often a batch is tried when what it deletes comes and goes meanwhile.
const TRIES_MAX: usize = 32;

/// Changes that were made together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The new version of each record, in the order of the operations; none for deleted ones.
    pub versions: Vec<Option<Version>>,
    /// Whether an earlier request with the same idempotency key made them.
    pub replayed: bool,
}

/// Makes all changes in one commit, or none of them.
pub async fn together(
    who: &Identity,
    reached: &Reached<'_>,
    operations: &[Operation],
    mark: Option<&Mark>,
) -> Result<Batch> {
    admit(who, reached, operations)?;
    if operations.is_empty() {
        return Err(Problem::invalid("a batch has at least one operation"));
    }
    let store = reached.served.store();
    let Some(mark) = mark else {
        let written = reached.space.together(operations.to_vec()).await?;
        return answer(operations, &written);
    };
    let space = reached.space.clone().with_rider(mark.rider(store, true, false)?);
    for _ in 0..TRIES_MAX {
        if let Some(batch) = replayed(reached, operations, mark).await? {
            return Ok(batch);
        }
        match space.together(operations.to_vec()).await {
            // The same request came at the same time, and was faster.
            Err(records::Error::RiderRefused { .. }) => {}
            Err(error) => return Err(error.into()),
            Ok(written) => {
                let batch = answer(operations, &written)?;
                let is_nothing = |one: &Written| matches!(one, Written::Unchanged { .. });
                // Nothing was there to delete, and so nothing remembered it.
                if !written.iter().all(is_nothing) {
                    return Ok(batch);
                }
                let keys: Vec<Key> = operations.iter().map(|it| key(it).clone()).collect();
                if remembered(reached, &keys, mark).await? {
                    return Ok(batch);
                }
            }
        }
    }
    Err(contended("these records"))
}

fn admit(who: &Identity, reached: &Reached<'_>, operations: &[Operation]) -> Result<()> {
    operations.iter().for_each(|operation| who.touches(key(operation)));
    reached.require(who, Need::Write)
}

/// What the same request did before, if it did.
async fn replayed(
    reached: &Reached<'_>,
    operations: &[Operation],
    mark: &Mark,
) -> Result<Option<Batch>> {
    let Some(replay) = mark.replay(reached.served.store()).await? else { return Ok(None) };
    let version = |operation| replay.version.clone().filter(|_| !deletes(operation));
    Ok(Some(Batch { versions: operations.iter().map(version).collect(), replayed: true }))
}

/// Makes changes one after the other, each on its own.
pub async fn each(
    who: &Identity,
    reached: &Reached<'_>,
    operations: &[Operation],
) -> Result<Vec<Result<Option<Version>>>> {
    admit(who, reached, operations)?;
    let outcomes = reached.space.each(operations.to_vec()).await;
    let outcomes =
        outcomes.into_iter().zip(operations).map(|(outcome, operation)| match outcome? {
            Written::Conflicted { .. } => {
                Err(not_expected(vec![json!({ "key": key(operation).to_string() })]))
            }
            written => Ok(version(&written)),
        });
    Ok(outcomes.collect())
}

fn answer(operations: &[Operation], written: &[Written]) -> Result<Batch> {
    let failed: Vec<_> = operations
        .iter()
        .zip(written)
        .enumerate()
        .filter(|(_, (_, written))| !written.is_accepted())
        .map(|(at, (operation, _))| json!({ "operation": at, "key": key(operation).to_string() }))
        .collect();
    match failed.is_empty() {
        true => Ok(Batch { versions: written.iter().map(version).collect(), replayed: false }),
        false => Err(not_expected(failed)),
    }
}

fn not_expected(failed: Vec<serde_json::Value>) -> Problem {
    Problem::new(Code::PreconditionFailed, "what is there is not what the request expects")
        .hint("Read the records that failed names again, and decide anew; they are as they were.")
        .with("failed", failed)
}

fn version(written: &Written) -> Option<Version> {
    match written {
        Written::Applied { version, .. } => Some(version.clone()),
        Written::Unchanged { version } => version.clone(),
        Written::Removed | Written::Conflicted { .. } => None,
    }
}

fn key(operation: &Operation) -> &Key {
    match operation {
        Operation::Put(key, _) | Operation::Merge(key, ..) | Operation::Delete(key, _) => key,
    }
}

fn deletes(operation: &Operation) -> bool {
    matches!(operation, Operation::Delete(..))
}
