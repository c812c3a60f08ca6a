//! When exports are put right.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use keyward_engine::{Json, Put};
use keyward_queue::Listing;
use serde::{Deserialize, Serialize};

use super::{Consumer, repair};
use crate::{Error, Registry, Result};

/// How often it is looked whether something is to be done.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The longest wait after failures.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// An export is put right after this time, also if nothing has changed in the registry.
const REPAIRED_EVERY: SignedDuration = SignedDuration::from_hours(24);

/// When an export was last put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LastRepair {
    /// The end of the last run that it was put right after.
    run: String,
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    at: Timestamp,
}

/// Puts exports right, one after the other, for ever: after each run, as soon as nothing waits for
/// consumers, and once a day. One that cannot be reached is tried again until it can.
pub(crate) async fn tend(registry: &Registry, consumers: &[Consumer]) -> std::convert::Infallible {
    let mut wait = LOOK_EVERY;
    loop {
        let mut failed = false;
        for consumer in consumers {
            if let Err(error) = tend_one(registry, consumer).await {
                tracing::warn!(registry = registry.name(), %error, "an export is not as it should be");
                failed = true;
            }
        }
        wait = if failed { (wait * 2).min(WAIT_MAX) } else { LOOK_EVERY };
        tokio::time::sleep(wait).await;
    }
}

async fn tend_one(registry: &Registry, consumer: &Consumer) -> Result<()> {
    let declared = registry.settings().consumers.get(&consumer.name);
    if !declared.is_some_and(|declared| declared.kind.is_export()) {
        return Ok(());
    }
    let inner = &registry.inner;
    let key = inner.places.repaired(&consumer.name);
    let mut found = inner.store.get_many(&[inner.places.last_run.clone(), key.clone()]).await?;
    let (last_repair, last_run) = (found.pop().flatten(), found.pop().flatten());
    // Nothing was ever synced.
    let Some(last_run) = last_run else { return Ok(()) };
    let now = registry.now();
    let run = last_run.value.as_str();
    let last_repair: Option<LastRepair> =
        last_repair.and_then(|entry| serde_json::from_slice(entry.value.as_bytes()).ok());
    if last_repair
        .is_some_and(|last| last.run == run && now.duration_since(last.at) < REPAIRED_EVERY)
    {
        return Ok(());
    }
    let waiting = inner.queue.list(&Listing { limit: 1, ..Listing::default() }).await?;
    if !waiting.is_empty() {
        return Ok(());
    }
    let repaired = repair(registry, consumer).await?;
    if repaired.written + repaired.removed > 0 {
        let (written, removed) = (repaired.written, repaired.removed);
        let (registry, consumer) = (registry.name(), &consumer.name);
        tracing::info!(registry, consumer, written, removed, "an export was put right");
    }
    if let Some(problem) = repaired.problems.into_iter().next() {
        let (consumer, reason) =
            (consumer.name.clone(), format!("{}: {}", problem.path, problem.reason));
        return Err(Error::Consumer { consumer, reason });
    }
    let last = Json::from_value(&LastRepair { run: run.to_owned(), at: now })
        .map_err(|error| Error::Invalid(error.to_string()))?;
    inner.store.put(key, Put::new(last)).await?;
    Ok(())
}
