//! Reads: documents by their names, and pages of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use jiff::Timestamp;
use keyward_engine::{Cursor, Entry, ErrorKind, Order, Page, Result, Row, Scan, Want};
use keyward_key::Key;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::document::{Document, Held, end_of, id_of, ids_of, key_of};
use crate::emulator::Ended;
use crate::engine::Shared;
use crate::error::{Refusal, garbled};
use crate::transaction::Isolation;

/// How large a page should become: pages of large values have fewer rows.
const PAGE_BYTES: usize = 16 << 20;
/// How many rows the first page of entries has: not too many if all are as large as can be.
pub(crate) const PAGE_ROWS_FIRST: usize = 16;
/// How many times as many rows as a page had the next may have, however small they were: others may be larger.
const PAGE_ROWS_GROWTH: usize = 4;

/// One part of a streamed answer.
#[derive(Deserialize)]
pub(crate) struct Part<'a> {
    /// Of `batchGet`.
    #[serde(borrow)]
    pub found: Option<Document<'a>>,
    #[serde(borrow)]
    pub missing: Option<Cow<'a, str>>,
    /// Of `runQuery`.
    #[serde(borrow)]
    pub document: Option<Document<'a>>,
    #[serde(borrow, rename = "readTime")]
    read_time: Option<Cow<'a, str>>,
    error: Option<Refusal>,
}

/// The parts of an answer; the error if the stream ended with one.
pub(crate) fn parts(body: &[u8]) -> Result<Vec<Part<'_>>> {
    let mut parts: Vec<Part<'_>> = serde_json::from_slice(body).map_err(garbled)?;
    match parts.iter_mut().find_map(|part| part.error.take()) {
        Some(refusal) => Err(refusal.into_error("read from")),
        None => Ok(parts),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    result: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    aggregate_fields: Count,
}

#[derive(Deserialize)]
struct Count {
    count: Integer,
}

#[derive(Deserialize)]
struct Integer {
    #[serde(rename = "integerValue")]
    text: String,
}

impl Shared {
    /// What keys hold, expired or not, in one request; in more if they are too large for one answer.
    ///
    /// One request is one moment: Firestore gives each document the time at which it was read, and promises that those
    /// read before had not changed by the time of a later one. Several requests are of one transaction.
    pub async fn held<'k>(&self, keys: impl Iterator<Item = &'k Key>) -> Result<Vec<Option<Held>>> {
        let names: Vec<String> = keys.map(|key| self.client.collection.name(&id_of(key))).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let ended = self.emulator.as_ref().map_or(0, Ended::count);
        match self.client.read("batchGet", &json!({ "documents": names })).await {
            Ok(body) => {
                let (held, read) = self.told(&names, &[body])?;
                let is_doubtful =
                    self.emulator.as_ref().is_some_and(|it| it.doubts(&held, read, ended));
                if !is_doubtful {
                    return Ok(held);
                }
            }
            Err(error) if error.kind() == ErrorKind::LimitExceeded && names.len() > 1 => {}
            Err(error) => return Err(error),
        }
        let isolation =
            if self.emulator.is_some() { Isolation::Locks } else { Isolation::Snapshot };
        let bodies = self.client.read_together(&names, isolation, self.retry_budget).await?;
        Ok(self.told(&names, &bodies)?.0)
    }

    /// What answers tell about documents, and when the last of them was read.
    fn told(&self, names: &[String], bodies: &[Bytes]) -> Result<(Vec<Option<Held>>, Timestamp)> {
        let mut documents = HashMap::with_capacity(names.len());
        let mut read = Timestamp::UNIX_EPOCH;
        for body in bodies {
            for part in parts(body)? {
                if let Some(time) = part.read_time {
                    read = read.max(time.parse().map_err(garbled)?);
                }
                if let Some(document) = part.found {
                    documents.insert(document.name.to_string(), Some(document));
                } else if let Some(name) = part.missing {
                    documents.insert(name.into_owned(), None);
                }
            }
        }
        let held = names.iter().map(|name| {
            let id = self.client.collection.document_id(name).unwrap_or(name);
            let document = documents.get(name);
            let document = document
                .ok_or_else(|| garbled(format_args!("nothing about the document {id:?}")))?;
            document.as_ref().map(|document| Held::read(id, document)).transpose()
        });
        Ok((held.collect::<Result<_>>()?, read))
    }

    pub async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        let held = self.held(keys.iter()).await?;
        let now = self.clock.now();
        Ok(held
            .into_iter()
            .map(|held| held.and_then(|held| self.unexpired(held.entry, now)))
            .collect())
    }

    fn unexpired(&self, entry: Entry, now: Timestamp) -> Option<Entry> {
        match entry.expires {
            Some(end) if end <= now => {
                self.note_end(end);
                None
            }
            _ => Some(entry),
        }
    }

    pub async fn scan(&self, scan: &Scan) -> Result<Page> {
        let range = scan.remaining();
        let mut page = Page::default();
        if range.is_empty() {
            return Ok(page);
        }
        let (start, end) = ids_of(&range);
        let mut after = None;
        loop {
            let limit = match scan.want {
                Want::Keys => scan.limit,
                Want::Entries => scan.limit.min(self.page_rows.load(Ordering::Relaxed)),
            };
            let query = self.page_query(scan, limit, (&start, &end), after.as_deref());
            let body = match self.client.query("runQuery", &query).await {
                Ok(body) => body,
                Err(error) => {
                    let kind = error.kind();
                    let is_large =
                        matches!(kind, ErrorKind::LimitExceeded | ErrorKind::Unavailable)
                            && scan.want == Want::Entries
                            && limit > 1;
                    if is_large {
                        self.halve_pages(limit);
                    }
                    match kind {
                        ErrorKind::LimitExceeded if is_large => continue,
                        // Whoever scans again gets the shorter page.
                        _ => return Err(error),
                    }
                }
            };
            let documents: Vec<_> =
                parts(&body)?.into_iter().filter_map(|part| part.document).collect();
            if scan.want == Want::Entries {
                self.note_page(body.len(), documents.len());
            }
            let now = self.clock.now();
            let mut last = None;
            for document in &documents {
                let id = self.client.collection.document_id(&document.name).unwrap_or_default();
                after = Some(id.to_owned());
                // Bounds are a little wide, and what is no entry's is somebody else's.
                let Some(key) = key_of(id).filter(|key| range.contains(key)) else { continue };
                last = Some(Cursor::after_key(&key));
                let entry = match scan.want {
                    Want::Entries => {
                        let held = Held::read(id, document)?;
                        let Some(entry) = self.unexpired(held.entry, now) else { continue };
                        Some(entry)
                    }
                    Want::Keys => match end_of(id, document)? {
                        Some(end) if end <= now => {
                            self.note_end(end);
                            continue;
                        }
                        _ => None,
                    },
                };
                page.rows.push(Row { key, entry });
            }
            if documents.len() < limit {
                return Ok(page);
            }
            if last.is_some() {
                page.next = last;
                return Ok(page);
            }
        }
    }

    /// Learns from a page how many rows the next may have.
    fn note_page(&self, bytes: usize, rows: usize) {
        let Some(row_bytes) = bytes.checked_div(rows) else { return };
        let fitting = (PAGE_BYTES / row_bytes.max(1)).max(1);
        let now = self.page_rows.load(Ordering::Relaxed);
        let next = fitting.min(now.max(rows * PAGE_ROWS_GROWTH));
        self.page_rows.store(next, Ordering::Relaxed);
    }

    /// Makes later pages half as long as one that did not arrive, whatever was learnt before: it may have been too large
    /// to be read, or to be read in time.
    fn halve_pages(&self, rows: usize) {
        self.page_rows.store((rows / 2).max(1), Ordering::Relaxed);
    }

    /// A page of documents. Firestore sorts names only upwards unless it is given an index, and every field both ways; so
    /// downwards it goes by the field that repeats the id.
    fn page_query(
        &self,
        scan: &Scan,
        limit: usize,
        ids: (&str, &str),
        after: Option<&str>,
    ) -> Value {
        let (start, end) = ids;
        let name = |id: &str| json!([{ "referenceValue": self.client.collection.name(id) }]);
        let text = |id: &str| json!([{ "stringValue": id }]);
        let (field, direction, first, last) = match scan.order {
            Order::Ascending => {
                let first = match after {
                    None => json!({ "values": name(start), "before": true }),
                    Some(after) => json!({ "values": name(after), "before": false }),
                };
                ("__name__", "ASCENDING", first, json!({ "values": name(end), "before": true }))
            }
            Order::Descending => {
                let first = json!({ "values": text(after.unwrap_or(end)), "before": false });
                ("key", "DESCENDING", first, json!({ "values": text(start), "before": false }))
            }
        };
        let mut query = json!({
            "from": [{ "collectionId": self.client.collection.id() }],
            "orderBy": [{ "field": { "fieldPath": field }, "direction": direction }],
            "startAt": first,
            "endAt": last,
            "limit": limit,
        });
        if scan.want == Want::Keys {
            query["select"] = json!({ "fields": [{ "fieldPath": "expires" }] });
        }
        json!({ "structuredQuery": query })
    }

    /// How many documents of entries there are; only those that ended by a moment, if one is given.
    pub async fn count(&self, ended_by: Option<Timestamp>) -> Result<u64> {
        let from = json!([{ "collectionId": self.client.collection.id() }]);
        let name = |id: &str| json!({ "values": [{ "referenceValue": self.client.collection.name(id) }], "before": true });
        let query = match ended_by {
            None => json!({
                "from": from,
                "orderBy": [{ "field": { "fieldPath": "__name__" } }],
                "startAt": name("="),
                "endAt": name(">"),
            }),
            Some(now) => json!({ "from": from, "where": ended(now) }),
        };
        let aggregation = json!({
            "structuredQuery": query,
            "aggregations": [{ "count": {}, "alias": "count" }],
        });
        let body = json!({ "structuredAggregationQuery": aggregation });
        let body = self.client.query("runAggregationQuery", &body).await?;
        let counted: Vec<Counted> = serde_json::from_slice(&body).map_err(garbled)?;
        let count = counted.into_iter().find_map(|part| part.result);
        let count = count.ok_or_else(|| garbled("it has no count"))?;
        count.aggregate_fields.count.text.parse().map_err(garbled)
    }
}

/// The documents whose end has come.
pub(crate) fn ended(now: Timestamp) -> Value {
    let bound = |op: &str, at: Timestamp| {
        json!({ "fieldFilter": {
            "field": { "fieldPath": "expires" },
            "op": op,
            "value": { "timestampValue": at.to_string() },
        } })
    };
    let filters =
        [bound("GREATER_THAN_OR_EQUAL", Timestamp::UNIX_EPOCH), bound("LESS_THAN_OR_EQUAL", now)];
    json!({ "compositeFilter": { "op": "AND", "filters": filters } })
}
