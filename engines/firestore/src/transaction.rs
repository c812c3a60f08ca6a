//! Reads of several documents at one moment that one request does not give.

use std::time::Duration;

use bytes::Bytes;
use keyward_engine::{ErrorKind, Result};
use keyward_http::Effect;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::error::{Refusal, garbled};

const PAUSE: Duration = Duration::from_millis(5);

/// How a transaction keeps its reads at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// By reading an earlier state.
    Snapshot,
    /// By locking what it reads.
    Locks,
}

#[derive(Deserialize)]
struct Begun {
    transaction: String,
}

impl Client {
    /// Reads documents in a transaction, and ends it. What is too large for one answer comes in several.
    pub async fn read_together(
        &self,
        names: &[String],
        isolation: Isolation,
        budget: Duration,
    ) -> Result<Vec<Bytes>> {
        let started = Instant::now();
        let mode = match isolation {
            Isolation::Snapshot => json!({ "readOnly": {} }),
            Isolation::Locks => json!({ "readWrite": {} }),
        };
        loop {
            // Begun for itself: one that began with a read whose answer is lost would keep its locks.
            let begun = self.read("beginTransaction", &json!({ "options": mode })).await?;
            let Begun { transaction } = serde_json::from_slice(&begun).map_err(garbled)?;
            let read = self.read_parts(names, &transaction).await;
            // One that fails has ended already.
            let _ =
                self.call("rollback", &json!({ "transaction": transaction }), Effect::Reads).await;
            match read? {
                Ok(bodies) => return Ok(bodies),
                Err(refusal) if refusal.is_contended() && started.elapsed() < budget => {
                    sleep(PAUSE).await;
                }
                Err(refusal) => return Err(refusal.into_error("read from")),
            }
        }
    }

    /// Reads documents in as many requests as their size takes.
    async fn read_parts(
        &self,
        names: &[String],
        transaction: &str,
    ) -> Result<Result<Vec<Bytes>, Refusal>> {
        let (mut bodies, mut unread, mut count) = (Vec::new(), names, names.len());
        while !unread.is_empty() {
            let (some, rest) = unread.split_at(count.min(unread.len()));
            let body = json!({ "documents": some, "transaction": transaction });
            match self.call("batchGet", &body, Effect::Reads).await {
                Ok(answer) => match answer.result {
                    Ok(body) => {
                        bodies.push(body);
                        unread = rest;
                    }
                    Err(refusal) => return Ok(Err(refusal)),
                },
                Err(error) if error.kind() == ErrorKind::LimitExceeded && some.len() > 1 => {
                    count = some.len() / 2;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(bodies))
    }
}
