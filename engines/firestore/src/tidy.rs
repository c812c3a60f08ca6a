//! Reclaims the space of expired entries.
//!
//! A process knows of ends that it wrote, or met in reads. The first commit after one of them begins to delete what has
//! expired, beside the commit and not in its way. What no process meets any more is left to a TTL policy of Firestore.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use keyward_engine::Result;
use keyward_http::Effect;
use serde_json::json;

use crate::commit::{Action, Operation, Precondition, Writes};
use crate::document::{end_of, key_of};
use crate::engine::Shared;
use crate::error::garbled;
use crate::read::{ended, parts};

/// How many documents are deleted by one request.
const ROWS: usize = 100;

impl Shared {
    /// An entry ends then.
    pub fn note_end(&self, end: Timestamp) {
        self.next_end.fetch_min(end.as_millisecond(), Ordering::Relaxed);
    }

    /// Begins to delete what has expired, if something has and nobody is at it.
    pub fn tidy_if_due(&self, now: Timestamp) {
        let Some(shared) = self.this.upgrade() else { return };
        if self.next_end.load(Ordering::Relaxed) > now.as_millisecond()
            || self.tidying.swap(true, Ordering::Relaxed)
        {
            return;
        }
        tokio::spawn(async move {
            // What fails now is met again by a read.
            let _ = shared.tidy(now).await;
            shared.tidying.store(false, Ordering::Relaxed);
        });
    }

    async fn tidy(self: &Arc<Self>, now: Timestamp) -> Result<()> {
        self.next_end.store(i64::MAX, Ordering::Relaxed);
        loop {
            // In the order of their ends, those to come too: then the next end is known.
            let query = json!({
                "from": [{ "collectionId": self.client.collection.id() }],
                "where": ended(Timestamp::MAX),
                "select": { "fields": [{ "fieldPath": "expires" }] },
                "limit": ROWS,
            });
            let body = json!({ "structuredQuery": query });
            let body = self.client.query("runQuery", &body).await?;
            let documents: Vec<_> =
                parts(&body)?.into_iter().filter_map(|part| part.document).collect();
            let mut writes = Vec::new();
            let mut is_done = documents.len() < ROWS;
            for document in &documents {
                let id = self.client.collection.document_id(&document.name).unwrap_or_default();
                let Some(end) = end_of(id, document)? else { continue };
                if end > now {
                    self.note_end(end);
                    is_done = true;
                    break;
                }
                if key_of(id).is_some() {
                    let updated = document.update_time.parse().map_err(garbled)?;
                    writes.push(Operation {
                        action: Action::Delete(document.name.to_string()),
                        // Not what was written again since.
                        current_document: Some(Precondition::UpdateTime(updated)),
                    });
                }
            }
            // Others' documents only: they would be met again for ever.
            is_done |= writes.is_empty();
            if !writes.is_empty() {
                let answer =
                    self.client.call("batchWrite", &Writes { writes }, Effect::WritesOnce).await?;
                answer.result.map_err(|refusal| refusal.into_error("write to"))?;
            }
            if is_done {
                return Ok(());
            }
        }
    }
}
