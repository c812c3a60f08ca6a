//! The documents themselves, and the index that lists are read from.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Document, DocumentList, DocumentRow};

use super::{DocumentCalls, Meaning};

#[derive(Debug, Default)]
pub(super) struct Data {
    documents: BTreeMap<String, Document>,
    /// What lists show: the documents as they were a while ago.
    index: BTreeMap<String, Indexed>,
    /// Changes that the index has not followed yet, each with its time.
    pending: VecDeque<(Timestamp, String, Option<Document>)>,
    revisions: u64,
    pub prepared: bool,
    pub calls: DocumentCalls,
}

#[derive(Debug)]
struct Indexed {
    owner: String,
    group: String,
    document: Document,
}

impl Indexed {
    fn of(document: Document) -> Option<Self> {
        let fields = Meaning::of(document.fields.as_str());
        let text = |name: &str| fields.member(name)?.text().map(str::to_owned);
        Some(Self { owner: text("userId")?, group: text("namespace")?, document })
    }
}

impl Data {
    pub fn get(&self, id: &str) -> Option<&Document> {
        self.documents.get(id)
    }

    pub fn next_revision(&mut self) -> Arc<str> {
        self.revisions += 1;
        self.revisions.to_string().into()
    }

    /// Sets or removes a document. With a time, the index follows later.
    pub fn set(&mut self, id: &str, document: Option<Document>, at: Option<Timestamp>) {
        match &document {
            Some(document) => drop(self.documents.insert(id.to_owned(), document.clone())),
            None => drop(self.documents.remove(id)),
        }
        match at {
            Some(at) => self.pending.push_back((at, id.to_owned(), document)),
            None => self.show(id, document),
        }
    }

    /// Lets the index follow what is older than the lag.
    pub fn follow(&mut self, now: Timestamp, lag: Duration) {
        while let Some((at, ..)) = self.pending.front() {
            if now.duration_since(*at).unsigned_abs() < lag {
                break;
            }
            if let Some((_, id, document)) = self.pending.pop_front() {
                self.show(&id, document);
            }
        }
    }

    fn show(&mut self, id: &str, document: Option<Document>) {
        match document.and_then(Indexed::of) {
            Some(indexed) => drop(self.index.insert(id.to_owned(), indexed)),
            None => drop(self.index.remove(id)),
        }
    }

    /// The rows of a list after an id, in the order of ids.
    pub fn listed<'d>(
        &'d self,
        list: &'d DocumentList,
        after: Option<&str>,
    ) -> impl Iterator<Item = DocumentRow> + use<'d> {
        let after = after.map_or(Bound::Unbounded, |id| Bound::Excluded(id.to_owned()));
        let rows = self.index.range((after, Bound::Unbounded));
        let rows = rows.filter(move |(_, indexed)| {
            indexed.owner == list.owner
                && list.group.as_ref().is_none_or(|group| *group == indexed.group)
        });
        rows.map(move |(id, indexed)| DocumentRow {
            id: id.clone(),
            group: indexed.group.clone(),
            document: list.with_documents.then(|| indexed.document.clone()),
        })
    }
}
