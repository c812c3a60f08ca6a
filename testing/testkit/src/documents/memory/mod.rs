//! The reference: documents in memory.

mod data;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Clock, Cursor, Document, DocumentLimits, DocumentList, DocumentPage, DocumentRow,
    Documents, Error, ErrorKind, Json, Result, Swapped,
};

use super::meaning::{Decimal, Meaning};
use crate::TestClock;

use data::Data;

/// How many digits a number has at most. Like the databases that it stands for, the reference holds
/// numbers up to a bound, exactly or not at all.
const DIGITS_MAX: usize = 38;
/// How many zeros a number has at most after its digits, or before them.
const ZEROS_MAX: u64 = 125;
/// How many documents a page of a list has at most: few, so that lists take several.
const LIST_ROWS_MAX: usize = 500;

/// Documents in memory: what adapters of [`Documents`] must do. Clones share them.
///
/// As databases do, it keeps what JSON means and not how it was written: names come back in their order,
/// and `1.50` as `15e-1`. Lists come in the order of ids.
#[derive(Clone)]
pub struct MemoryDocuments {
    data: Arc<Mutex<Data>>,
    limits: DocumentLimits,
    compares: Compares,
    late: Option<(Duration, TestClock)>,
}

/// By what a document is recognised that is to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compares {
    /// A revision that never comes back.
    Revisions,
    /// All its fields.
    Fields,
}

/// How many calls were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DocumentCalls {
    /// Reads by id.
    pub gets: usize,
    /// Pages of lists.
    pub lists: usize,
    /// Puts, also those that conflicted.
    pub puts: usize,
    /// Deletes, likewise.
    pub deletes: usize,
}

impl DocumentCalls {
    /// All calls.
    pub fn all(&self) -> usize {
        self.gets + self.lists + self.puts + self.deletes
    }
}

impl MemoryDocuments {
    /// No documents, and no indexes yet. Documents are compared by revisions.
    pub fn new() -> Self {
        let limits = DocumentLimits {
            engine: "memory-documents",
            id_bytes_max: 1_500,
            document_bytes_max: 2 << 20,
            get_ids_max: 100,
            list_rows_max: LIST_ROWS_MAX,
        };
        Self { data: Arc::default(), limits, compares: Compares::Revisions, late: None }
    }

    /// The same database, with documents compared by their fields.
    #[must_use]
    pub fn comparing_fields(mut self) -> Self {
        self.compares = Compares::Fields;
        self
    }

    /// The same database, with lists that follow the documents this late, by a clock.
    #[must_use]
    pub fn with_late_lists(mut self, lag: Duration, clock: TestClock) -> Self {
        self.late = Some((lag, clock));
        self
    }

    /// The same database with other limits.
    #[must_use]
    pub fn with_limits(mut self, change: impl FnOnce(&mut DocumentLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// How many calls were made since this was asked last.
    pub fn take_calls(&self) -> DocumentCalls {
        std::mem::take(&mut self.data().calls)
    }

    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_same(&self, found: &Document, expected: &Document) -> bool {
        match self.compares {
            Compares::Revisions => found.revision == expected.revision,
            Compares::Fields => found.fields == expected.fields,
        }
    }

    /// Puts or deletes, if the document there is the expected one.
    fn swap(&self, id: &str, expected: Option<&Document>, fields: Option<Json>) -> Swapped {
        let mut data = self.data();
        let holds = match (data.get(id), expected) {
            (None, None) => true,
            (Some(found), Some(expected)) => self.is_same(found, expected),
            _ => false,
        };
        if !holds {
            return Swapped::Conflicted;
        }
        let revision = match self.compares {
            Compares::Revisions => data.next_revision(),
            Compares::Fields => "".into(),
        };
        let document =
            fields.map(|fields| Document { id: id.to_owned(), fields, revision: revision.clone() });
        let is_put = document.is_some();
        let now = self.late.as_ref().map(|(_, clock)| clock.now());
        data.set(id, document, now);
        Swapped::Applied { revision: if is_put { revision } else { "".into() } }
    }

    fn page(&self, list: &DocumentList) -> Result<DocumentPage> {
        let mut data = self.data();
        data.calls.lists += 1;
        if !data.prepared {
            let message = "the database has no index by userId and namespace";
            return Err(Error::new(ErrorKind::Misplaced, message));
        }
        if let Some((lag, clock)) = &self.late {
            data.follow(clock.now(), *lag);
        }
        let limit = list.limit.clamp(1, self.limits.list_rows_max);
        let after = list.after.as_ref().map(|cursor| String::from_utf8_lossy(cursor.as_bytes()));
        let mut rows = data.listed(list, after.as_deref());
        let some: Vec<DocumentRow> = rows.by_ref().take(limit).collect();
        let more = rows.next().is_some();
        let last = some.last().filter(|_| more);
        let next = last.map(|row| Cursor::new(row.id.as_bytes().to_vec()));
        Ok(DocumentPage { rows: some, next })
    }

    /// What the database holds of some fields, or why it refuses them.
    fn held(&self, fields: &Json) -> Result<Json> {
        let bytes_max = self.limits.document_bytes_max;
        if fields.len() > bytes_max {
            let message =
                format!("the document is {} bytes large; at most {bytes_max} fit", fields.len());
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        let meaning = Meaning::of(fields.as_str());
        check_numbers(&meaning)?;
        Ok(Json::from_stored(meaning.to_json()))
    }
}

fn check_numbers(meaning: &Meaning) -> Result<()> {
    match meaning {
        Meaning::Number(Decimal { digits, power, .. }) => {
            let exponent = power.unsigned_abs();
            if digits.len() <= DIGITS_MAX && exponent <= ZEROS_MAX {
                return Ok(());
            }
            let message =
                format!("the number {digits}e{power} has more than {DIGITS_MAX} digits or zeros");
            Err(Error::new(ErrorKind::Invalid, message))
        }
        Meaning::Array(elements) => elements.iter().try_for_each(check_numbers),
        Meaning::Object(members) => members.values().try_for_each(check_numbers),
        Meaning::Word(_) | Meaning::Text(_) => Ok(()),
    }
}

impl Default for MemoryDocuments {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDocuments").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Documents for MemoryDocuments {
    fn limits(&self) -> &DocumentLimits {
        &self.limits
    }

    fn get_many<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Document>>>> {
        Box::pin(async move {
            let mut data = self.data();
            data.calls.gets += 1;
            assert!(ids.len() <= self.limits.get_ids_max, "{} ids in one read", ids.len());
            Ok(ids.iter().map(|id| data.get(id).cloned()).collect())
        })
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        fields: &'a Json,
        replaced: Option<&'a Document>,
    ) -> BoxFuture<'a, Result<Swapped>> {
        Box::pin(async move {
            self.data().calls.puts += 1;
            let id_bytes_max = self.limits.id_bytes_max;
            if id.len() > id_bytes_max {
                let bytes = id.len();
                let message = format!("the id is {bytes} bytes long; at most {id_bytes_max} fit");
                return Err(Error::new(ErrorKind::LimitExceeded, message));
            }
            Ok(self.swap(id, replaced, Some(self.held(fields)?)))
        })
    }

    fn delete<'a>(&'a self, removed: &'a Document) -> BoxFuture<'a, Result<Swapped>> {
        Box::pin(async move {
            self.data().calls.deletes += 1;
            Ok(self.swap(&removed.id, Some(removed), None))
        })
    }

    fn list<'a>(&'a self, list: &'a DocumentList) -> BoxFuture<'a, Result<DocumentPage>> {
        Box::pin(async move { self.page(list) })
    }

    fn list_lag(&self) -> Option<Duration> {
        self.late.as_ref().map(|(lag, _)| *lag)
    }

    fn prepare(&self, create: bool) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async move {
            let mut data = self.data();
            let missing = (!data.prepared)
                .then(|| "the index by userId and namespace would be created".to_owned());
            data.prepared |= create;
            Ok(missing.into_iter().collect())
        })
    }
}
