//! Databases of documents with agent data in them.

use std::sync::Arc;
use std::time::Duration;

use keyward_agents::{Actor, Agents, DocumentLayout, Namespace, Options, UserData};
use keyward_engine::{BoxFuture, Document, Documents, Json, Store, Swapped};
use keyward_testkit::{DocumentsPlace, Meaning, MemoryDocuments, TestClock};
use tokio::runtime::Builder;

/// Makes a named test of each function on each database. A function takes an [`InPlace`].
macro_rules! on_documents {
    ($($test:ident),+ $(,)?) => {
        on_documents!(@on by_revision, InMemory::by_revision(); $($test),+);
        on_documents!(@on by_fields, InMemory::by_fields(); $($test),+);
        on_documents!(@on with_late_lists, InMemory::with_late_lists(); $($test),+);
        on_documents!(@on couchdb, keyward_stores::Documents::new(Kind::CouchDb); $($test),+);
        on_documents!(@on dynamodb, keyward_stores::Documents::new(Kind::DynamoDb); $($test),+);
        on_documents!(@on firestore, keyward_stores::Documents::new(Kind::Firestore); $($test),+);
    };
    (@on $module:ident, $place:expr; $($test:ident),+) => {
        mod $module {
            #[allow(unused_imports, reason = "some places are named by a full path")]
            use {crate::in_place::place::InMemory, keyward_stores::Kind};

            $(
                #[test]
                fn $test() {
                    $crate::in_place::place::run($place, super::$test);
                }
            )+
        }
    };
}

/// Runs one test on a new database.
pub fn run<F: Future<Output = ()>>(place: impl DocumentsPlace, test: impl FnOnce(InPlace) -> F) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { test(InPlace::new(place, TestClock::new()).await).await });
}

/// A database of documents that is ready, and the clock of those who open it as agent data.
pub struct InPlace {
    place: Box<dyn DocumentsPlace>,
    clock: TestClock,
}

impl InPlace {
    /// Makes a new database ready.
    pub async fn new(place: impl DocumentsPlace, clock: TestClock) -> Self {
        let place = Self { place: Box::new(place), clock };
        place.documents().await.prepare(true).await.unwrap();
        place
    }

    /// The database's documents, by the adapter and without the layout. What a client that is not ours reads and
    /// writes is tested with the command, in `doors/cli/tests/cli`.
    pub async fn documents(&self) -> Arc<dyn Documents> {
        self.place.open().await
    }

    /// The agent data store, as another process would open it each time.
    pub async fn agents(&self) -> Agents {
        let layout = DocumentLayout::open(self.documents().await, self.clock.clone()).unwrap();
        open(layout, &self.clock)
    }

    /// Ada's namespace, as the agent `tester` reaches it in a process of its own.
    pub async fn namespace(&self, namespace: &str) -> Namespace {
        self.user("ada").await.use_namespace(namespace).unwrap()
    }

    /// What is a user's, as the agent `tester` reaches it in a process of its own.
    pub async fn user(&self, user: &str) -> UserData {
        self.agents().await.user(user, Actor::agent("tester"))
    }

    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    /// Lets lists follow what was written.
    pub async fn settle(&self) {
        if let Some(lag) = self.documents().await.list_lag() {
            self.place.pass(lag).await;
            self.clock.advance(lag);
        }
    }

    /// A document, as the adapter gives it.
    pub async fn document(&self, id: &str) -> Option<Document> {
        let found = self.documents().await.get_many(&[id.to_owned()]).await.unwrap();
        found.into_iter().next().unwrap()
    }

    /// What a document means that must be there.
    pub async fn meaning(&self, id: &str) -> Meaning {
        let document = self.document(id).await.unwrap_or_else(|| panic!("{id} should be there"));
        Meaning::of(document.fields.as_str())
    }

    /// Creates documents by the adapter.
    pub async fn load(&self, documents: &[(&str, &str)]) {
        let client = self.documents().await;
        for (id, fields) in documents {
            let fields = Json::parse((*fields).to_owned()).unwrap();
            let swapped = client.put(id, &fields, None).await.unwrap();
            assert!(matches!(swapped, Swapped::Applied { .. }), "{id}");
        }
        self.settle().await;
    }
}

pub fn open(layout: DocumentLayout, clock: &TestClock) -> Agents {
    Agents::alone(Store::new(layout), Options::default(), clock.clone()).unwrap()
}

/// The fields of a document that an agent wrote long ago.
pub fn entry(user: &str, namespace: &str, key: &str, value: &str) -> String {
    let [user, namespace, key] = [user, namespace, key].map(|text| serde_json::json!(text));
    format!(
        r#"{{"userId":{user},"namespace":{namespace},"key":{key},"value":{value},"createdByAgent":"old","accessCount":1,"createdAt":"2025-02-05T10:00:00Z","updatedAt":"2025-02-05T10:00:00Z"}}"#
    )
}

/// Documents in memory.
pub struct InMemory {
    documents: MemoryDocuments,
    clock: TestClock,
}

impl InMemory {
    /// With revisions that never come back, as CouchDB has them.
    pub fn by_revision() -> Self {
        Self { documents: MemoryDocuments::new(), clock: TestClock::new() }
    }

    /// Compared by their fields, as DynamoDB's conditions do.
    pub fn by_fields() -> Self {
        Self { documents: MemoryDocuments::new().comparing_fields(), ..Self::by_revision() }
    }

    /// With an index that follows late, as DynamoDB's does.
    pub fn with_late_lists() -> Self {
        let Self { documents, clock } = Self::by_revision();
        Self { documents: documents.with_late_lists(Duration::from_secs(1), clock.clone()), clock }
    }
}

impl DocumentsPlace for InMemory {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Documents>> {
        let documents = self.documents.clone();
        Box::pin(async { Arc::new(documents) as Arc<dyn Documents> })
    }

    fn pass(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.clock.advance(time);
        Box::pin(async {})
    }
}
