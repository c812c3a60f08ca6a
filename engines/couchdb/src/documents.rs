use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Consistency, Document, DocumentLimits, DocumentList, DocumentPage, Documents, Error,
    ErrorKind, Json, Result, Swapped,
};
use keyward_http::{Effect, Method, Request, Response, StatusCode};
use serde::Deserialize;

use crate::Options;
use crate::client::{Client, read};
use crate::design::prepare;
use crate::engine::{LAG, database};
use crate::error::{is_absent, unreadable};
use crate::fields::{document, to_send};
use crate::list::{LIST_ROWS_MAX, list};
use crate::number::{inexact, means_the_same};
use crate::read::{ALL_DOCS, ByIds, DOCUMENTS_MAX, Rows, is_too_large};
use crate::verify::examine_documents;

/// CouchDB's default for the largest document. A server may have another one.
const DOCUMENT_BYTES_MAX: usize = 8_000_000;
/// Three bytes of the path of a request for each, of the 8 KiB that CouchDB reads.
const ID_BYTES_MAX: usize = 2_000;

/// A database of CouchDB whose documents another program lays out. Clones share its connections.
///
/// In a cluster that keeps several copies of a document, two swaps of one revision can both be acknowledged. So
/// [`Documents::compare`] is false there, and reads may be late.
#[derive(Debug, Clone)]
pub struct CouchDbDocuments {
    client: Client,
    limits: DocumentLimits,
    has_copies: bool,
    /// Whether there was no database yet that could say how many copies it keeps.
    is_unknown: Arc<AtomicBool>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    rev: String,
}

/// The last revision of a document, with those before it.
#[derive(Debug, Deserialize)]
struct Ancestry {
    #[serde(rename = "_rev")]
    rev: String,
    #[serde(rename = "_revisions")]
    revisions: Revisions,
    #[serde(rename = "_deleted", default)]
    deleted: bool,
}

#[derive(Debug, Deserialize)]
struct Revisions {
    start: u64,
    ids: Vec<String>,
}

impl Ancestry {
    /// Whether it directly follows a revision.
    fn follows(&self, base: &str) -> bool {
        let parent = self.revisions.ids.get(1);
        let parent = parent.map(|id| format!("{}-{id}", self.revisions.start.saturating_sub(1)));
        parent.as_deref() == Some(base)
    }
}

impl CouchDbDocuments {
    /// Opens a database. Nothing is created: [`Documents::prepare`] tells what is missing, the database itself
    /// included.
    pub async fn open(options: Options) -> Result<Self> {
        let client = Client::new(&options)?;
        // Now rather than at the first read: whether there is a server, and it takes the credentials.
        let found = database(&client).await?;
        let has_copies = found.as_ref().is_some_and(|found| found.has_copies());
        let is_unknown = Arc::new(AtomicBool::new(found.is_none()));
        let limits = DocumentLimits {
            engine: "couchdb",
            id_bytes_max: ID_BYTES_MAX,
            document_bytes_max: DOCUMENT_BYTES_MAX,
            get_ids_max: DOCUMENTS_MAX,
            list_rows_max: LIST_ROWS_MAX,
        };
        Ok(Self { client, limits, has_copies, is_unknown })
    }

    /// Refuses writes into a database that was created since it was opened and keeps several copies: whoever opened it
    /// takes swaps for certain.
    async fn check_copies(&self) -> Result<()> {
        if !self.is_unknown.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(found) = database(&self.client).await? else { return Ok(()) };
        if found.has_copies() {
            let message = format!(
                "the CouchDB database {} was created meanwhile, on a cluster that keeps several copies of a document",
                self.client.shown()
            );
            return Err(Error::new(ErrorKind::Misplaced, message)
                .advise("Open the store again: it has no compare-and-swap there."));
        }
        self.is_unknown.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn read_many(&self, ids: &[String]) -> Result<Vec<Option<Document>>> {
        let query = ByIds { keys: ids, include_docs: true };
        let response = match self.client.ask(&ALL_DOCS, &query).await {
            Err(error) if is_too_large(&error) && ids.len() > 1 => {
                let (first, rest) = ids.split_at(ids.len() / 2);
                let mut documents = Box::pin(self.read_many(first)).await?;
                documents.extend(Box::pin(self.read_many(rest)).await?);
                return Ok(documents);
            }
            response => response?,
        };
        if response.status != StatusCode::OK {
            return Err(refused(&self.client, &response));
        }
        let found: Rows<'_> = read("_all_docs", &response)?;
        if found.rows.len() != ids.len() {
            let counts = format!("{} rows for {} ids", found.rows.len(), ids.len());
            return Err(unreadable("_all_docs", counts));
        }
        let rows = found.rows.iter().zip(ids);
        rows.map(|(row, id)| match row.document() {
            Some(text) => document(id, text).map(Some),
            None if row.error.as_deref().is_none_or(|error| error == "not_found") => Ok(None),
            None => Err(unreadable("_all_docs", row.error.as_deref().unwrap_or_default())),
        })
        .collect()
    }

    async fn store(&self, id: &str, fields: &Json, base: Option<&str>) -> Result<Swapped> {
        self.check_id(id)?;
        if let Some(number) = inexact(fields.as_str()) {
            let shown: String = number.chars().take(60).collect();
            let message = format!(
                "CouchDB cannot hold the number {shown} exactly: it keeps numbers with a fraction or an exponent in 64 bits"
            );
            return Err(Error::new(ErrorKind::Invalid, message)
                .advise("Write it with at most 15 digits, or as a string."));
        }
        let body = to_send(fields, base)?;
        if body.len() > DOCUMENT_BYTES_MAX {
            let message = format!(
                "the document {id:?} is {} bytes; CouchDB takes at most {DOCUMENT_BYTES_MAX}",
                body.len()
            );
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        let request = Request::new(Method::PUT, self.client.url(&[id], ""), effect(base));
        self.swap(request.json(body), id, base, Some(fields)).await
    }

    async fn remove(&self, removed: &Document) -> Result<Swapped> {
        self.check_id(&removed.id)?;
        let rev: String =
            removed.revision.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let url = self.client.url(&[&removed.id], &format!("rev={rev}"));
        let base = Some(&*removed.revision);
        let request = Request::new(Method::DELETE, url, effect(base));
        self.swap(request, &removed.id, base, None).await
    }

    /// Sends a write, and finds out what became of it. `fields` are those that are there afterwards.
    async fn swap(
        &self,
        request: Request,
        id: &str,
        base: Option<&str>,
        fields: Option<&Json>,
    ) -> Result<Swapped> {
        self.check_copies().await?;
        let unknown = match self.client.send(request).await {
            Ok(response) => match response.status {
                StatusCode::CREATED | StatusCode::OK => return applied(&response, fields),
                StatusCode::ACCEPTED => unknown("it is in fewer copies than CouchDB's quorum"),
                // It is deleted already.
                StatusCode::NOT_FOUND if is_absent(&response) && !response.resent => {
                    return Ok(Swapped::Conflicted);
                }
                StatusCode::CONFLICT if !response.resent => return Ok(Swapped::Conflicted),
                _ if response.resent => {
                    unknown("an answer was lost, and the next one was a refusal")
                }
                _ => return Err(refused(&self.client, &response)),
            },
            Err(error) if base.is_some() || error.kind() != ErrorKind::OutcomeUnknown => {
                return Err(error);
            }
            Err(error) => error,
        };
        match self.settled(id, base, fields).await {
            Ok(Some(swapped)) => Ok(swapped),
            Ok(None) | Err(_) => Err(unknown),
        }
    }

    /// What became of a write whose answer was lost, if the document tells.
    ///
    /// CouchDB computes a revision from the one before it and the content. So the same content on the same revision is
    /// the same write, whoever sent it. A new document tells nothing: somebody else may have created an equal one.
    async fn settled(
        &self,
        id: &str,
        base: Option<&str>,
        fields: Option<&Json>,
    ) -> Result<Option<Swapped>> {
        let Some(base) = base else { return Ok(None) };
        let url = self.client.url(&[id], "open_revs=all&revs=true");
        let response = self.client.send(Request::get(url)).await?;
        if response.status != StatusCode::OK {
            return Ok(None);
        }
        #[derive(Deserialize)]
        struct Leaf<'r> {
            #[serde(borrow)]
            ok: Option<&'r serde_json::value::RawValue>,
        }
        let leaves: Vec<Leaf<'_>> = read("open_revs", &response)?;
        for leaf in leaves.iter().filter_map(|leaf| leaf.ok) {
            let ancestry: Ancestry =
                serde_json::from_str(leaf.get()).map_err(|error| unreadable("open_revs", error))?;
            let is_written = match fields {
                None => ancestry.deleted,
                Some(fields) => {
                    let read = document(id, leaf.get())?;
                    !ancestry.deleted && means_the_same(read.fields.as_str(), fields.as_str())
                }
            };
            if !ancestry.follows(base) {
                continue;
            }
            // Otherwise somebody else replaced that revision, so this write never will.
            return Ok(Some(match is_written {
                true => Swapped::Applied {
                    revision: if fields.is_some() { ancestry.rev.into() } else { "".into() },
                },
                false => Swapped::Conflicted,
            }));
        }
        Ok(None)
    }

    fn check_id(&self, id: &str) -> Result<()> {
        let message = if id.is_empty() || id.starts_with('_') || id == "." || id == ".." {
            format!("the document id {id:?} is none that CouchDB takes: it must not begin with _")
        } else if id.len() > ID_BYTES_MAX {
            let message =
                format!("the document id is {} bytes long; at most {ID_BYTES_MAX} fit", id.len());
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

/// With a revision to replace, whichever of several requests arrives first is carried out, and the others conflict.
fn effect(base: Option<&str>) -> Effect {
    if base.is_some() { Effect::WritesOnce } else { Effect::Writes }
}

/// How to get the database or the views that are missing.
pub(crate) const PREPARE: &str = "Run keyward agent prepare --plan to see what is missing, and --apply to create it; no documents are changed by it.";

/// The error of a response that says that nothing was done.
pub(crate) fn refused(client: &Client, response: &Response) -> Error {
    let error = client.refused(response);
    match error.kind() {
        ErrorKind::Misplaced => error.advise(PREPARE),
        _ => error,
    }
}

fn unknown(why: &str) -> Error {
    let message = format!("it is not known whether CouchDB carried out the write: {why}");
    Error::new(ErrorKind::OutcomeUnknown, message)
}

fn applied(response: &Response, fields: Option<&Json>) -> Result<Swapped> {
    if fields.is_none() {
        return Ok(Swapped::Applied { revision: Arc::from("") });
    }
    let answer: Answer = read("a write", response).map_err(|error| unknown(error.message()))?;
    Ok(Swapped::Applied { revision: answer.rev.into() })
}

impl Documents for CouchDbDocuments {
    fn limits(&self) -> &DocumentLimits {
        &self.limits
    }

    fn get_many<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Document>>>> {
        Box::pin(self.read_many(ids))
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        fields: &'a Json,
        replaced: Option<&'a Document>,
    ) -> BoxFuture<'a, Result<Swapped>> {
        Box::pin(self.store(id, fields, replaced.map(|document| &*document.revision)))
    }

    fn delete<'a>(&'a self, removed: &'a Document) -> BoxFuture<'a, Result<Swapped>> {
        Box::pin(self.remove(removed))
    }

    fn list<'a>(&'a self, query: &'a DocumentList) -> BoxFuture<'a, Result<DocumentPage>> {
        Box::pin(list(&self.client, query))
    }

    fn compare(&self) -> bool {
        !self.has_copies
    }

    fn consistency(&self) -> Consistency {
        match self.has_copies {
            true => Consistency::Eventual { lag: LAG },
            false => Consistency::Strong,
        }
    }

    fn list_lag(&self) -> Option<Duration> {
        self.has_copies.then_some(LAG)
    }

    fn verify(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(examine_documents(&self.client))
    }

    fn prepare(&self, create: bool) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(prepare(&self.client, create))
    }
}
