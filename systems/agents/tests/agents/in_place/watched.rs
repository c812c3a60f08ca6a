//! Documents whose reads a test sees, and before whose writes another program counts accesses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Consistency, Document, DocumentLimits, DocumentList, DocumentPage, Documents, Json,
    Result, Swapped,
};
use keyward_testkit::Meaning;

/// The documents of a database, whose calls are watched.
pub struct Watched {
    documents: Arc<dyn Documents>,
    /// Whether another program counts an access before every second put.
    counts: bool,
    puts: AtomicU64,
    counted: AtomicU64,
    /// How many bytes each read by id gave.
    read_bytes: Mutex<Vec<usize>>,
}

impl Watched {
    pub fn new(documents: Arc<dyn Documents>) -> Arc<Self> {
        Arc::new(Self::over(documents, false))
    }

    /// Documents in which another program counts an access before the first put, the third and so on.
    pub fn counting(documents: Arc<dyn Documents>) -> Arc<Self> {
        Arc::new(Self::over(documents, true))
    }

    fn over(documents: Arc<dyn Documents>, counts: bool) -> Self {
        let (puts, counted, read_bytes) = Default::default();
        Self { documents, counts, puts, counted, read_bytes }
    }

    /// How many accesses the other program has counted.
    pub fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// How many bytes each read by id gave since this was asked last.
    pub fn take_read_bytes(&self) -> Vec<usize> {
        std::mem::take(&mut self.read_bytes.lock().unwrap())
    }

    async fn count(&self, id: &str) {
        let found = self.documents.get_many(&[id.to_owned()]).await.unwrap().remove(0);
        let document = found.unwrap();
        let Meaning::Object(mut members) = Meaning::of(document.fields.as_str()) else {
            panic!("{id} is no object")
        };
        let count: u64 = members["accessCount"].to_json().parse().unwrap();
        members.insert("accessCount".to_owned(), Meaning::of(&(count + 1).to_string()));
        let fields = Json::parse(Meaning::Object(members).to_json()).unwrap();
        let swapped = self.documents.put(id, &fields, Some(&document)).await.unwrap();
        assert!(matches!(swapped, Swapped::Applied { .. }));
        self.counted.fetch_add(1, Ordering::Relaxed);
    }
}

impl Documents for Watched {
    fn limits(&self) -> &DocumentLimits {
        self.documents.limits()
    }

    fn get_many<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Document>>>> {
        Box::pin(async move {
            let found = self.documents.get_many(ids).await?;
            let bytes = found.iter().flatten().map(|document| document.fields.len()).sum();
            self.read_bytes.lock().unwrap().push(bytes);
            Ok(found)
        })
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        fields: &'a Json,
        replaced: Option<&'a Document>,
    ) -> BoxFuture<'a, Result<Swapped>> {
        Box::pin(async move {
            if self.counts && self.puts.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                self.count(id).await;
            }
            self.documents.put(id, fields, replaced).await
        })
    }

    fn delete<'a>(&'a self, removed: &'a Document) -> BoxFuture<'a, Result<Swapped>> {
        self.documents.delete(removed)
    }

    fn list<'a>(&'a self, list: &'a DocumentList) -> BoxFuture<'a, Result<DocumentPage>> {
        self.documents.list(list)
    }

    fn compare(&self) -> bool {
        self.documents.compare()
    }

    fn consistency(&self) -> Consistency {
        self.documents.consistency()
    }

    fn list_lag(&self) -> Option<Duration> {
        self.documents.list_lag()
    }

    fn prepare(&self, create: bool) -> BoxFuture<'_, Result<Vec<String>>> {
        self.documents.prepare(create)
    }
}
