use jiff::Timestamp;
use keyward_engine::{Cursor, Entry, Error, ErrorKind, Order, Page, Result, Row, Scan, Want};
use keyward_http::{Request, StatusCode};
use keyward_key::{Key, KeyRange};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::read;
use crate::document::{entry, id_bounds, id_of, key_of};
use crate::engine::CouchDb;
use crate::error::{is_absent, unreadable};
use crate::rev::{Held, Rev};

pub(crate) const ALL_DOCS: [&str; 1] = ["_all_docs"];
/// How many whole documents are asked for at once. If they are too large together, fewer are.
pub(crate) const DOCUMENTS_MAX: usize = 100;
/// How many ids are asked for at once.
const IDS_MAX: usize = 5_000;

/// Documents by their ids.
#[derive(Debug, Serialize)]
pub(crate) struct ByIds<'a> {
    pub keys: &'a [String],
    pub include_docs: bool,
}

/// Documents of a range of ids.
#[derive(Debug, Serialize)]
pub(crate) struct ByRange<'a> {
    pub startkey: &'a str,
    pub endkey: &'a str,
    pub inclusive_end: bool,
    pub descending: bool,
    pub limit: usize,
    pub include_docs: bool,
    pub conflicts: bool,
}

/// What `_all_docs` answers.
#[derive(Debug, Deserialize)]
pub(crate) struct Rows<'a> {
    #[serde(borrow)]
    pub rows: Vec<IdRow<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct IdRow<'a> {
    /// Left out for ids that were asked for and never existed.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub value: Option<RevOf>,
    #[serde(borrow, default)]
    pub doc: Option<&'a RawValue>,
    #[serde(default)]
    pub error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RevOf {
    pub rev: String,
    #[serde(default)]
    pub deleted: bool,
}

impl IdRow<'_> {
    /// The document, if there is one.
    pub fn document(&self) -> Option<&str> {
        let is_deleted = self.value.as_ref().is_some_and(|value| value.deleted);
        self.doc.filter(|_| !is_deleted).map(RawValue::get).filter(|text| *text != "null")
    }
}

/// Whether less must be asked for at once.
pub(crate) fn is_too_large(error: &Error) -> bool {
    error.kind() == ErrorKind::LimitExceeded
}

/// The last revision of a document.
pub(crate) enum Leaf {
    /// There never was one.
    None,
    Deleted(Rev),
    Live(Rev),
}

impl CouchDb {
    /// The entry of a key, expired or not.
    pub(crate) async fn stored(&self, id: &str) -> Result<Option<(Held, Entry)>> {
        let client = &self.shared().client;
        let response = client.send(Request::get(client.url(&[id], ""))).await?;
        match response.status {
            StatusCode::OK => {
                let text = std::str::from_utf8(&response.body);
                entry(id, text.map_err(|error| unreadable("a document", error))?).map(Some)
            }
            StatusCode::NOT_FOUND if is_absent(&response) => Ok(None),
            _ => Err(client.refused(&response)),
        }
    }

    /// The last revision of a document, without the document.
    pub(crate) async fn leaf(&self, id: &str) -> Result<Leaf> {
        let client = &self.shared().client;
        let query = ByIds { keys: &[id.to_owned()], include_docs: false };
        let response = client.ask(&ALL_DOCS, &query).await?;
        if response.status != StatusCode::OK {
            return Err(client.refused(&response));
        }
        let found: Rows<'_> = read("_all_docs", &response)?;
        let row = found.rows.first();
        match row.and_then(|row| row.value.as_ref()) {
            None if row.is_some_and(|row| row.error.as_deref() == Some("not_found")) => {
                Ok(Leaf::None)
            }
            None => Err(unreadable("_all_docs", "it has neither a revision nor not_found")),
            Some(RevOf { rev, deleted }) => {
                let parsed = Rev::parse(rev).ok_or_else(|| {
                    unreadable("_all_docs", format!("the _rev {rev:?} is of no known form"))
                })?;
                Ok(if *deleted { Leaf::Deleted(parsed) } else { Leaf::Live(parsed) })
            }
        }
    }

    pub(crate) async fn entry_of(&self, key: &Key) -> Result<Option<Entry>> {
        let id = id_of(key);
        let Some((held, entry)) = self.stored(&id).await? else { return Ok(None) };
        let is_expired = held.is_expired(self.shared().clock.now());
        if is_expired {
            self.shared().expiring().note(id, &held);
        }
        Ok((!is_expired).then_some(entry))
    }

    pub(crate) async fn entries_of(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        let ids: Vec<String> = keys.iter().map(id_of).collect();
        let client = &self.shared().client;
        let query = ByIds { keys: &ids, include_docs: true };
        let response = match client.ask(&ALL_DOCS, &query).await {
            Err(error) if is_too_large(&error) && keys.len() > 1 => {
                let (first, rest) = keys.split_at(keys.len() / 2);
                let mut entries = Box::pin(self.entries_of(first)).await?;
                entries.extend(Box::pin(self.entries_of(rest)).await?);
                return Ok(entries);
            }
            response => response?,
        };
        if response.status != StatusCode::OK {
            return Err(client.refused(&response));
        }
        let found: Rows<'_> = read("_all_docs", &response)?;
        if found.rows.len() != ids.len() {
            let counts = format!("{} rows for {} ids", found.rows.len(), ids.len());
            return Err(unreadable("_all_docs", counts));
        }
        let now = self.shared().clock.now();
        let rows = found.rows.iter().zip(&ids);
        rows.map(|(row, id)| match row.document() {
            Some(document) => self.live(id, document, now),
            None if row.error.as_deref().is_none_or(|error| error == "not_found") => Ok(None),
            None => Err(unreadable("_all_docs", row.error.as_deref().unwrap_or_default())),
        })
        .collect()
    }

    /// The entry that a document is, unless it has expired.
    fn live(&self, id: &str, document: &str, now: Timestamp) -> Result<Option<Entry>> {
        let (held, entry) = entry(id, document)?;
        if held.is_expired(now) {
            self.shared().expiring().note(id.to_owned(), &held);
            return Ok(None);
        }
        Ok(Some(entry))
    }

    pub(crate) async fn page(&self, scan: &Scan) -> Result<Page> {
        let range = scan.remaining();
        let descending = scan.order == Order::Descending;
        let mut limit = scan.limit.min(DOCUMENTS_MAX);
        let (mut low, mut high) = id_bounds(&range);
        while low < high {
            // Descending, CouchDB begins with the higher bound itself, which does not belong to the range.
            let fetched = limit + usize::from(descending);
            // Also for keys alone: the document says whether the entry has expired.
            let query = ByRange {
                startkey: if descending { &high } else { &low },
                endkey: if descending { &low } else { &high },
                // The lower bound belongs to the range, the higher one does not.
                inclusive_end: descending,
                descending,
                limit: fetched,
                include_docs: true,
                conflicts: false,
            };
            let client = &self.shared().client;
            let response = match client.ask(&ALL_DOCS, &query).await {
                Err(error) if is_too_large(&error) && limit > 1 => {
                    limit /= 2;
                    continue;
                }
                response => response?,
            };
            if response.status != StatusCode::OK {
                return Err(client.refused(&response));
            }
            let found: Rows<'_> = read("_all_docs", &response)?;
            let now = self.shared().clock.now();
            let mut page = Page::default();
            let (mut last, mut last_id) = (None, None);
            let ids = found.rows.iter().filter_map(|row| Some((row.id.as_deref()?, row)));
            for (id, row) in ids.filter(|(id, _)| *id < high.as_str()).take(limit) {
                last_id = Some(id);
                let Some(key) = key_of(id) else { continue };
                // A document that was deleted while it was read has none.
                if let (Some(document), true) = (row.document(), range.contains(&key))
                    && let Some(entry) = self.live(id, document, now)?
                {
                    let entry = (scan.want == Want::Entries).then_some(entry);
                    page.rows.push(Row { key: key.clone(), entry });
                }
                last = Some(key);
            }
            if found.rows.len() < fetched {
                return Ok(page);
            }
            if let Some(last) = last {
                page.next = Some(Cursor::after_key(&last));
                return Ok(page);
            }
            // A whole page of ids that no key has: on from the last one.
            match last_id.map(str::to_owned) {
                Some(id) if descending => high = id,
                Some(id) => low = format!("{id}\0"),
                None => break,
            }
        }
        Ok(Page::default())
    }

    /// How many entries there are, expired ones that still occupy space included.
    pub(crate) async fn count(&self) -> Result<u64> {
        let (mut low, high) = id_bounds(&KeyRange::all());
        let mut entries = 0;
        loop {
            let query = ByRange {
                startkey: &low,
                endkey: &high,
                inclusive_end: false,
                descending: false,
                limit: IDS_MAX,
                include_docs: false,
                conflicts: false,
            };
            let client = &self.shared().client;
            let response = client.ask(&ALL_DOCS, &query).await?;
            if response.status != StatusCode::OK {
                return Err(client.refused(&response));
            }
            let found: Rows<'_> = read("_all_docs", &response)?;
            let ids = found.rows.iter().filter_map(|row| row.id.as_deref());
            entries += ids.filter(|id| key_of(id).is_some()).count() as u64;
            match found.rows.last().and_then(|row| row.id.as_deref()) {
                Some(id) if found.rows.len() == IDS_MAX => low = format!("{id}\0"),
                _ => return Ok(entries),
            }
        }
    }
}
