//! Looking for what a store cannot have written: above all, conflicts that replication left.

use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::{Response, StatusCode};
use keyward_key::KeyRange;
use serde::Deserialize;

use crate::client::{Client, read};
use crate::document::{entry, id_bounds, key_of};
use crate::engine::CouchDb;
use crate::error::unreadable;
use crate::read::{ALL_DOCS, ByRange, DOCUMENTS_MAX, Rows, is_too_large};

/// How many documents a message names.
const NAMED_MAX: usize = 10;

/// What is wrong with documents: how many, and the first of them in words.
#[derive(Default)]
struct Flaws {
    count: usize,
    named: Vec<String>,
}

impl Flaws {
    fn add(&mut self, described: String) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(described);
        }
    }

    fn named(&self) -> String {
        let rest = self.count - self.named.len();
        let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        format!("{}{more}", self.named.join("; "))
    }

    /// Adds a document if it has hidden revisions.
    fn look_at(&mut self, id: &str, document: &str) -> serde_json::Result<()> {
        let Revisions { rev, conflicts } = serde_json::from_str(document)?;
        if !conflicts.is_empty() {
            let others = conflicts.join(", ");
            self.add(format!("{id:?} (shown: {rev}; hidden: {others})"));
        }
        Ok(())
    }

    /// The error of conflicts, if there are any.
    fn judge(&self, client: &Client, last_advice: &str) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let message = format!(
            "replication left {} with conflicting revisions in the CouchDB database {}: {}",
            counted(self.count),
            client.shown(),
            self.named()
        );
        Err(Error::new(ErrorKind::Corrupt, message).advise(format!(
            "Compare the revisions (GET /DATABASE/ID?rev=REV), put the value that is right, and delete each hidden revision (DELETE /DATABASE/ID?rev=REV). {last_advice}"
        )))
    }
}

#[derive(Debug, Deserialize)]
struct Revisions {
    #[serde(rename = "_rev")]
    rev: String,
    /// Revisions that replication brought and that lost to the one that is shown.
    #[serde(rename = "_conflicts", default)]
    conflicts: Vec<String>,
}

/// Documents of a range of ids, with their hidden revisions, a page at a time.
struct Pages<'c> {
    client: &'c Client,
    low: String,
    high: String,
    limit: usize,
}

impl<'c> Pages<'c> {
    fn new(client: &'c Client, low: String, high: String) -> Self {
        Self { client, low, high, limit: DOCUMENTS_MAX }
    }

    async fn next(&mut self) -> Result<Option<Response>> {
        while self.low < self.high {
            let query = ByRange {
                startkey: &self.low,
                endkey: &self.high,
                inclusive_end: false,
                descending: false,
                limit: self.limit,
                include_docs: true,
                conflicts: true,
            };
            let response = match self.client.ask(&ALL_DOCS, &query).await {
                Err(error) if is_too_large(&error) && self.limit > 1 => {
                    self.limit /= 2;
                    continue;
                }
                response => response?,
            };
            if response.status != StatusCode::OK {
                return Err(self.client.refused(&response));
            }
            let found: Rows<'_> = read("_all_docs", &response)?;
            self.low = match found.rows.last().and_then(|row| row.id.as_deref()) {
                Some(id) if found.rows.len() == self.limit => format!("{id}\0"),
                _ => self.high.clone(),
            };
            return Ok(Some(response));
        }
        Ok(None)
    }
}

impl CouchDb {
    /// Reads everything in a range.
    pub(crate) async fn examine(&self, range: &KeyRange) -> Result<()> {
        let (low, high) = id_bounds(range);
        let (mut conflicts, mut damaged) = (Flaws::default(), Flaws::default());
        let client = &self.shared().client;
        let mut pages = Pages::new(client, low, high);
        while let Some(response) = pages.next().await? {
            let found: Rows<'_> = read("_all_docs", &response)?;
            for row in &found.rows {
                let (Some(id), Some(document)) = (row.id.as_deref(), row.document()) else {
                    continue;
                };
                match key_of(id) {
                    Some(key) if !range.contains(&key) => continue,
                    Some(_) => {}
                    None => damaged.add(format!("{id:?}: no key has this id")),
                }
                if let Err(error) = conflicts.look_at(id, document) {
                    damaged.add(format!("{id:?}: {error}"));
                } else if key_of(id).is_some()
                    && let Err(error) = entry(id, document)
                {
                    damaged.add(error.message().to_owned());
                }
            }
        }
        if damaged.count > 0 {
            let message = format!(
                "the CouchDB database {} has {} that no entry is: {}",
                client.shown(),
                counted(damaged.count),
                damaged.named()
            );
            return Err(Error::new(ErrorKind::Corrupt, message).advise(
                "Ids that begin with \"keyward!\" belong to the store. Move these documents away, or restore them from a backup.",
            ));
        }
        conflicts.judge(client, "Let no replication write into the database of a store.")
    }
}

/// Reads all documents of a database that another program lays out, and reports conflicts.
pub(crate) async fn examine_documents(client: &Client) -> Result<()> {
    let mut conflicts = Flaws::default();
    let mut pages = Pages::new(client, String::new(), char::MAX.to_string());
    while let Some(response) = pages.next().await? {
        let found: Rows<'_> = read("_all_docs", &response)?;
        for row in &found.rows {
            if let (Some(id), Some(document)) = (row.id.as_deref(), row.document()) {
                conflicts.look_at(id, document).map_err(|error| unreadable("_all_docs", error))?;
            }
        }
    }
    conflicts.judge(client, "Until then, programs read one revision and do not see the others.")
}

fn counted(documents: usize) -> String {
    match documents {
        1 => "1 document".to_owned(),
        many => format!("{many} documents"),
    }
}
