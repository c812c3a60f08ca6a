//! Looking for what a store cannot have written: above all, conflicts that replication left.

use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::StatusCode;
use keyward_key::KeyRange;
use serde::Deserialize;

use crate::client::read;
use crate::document::{entry, id_bounds, key_of};
use crate::engine::CouchDb;
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
}

#[derive(Debug, Deserialize)]
struct Revisions {
    #[serde(rename = "_rev")]
    rev: String,
    /// Revisions that replication brought and that lost to the one that is shown.
    #[serde(rename = "_conflicts", default)]
    conflicts: Vec<String>,
}

impl CouchDb {
    /// Reads everything in a range.
    pub(crate) async fn examine(&self, range: &KeyRange) -> Result<()> {
        let (mut low, high) = id_bounds(range);
        let (mut conflicts, mut damaged) = (Flaws::default(), Flaws::default());
        let mut limit = DOCUMENTS_MAX;
        while low < high {
            let query = ByRange {
                startkey: &low,
                endkey: &high,
                inclusive_end: false,
                descending: false,
                limit,
                include_docs: true,
                conflicts: true,
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
            for row in &found.rows {
                let (Some(id), Some(document)) = (row.id.as_deref(), row.document()) else {
                    continue;
                };
                match key_of(id) {
                    Some(key) if !range.contains(&key) => continue,
                    Some(_) => {}
                    None => damaged.add(format!("{id:?}: no key has this id")),
                }
                let revisions: Revisions = match serde_json::from_str(document) {
                    Ok(revisions) => revisions,
                    Err(error) => {
                        damaged.add(format!("{id:?}: {error}"));
                        continue;
                    }
                };
                if !revisions.conflicts.is_empty() {
                    let others = revisions.conflicts.join(", ");
                    conflicts.add(format!("{id:?} (shown: {}; hidden: {others})", revisions.rev));
                }
                if key_of(id).is_some()
                    && let Err(error) = entry(id, document)
                {
                    damaged.add(error.message().to_owned());
                }
            }
            match found.rows.last().and_then(|row| row.id.as_deref()) {
                Some(id) if found.rows.len() == limit => low = format!("{id}\0"),
                _ => break,
            }
        }
        self.judge(&conflicts, &damaged)
    }

    fn judge(&self, conflicts: &Flaws, damaged: &Flaws) -> Result<()> {
        let database = self.shared().client.shown();
        if damaged.count > 0 {
            let message = format!(
                "the CouchDB database {database} has {} that no entry is: {}",
                counted(damaged.count),
                damaged.named()
            );
            return Err(Error::new(ErrorKind::Corrupt, message).advise(
                "Ids that begin with \"keyward!\" belong to the store. Move these documents away, or restore them from a backup.",
            ));
        }
        if conflicts.count > 0 {
            let message = format!(
                "replication left {} with conflicting revisions in the CouchDB database {database}: {}",
                counted(conflicts.count),
                conflicts.named()
            );
            return Err(Error::new(ErrorKind::Corrupt, message).advise(
                "Compare the revisions (GET /DATABASE/ID?rev=REV), put the value that is right, and delete each hidden revision (DELETE /DATABASE/ID?rev=REV). Let no replication write into the database of a store.",
            ));
        }
        Ok(())
    }
}

fn counted(documents: usize) -> String {
    match documents {
        1 => "1 document".to_owned(),
        many => format!("{many} documents"),
    }
}
