//! How many requests operations take. Each is one round trip on the databases that there are.

use std::sync::Arc;

use keyward_agents::{Actor, Agents, DocumentLayout};
use keyward_engine::{Documents, Json};
use keyward_testkit::{DocumentCalls, MemoryDocuments, TestClock};

use super::place::{entry, open};
use super::watched::Watched;
use crate::fixture::{keys, put, set};

fn calls(gets: usize, lists: usize, puts: usize, deletes: usize) -> DocumentCalls {
    DocumentCalls { gets, lists, puts, deletes }
}

async fn prepared(documents: &MemoryDocuments) {
    documents.prepare(true).await.unwrap();
}

fn agents(documents: &MemoryDocuments) -> Agents {
    let clock = TestClock::new();
    let layout = DocumentLayout::open(Arc::new(documents.clone()), clock.clone()).unwrap();
    open(layout, &clock)
}

#[tokio::test]
async fn a_set_takes_two_requests_and_a_get_one() {
    for documents in [MemoryDocuments::new(), MemoryDocuments::new().comparing_fields()] {
        prepared(&documents).await;
        let store = agents(&documents);
        let notes = store.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
        // Of a process that knows nothing yet; of a new key; of one that it knows.
        for (key, value) in [("k", "1"), ("l", "1"), ("k", "2"), ("k", "3")] {
            put(&notes, key, value).await;
            assert_eq!(documents.take_calls(), calls(1, 0, 1, 0), "{key} {value}");
        }
        // Of a key that is cold, with metadata to be merged.
        let cold = agents(&documents);
        let others = cold.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
        let metadata = Json::parse(r#"{"a":1}"#).unwrap();
        assert!(others.set("l", set("2").metadata(metadata)).await.unwrap().is_accepted());
        assert_eq!(documents.take_calls(), calls(1, 0, 1, 0));
        // What the first one knows of it is out of date, and is read before it is changed.
        put(&notes, "l", "3").await;
        assert_eq!(documents.take_calls(), calls(1, 0, 1, 0));
        assert!(notes.get("l").await.unwrap().is_some());
        assert_eq!(documents.take_calls(), calls(1, 0, 0, 0));
        assert_eq!(notes.get_many(&["k", "l", "m"]).await.unwrap().len(), 3);
        assert_eq!(documents.take_calls(), calls(1, 0, 0, 0));
        let hundreds: Vec<String> = (0..250).map(|n| n.to_string()).collect();
        assert_eq!(notes.get_many(&hundreds).await.unwrap().len(), 250);
        assert_eq!(documents.take_calls(), calls(3, 0, 0, 0));
        assert!(notes.delete("l").await.unwrap());
        let taken = documents.take_calls();
        assert!(taken.deletes == 1 && taken.all() <= 3, "{taken:?}");
    }
}

#[tokio::test]
async fn any_number_of_accesses_take_two_requests_for_each_entry() {
    let documents = MemoryDocuments::new();
    prepared(&documents).await;
    let store = agents(&documents);
    let notes = store.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    put(&notes, "k", "1").await;
    store.flush().await.unwrap();
    for _ in 0..1_000 {
        assert!(notes.get("k").await.unwrap().is_some());
    }
    documents.take_calls();
    store.flush().await.unwrap();
    assert_eq!(documents.take_calls(), calls(1, 0, 1, 0));
    store.flush().await.unwrap();
    assert_eq!(documents.take_calls(), calls(0, 0, 0, 0));
}

#[tokio::test]
async fn all_pages_of_a_listing_take_one_list() {
    const KEYS: usize = 2_400;
    let documents = MemoryDocuments::new();
    prepared(&documents).await;
    for n in 0..KEYS {
        let key = format!("k{n}");
        let id = format!("ada:default:{}", data_encoding::BASE64URL.encode(key.as_bytes()));
        let fields = Json::parse(entry("ada", "default", &key, "1")).unwrap();
        drop(documents.put(&id, &fields, None).await.unwrap());
    }
    let store = agents(&documents);
    let notes = store.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    documents.take_calls();
    assert_eq!(keys(&notes, "", 50).await.len(), KEYS);
    // In pages of 500 documents; and each page looks whether its documents say what their ids say: few at first, since
    // they may be large.
    assert_eq!(documents.take_calls(), calls(2 * KEYS / 50, 5, 0, 0));
    let page = notes.get_all("", None, 100).await.unwrap();
    assert_eq!(page.entries.len(), 100);
    // The documents, and who accessed them.
    let taken = documents.take_calls();
    assert!(taken.lists == 5 && taken.gets <= 3, "{taken:?}");
}

/// However few bytes the first documents have: what is read is bounded by bytes, and not by a number of documents.
#[tokio::test]
async fn a_page_of_large_documents_is_read_in_parts() {
    const LARGE: usize = 1 << 20;
    let documents = MemoryDocuments::new().with_limits(|limits| limits.get_ids_max = 300);
    prepared(&documents).await;
    let value = format!("\"{}\"", "x".repeat(LARGE));
    for n in 0..60 {
        let key = format!("k{n:02}");
        let id = format!("ada:default:{}", data_encoding::BASE64URL.encode(key.as_bytes()));
        let fields = Json::parse(entry("ada", "default", &key, &value)).unwrap();
        drop(documents.put(&id, &fields, None).await.unwrap());
    }
    let clock = TestClock::new();
    let watched = Watched::new(Arc::new(documents));
    let layout = DocumentLayout::open(watched.clone(), clock.clone()).unwrap();
    let store = open(layout, &clock);
    let notes = store.user("ada", Actor::nobody()).use_namespace("default").unwrap();
    assert_eq!(keys(&notes, "", 300).await.len(), 60);
    let read = watched.take_read_bytes();
    let most = read.iter().max().unwrap();
    assert!(*most <= 9 * LARGE, "{read:?}");
    // A page ends soon after 4 MiB, and no document is read twice.
    assert!(read.iter().sum::<usize>() < 61 * LARGE + 60 * 400, "{read:?}");
}
