//! The reference must pass what it is the reference of.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{BoxFuture, Documents, ErrorKind, Json, Swapped};
use keyward_testkit::{
    DocumentCall, DocumentsPlace, Fault, Faults, FaultyDocuments, MemoryDocuments, TestClock, When,
};

struct InMemory(MemoryDocuments, TestClock);

impl DocumentsPlace for InMemory {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Documents>> {
        let documents = self.0.clone();
        Box::pin(async { Arc::new(documents) as Arc<dyn Documents> })
    }

    fn pass(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.1.advance(time);
        Box::pin(async {})
    }
}

fn revisions() -> InMemory {
    InMemory(MemoryDocuments::new(), TestClock::new())
}

fn fields() -> InMemory {
    InMemory(MemoryDocuments::new().comparing_fields(), TestClock::new())
}

fn late() -> InMemory {
    let clock = TestClock::new();
    InMemory(MemoryDocuments::new().with_late_lists(Duration::from_secs(1), clock.clone()), clock)
}

keyward_testkit::document_conformance!(by_revision, super::revisions());
keyward_testkit::document_conformance!(by_fields, super::fields());
keyward_testkit::document_conformance!(with_late_lists, super::late());

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn faults_of_documents_tell_no_lie() {
    let memory = MemoryDocuments::new();
    let faults = [
        (0, Fault::Fail),
        (1, Fault::Unanswered(When::Before)),
        (2, Fault::Unanswered(When::After)),
        (4, Fault::Late(Duration::from_secs(1))),
        (6, Fault::Crash(When::After)),
    ];
    let faulty = FaultyDocuments::new(Arc::new(memory.clone()), Faults::script(faults));
    let put = async |documents: &FaultyDocuments, id: &str| {
        let put = documents.put(id, &json("{}"), None).await;
        put.map(|swapped| matches!(swapped, Swapped::Applied { .. })).map_err(|it| it.kind())
    };
    let there = async |id: &str| {
        let found = memory.get_many(&[id.to_owned()]).await.unwrap();
        found[0].is_some()
    };
    assert_eq!(put(&faulty, "a").await, Err(ErrorKind::Unavailable));
    assert_eq!(put(&faulty, "a").await, Err(ErrorKind::OutcomeUnknown));
    assert!(!there("a").await);
    assert_eq!(put(&faulty, "a").await, Err(ErrorKind::OutcomeUnknown));
    assert!(there("a").await);
    assert_eq!(put(&faulty, "a").await, Ok(false));
    assert_eq!(put(&faulty, "b").await, Err(ErrorKind::OutcomeUnknown));
    assert!(!there("b").await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(there("b").await);
    assert_eq!(put(&faulty, "c").await, Ok(true));
    assert_eq!(put(&faulty, "d").await, Err(ErrorKind::OutcomeUnknown));
    assert!(faulty.is_crashed() && there("d").await);
    assert_eq!(put(&faulty, "e").await, Err(ErrorKind::Unavailable));
    let revived = faulty.revive();
    assert_eq!(put(&revived, "e").await, Ok(true));
    assert_eq!((faulty.calls(), faulty.trace()[0]), (8, (DocumentCall::Put, Fault::Fail)));
}
