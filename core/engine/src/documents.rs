//! Databases of JSON documents that other programs write too.
//!
//! An [`Engine`](crate::Engine) owns the layout of what it stores. Some applications have a layout
//! of their own, with one document per entry and fields that other programs read. [`Documents`] is
//! what an adapter offers for those: read, compare and swap, and list by the application's index.
//! It is as dumb as an engine; what the fields mean is decided above it.

use std::sync::Arc;
use std::time::Duration;

use crate::{BoxFuture, Consistency, Cursor, Json, Result};

/// A database of JSON documents, as an adapter presents it.
pub trait Documents: Send + Sync + 'static {
    /// How large things may be, and how the database is called.
    fn limits(&self) -> &DocumentLimits;

    /// The documents with these ids, in their order.
    fn get_many<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Document>>>>;

    /// Stores `fields` under an id if the document there is still `replaced`, or if there is none and
    /// nothing is replaced. A value that the database cannot hold exactly is
    /// [`Invalid`](crate::ErrorKind::Invalid), and one that is too large
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded); nothing is rounded.
    fn put<'a>(
        &'a self,
        id: &'a str,
        fields: &'a Json,
        replaced: Option<&'a Document>,
    ) -> BoxFuture<'a, Result<Swapped>>;

    /// Deletes a document if it is still `removed`.
    fn delete<'a>(&'a self, removed: &'a Document) -> BoxFuture<'a, Result<Swapped>>;

    /// One page of the documents of an owner, found by the database's own index, in any order.
    fn list<'a>(&'a self, list: &'a DocumentList) -> BoxFuture<'a, Result<DocumentPage>>;

    /// Whether of several swaps of one state at most one is applied. Where not, the last writer wins,
    /// as in a database that keeps several copies of a document.
    fn compare(&self) -> bool {
        true
    }

    /// Whether a read by id sees every write acknowledged before it.
    fn consistency(&self) -> Consistency {
        Consistency::Strong
    }

    /// How late [`Documents::list`] may follow the documents; `None` if it shows every acknowledged
    /// write.
    fn list_lag(&self) -> Option<Duration> {
        None
    }

    /// Has the database look for what is wrong with its documents as far as it stands for them, such as conflicts of
    /// replication: an error of the kind [`Corrupt`](crate::ErrorKind::Corrupt). Reads everything.
    fn verify(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// The indexes that [`Documents::list`] needs and the database does not have: each as a sentence
    /// that says what would be created. With `create`, they are created and ready afterwards.
    fn prepare(&self, create: bool) -> BoxFuture<'_, Result<Vec<String>>>;
}

/// How large documents may be, and the name of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// The engine's name, as in its URLs.
    pub engine: &'static str,
    /// An id, in bytes.
    pub id_bytes_max: usize,
    /// A document with all its fields, as JSON text.
    pub document_bytes_max: usize,
    /// Ids in one read.
    pub get_ids_max: usize,
    /// Documents in one page of a list.
    pub list_rows_max: usize,
}

/// A document as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub id: String,
    /// Its fields as a JSON object, without the id and without what the database itself adds.
    pub fields: Json,
    /// The database's own mark of this state of the document, such as a CouchDB `_rev`. Adapters that
    /// compare the fields themselves leave it empty.
    pub revision: Arc<str>,
}

/// How a compare-and-swap of a document ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the document may have been changed by somebody else"]
pub enum Swapped {
    /// It was applied. The revision is that of the new document; empty for a delete.
    Applied {
        /// See [`Document::revision`].
        revision: Arc<str>,
    },
    /// The document is not what was expected; nothing was changed.
    Conflicted,
}

/// Which documents to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentList {
    /// The value of the owner field (`userId`).
    pub owner: String,
    /// The value of the group field (`namespace`); documents of every group if it is left out.
    pub group: Option<String>,
    /// Whether to read whole documents, or only ids and groups.
    pub with_documents: bool,
    /// Where an earlier page ended.
    pub after: Option<Cursor>,
    /// The page size.
    pub limit: usize,
}

/// One row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// The document's id.
    pub id: String,
    /// The value of the group field.
    pub group: String,
    /// The document, if documents were asked for.
    pub document: Option<Document>,
}

/// One page of a list. It may be short, even empty, and still have a next one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentPage {
    /// The rows, each document once.
    pub rows: Vec<DocumentRow>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}
