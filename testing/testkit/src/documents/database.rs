//! The adapter under test, with what every behaviour needs to try it.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use keyward_engine::{
    Document, DocumentLimits, DocumentList, DocumentRow, Documents, Error, Json, Swapped,
};

use super::{DocumentsPlace, Meaning};
use crate::Test;

/// A database of documents under test, at a place of its own.
pub struct Database {
    // Declared before the place, so that the client is closed before its place is removed.
    pub(super) documents: Arc<dyn Documents>,
    pub(super) test: Test,
    place: Box<dyn DocumentsPlace>,
}

/// How many documents are written at a time.
const WRITERS: usize = 24;
/// How often a late list is looked at before it counts as wrong.
const LOOKS_MAX: usize = 10;

impl Database {
    pub(super) async fn open(test: Test, place: Box<dyn DocumentsPlace>) -> Self {
        let documents = place.open().await;
        Self { documents, test, place }
    }

    /// Creates the indexes.
    pub async fn prepare(&self) {
        self.documents.prepare(true).await.unwrap();
    }

    /// Another client of the same database.
    pub async fn another(&self) -> Arc<dyn Documents> {
        self.place.open().await
    }

    pub fn limits(&self) -> &DocumentLimits {
        self.documents.limits()
    }

    pub async fn get(&self, id: &str) -> Option<Document> {
        let found = self.documents.get_many(&[id.to_owned()]).await.unwrap();
        assert_eq!(found.len(), 1);
        found.into_iter().next().unwrap()
    }

    /// A document that must be there.
    pub async fn present(&self, id: &str) -> Document {
        let document = self.get(id).await.unwrap_or_else(|| panic!("{id:?} should be there"));
        assert_eq!(document.id, id);
        document
    }

    /// Creates a document, and gives it as it then reads.
    pub async fn create(&self, id: &str, fields: &Json) -> Document {
        let swapped = self.documents.put(id, fields, None).await;
        let swapped = swapped.unwrap_or_else(|error| panic!("{id:?} is refused: {error}"));
        assert!(is_applied(&swapped), "{id:?}");
        let document = self.present(id).await;
        assert_same(&document.fields, fields);
        document
    }

    pub async fn put(&self, id: &str, fields: &Json, replaced: Option<&Document>) -> Swapped {
        self.documents.put(id, fields, replaced).await.unwrap()
    }

    /// Tries to create a document. If it is refused, there must be none.
    pub async fn try_create(&self, id: &str, fields: &Json) -> Result<Document, Error> {
        match self.documents.put(id, fields, None).await {
            Ok(swapped) => {
                assert!(is_applied(&swapped), "{id:?}");
                let document = self.present(id).await;
                assert_same(&document.fields, fields);
                Ok(document)
            }
            Err(error) => {
                assert_eq!(self.get(id).await, None, "{id:?} was refused, and is there");
                Err(error)
            }
        }
    }

    /// Creates many documents, several at a time.
    pub async fn fill(&self, all: Vec<(String, Json)>) {
        let created = stream::iter(all).map(async |(id, fields)| {
            let swapped = self.documents.put(&id, &fields, None).await.unwrap();
            assert!(is_applied(&swapped), "{id:?}");
        });
        created.buffer_unordered(WRITERS).collect::<()>().await;
    }

    /// All rows of a list, page by page, each once.
    pub async fn rows(&self, list: DocumentList) -> Vec<DocumentRow> {
        let limit = list.limit.min(self.limits().list_rows_max);
        let mut list = DocumentList { limit, ..list };
        let (mut rows, mut ids) = (Vec::<DocumentRow>::new(), BTreeSet::new());
        loop {
            let page = self.documents.list(&list).await.unwrap();
            assert!(page.rows.len() <= list.limit, "{} rows of {}", page.rows.len(), list.limit);
            for row in &page.rows {
                assert!(ids.insert(row.id.clone()), "{:?} is listed twice", row.id);
                assert_eq!(row.document.is_some(), list.with_documents);
                if let Some(group) = &list.group {
                    assert_eq!(row.group, *group, "{:?}", row.id);
                }
            }
            rows.extend(page.rows);
            match page.next {
                Some(next) => list.after = Some(next),
                None => return rows,
            }
        }
    }

    /// Sees that a list has these documents and no other: at once, or when it has had time to follow.
    pub async fn assert_listed(&self, owner: &str, group: Option<&str>, ids: &[&str]) {
        let expected: BTreeSet<&str> = ids.iter().copied().collect();
        let lag = self.documents.list_lag();
        for look in 0.. {
            let rows = self.rows(list(owner, group)).await;
            let listed: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
            match lag {
                Some(lag) if listed != expected && look < LOOKS_MAX => self.place.pass(lag).await,
                _ => return assert_eq!(listed, expected, "{owner:?} {group:?}"),
            }
        }
    }

    /// Lets lists follow what was written.
    pub async fn settle(&self) {
        if let Some(lag) = self.documents.list_lag() {
            self.place.pass(lag).await;
        }
    }
}

pub fn is_applied(swapped: &Swapped) -> bool {
    matches!(swapped, Swapped::Applied { .. })
}

/// The list of an owner, in pages as large as there are, without documents.
pub fn list(owner: &str, group: Option<&str>) -> DocumentList {
    DocumentList {
        owner: owner.to_owned(),
        group: group.map(str::to_owned),
        with_documents: false,
        after: None,
        limit: usize::MAX,
    }
}

pub fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

/// The fields of an entry's document.
pub fn entry(owner: &str, group: &str, value: &str) -> Json {
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let (owner, group) = (quoted(owner), quoted(group));
    json(&format!(
        r#"{{"userId":{owner},"namespace":{group},"key":"k","value":{value},"createdAt":"2026-02-05T10:00:00Z","updatedAt":"2026-02-05T10:00:00Z"}}"#
    ))
}

/// Sees that what came back means what was given.
pub fn assert_same(found: &Json, given: &Json) {
    let (found, given) = (Meaning::of(found.as_str()), Meaning::of(given.as_str()));
    assert!(found == given, "{}\ncame back as\n{}", given.to_json(), found.to_json());
}
