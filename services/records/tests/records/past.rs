//! Earlier versions.

use std::sync::Arc;

use keyward_engine::{Store, Tier};
use keyward_records::{Caller, Precondition, Written};
use keyward_stores::{Place, on_every_engine};
use keyward_testkit::{Faults, FaultyEngine};

use crate::declared::{memory, open_store};
use crate::fixture::{Fixture, draft, key, own, put};

on_every_engine!(the_last_versions_are_kept, an_earlier_version_comes_back);

async fn the_last_versions_are_kept(place: Place) {
    let fixture = Fixture::new(place).await;
    let caller = Caller::user("ada").with_agent("editor");
    let pages = fixture.records.space("pages", &caller).unwrap();
    let key = own(&pages, "p");
    for n in 1..=4 {
        put(&pages, "p", &format!(r#"{{"slug":"s","n":{n}}}"#)).await;
    }
    assert_eq!(pages.delete(&key, Precondition::Any).await.unwrap(), Written::Removed);
    put(&pages, "p", "null").await;
    let history = pages.history(&key, None, 10).await.unwrap();
    let told: Vec<(u64, &str, Option<String>)> = history
        .iter()
        .map(|past| (past.seq, past.act.as_str(), past.value.as_ref().map(ToString::to_string)))
        .collect();
    // Three are kept; a value of null is a value.
    assert_eq!(
        told,
        [
            (6, "put", Some("null".to_owned())),
            (5, "delete", None),
            (4, "put", Some(r#"{"slug":"s","n":4}"#.to_owned())),
        ]
    );
    assert_eq!(history[0].user.as_deref(), Some("ada"));
    assert_eq!(history[0].agent.as_deref(), Some("editor"));
    assert_eq!(pages.history(&key, Some(5), 10).await.unwrap().len(), 1);
    let bob = fixture.space("pages", "bob");
    assert_eq!(bob.history(&key, None, 10).await.unwrap_err().code(), "forbidden");
}

async fn an_earlier_version_comes_back(place: Place) {
    let fixture = Fixture::new(place).await;
    let pages = fixture.space("pages", "ada");
    let key = own(&pages, "p");
    put(&pages, "p", r#"{"slug":"one"}"#).await;
    put(&pages, "p", r#"{"slug":"two"}"#).await;
    assert!(pages.restore(&key, 1, Precondition::Any).await.unwrap().is_accepted());
    let record = pages.get(&key).await.unwrap().unwrap();
    assert_eq!(record.value.as_str(), r#"{"slug":"one"}"#);
    // Its entries come back with it, and what another record took meanwhile stays taken.
    put(&pages, "q", r#"{"slug":"two"}"#).await;
    let clash = pages.restore(&key, 2, Precondition::Any).await.unwrap_err();
    assert_eq!(clash.code(), "unique-clash");
    assert_eq!(pages.restore(&key, 9, Precondition::Any).await.unwrap_err().code(), "bad-change");
    let other = own(&pages, "r");
    let put = pages.create(&other, draft(r#"{"slug":"three"}"#)).await.unwrap();
    assert!(put.is_accepted());
}

const DOCUMENTS: &str = r#"
[stores.app]
[spaces.documents]
key = "shared:documents:{document}[:{part}]"
ownership = "shared"
history = 3
"#;

#[tokio::test]
async fn versions_are_found_at_once_beside_those_of_many_parts() {
    let (memory, clock) = memory(Tier::Atomic);
    let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
    let records = open_store(Store::new(engine.clone()), &clock, DOCUMENTS);
    let documents = records.space("documents", &Caller::operator()).unwrap();
    for n in 0..100 {
        for part in [format!("part{n}"), n.to_string()] {
            let part = key(&format!("shared:documents:d:{part}"));
            assert!(documents.put(&part, draft("1")).await.unwrap().is_accepted());
        }
    }
    // One whose name looks like a number is passed over.
    let part = key("shared:documents:d:00000000000000000002");
    assert!(documents.put(&part, draft("1")).await.unwrap().is_accepted());
    let before = engine.calls();
    let document = key("shared:documents:d");
    assert!(documents.put(&document, draft("1")).await.unwrap().is_accepted());
    let calls = engine.calls() - before;
    assert!(calls < 10, "{calls} engine calls for one put");
    assert!(documents.put(&document, draft("2")).await.unwrap().is_accepted());
    let before = engine.calls();
    let past = documents.history(&document, None, 10).await.unwrap();
    let calls = engine.calls() - before;
    assert_eq!(past.iter().map(|past| past.seq).collect::<Vec<_>>(), [2, 1]);
    assert!(calls < 10, "{calls} engine calls for one history");
}
