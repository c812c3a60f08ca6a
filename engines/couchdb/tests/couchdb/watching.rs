//! Watching by `_changes`.

use futures_util::StreamExt;
use keyward_couchdb::CouchDb;
use keyward_engine::{BoxStream, ChangeKind, ErrorKind, Event, Result, Revision, Store};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};
use serde_json::json;

use crate::server::{Fresh, address, key, put};

type Events = BoxStream<'static, Result<Event>>;

async fn begin(store: &Store, since: Option<Revision>) -> (Revision, Events) {
    let mut events = store.watch(KeyRange::all(), since);
    match events.next().await.unwrap().unwrap() {
        Event::Reached(at) => (at, events),
        other => panic!("a watch begins with Reached, not {other:?}"),
    }
}

/// The next change.
async fn next(events: &mut Events) -> (Revision, Key, ChangeKind) {
    loop {
        match events.next().await.unwrap().unwrap() {
            Event::Changed { revision, mut changes } => {
                let change = changes.pop().unwrap();
                return (revision, change.key, change.kind);
            }
            Event::Reached(_) => {}
            other @ Event::TooOld { .. } => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_other_processes_and_other_programs_change_is_told() {
    let fresh = Fresh::new();
    let (here, elsewhere) = (fresh.store().await, fresh.store().await);
    let (_, mut events) = begin(&here, None).await;
    elsewhere.put(key("a"), put("1")).await.unwrap();
    let (_, told, kind) = next(&mut events).await;
    assert_eq!((told, kind), (key("a"), ChangeKind::Put));
    // Documents that are no entries are not told.
    fresh.write("/somebody-elses", &json!({"x": 1}));
    fresh.write("/_design/mine", &json!({"views": {}}));
    elsewhere.delete(key("a")).await.unwrap();
    let (_, told, kind) = next(&mut events).await;
    assert_eq!((told, kind), (key("a"), ChangeKind::Deleted));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_resumes_in_its_process_and_in_no_other() {
    let fresh = Fresh::new();
    let (here, elsewhere) = (fresh.store().await, fresh.store().await);
    let (_, mut events) = begin(&here, None).await;
    here.put(key("a"), put("1")).await.unwrap();
    let (a, ..) = next(&mut events).await;
    drop(events);
    elsewhere.put(key("b"), put("1")).await.unwrap();
    let (at, mut events) = begin(&here, Some(a)).await;
    assert_eq!(at, a);
    assert_eq!(next(&mut events).await.1, key("b"));
    let mut foreign = elsewhere.watch(KeyRange::all(), Some(a));
    let told = foreign.next().await.unwrap().unwrap();
    assert!(matches!(told, Event::TooOld { .. }), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_keys_are_told_without_a_gap() {
    let fresh = Fresh::new();
    let store = fresh.store().await;
    let mut events = store.watch(KeyRange::under(&Prefix::parse("in").unwrap()), None);
    assert!(matches!(events.next().await, Some(Ok(Event::Reached(_)))));
    // More than one read of the feed, written by somebody else.
    let engine_ids = (0..2_500).map(|n| {
        let place = if n % 5 == 0 { "out" } else { "in" };
        json!({"_id": format!("keyward!{place}!{n}"), "keyward": 1, "value": "1", "mark": "m"})
    });
    let body = json!({"docs": engine_ids.collect::<Vec<_>>()});
    let (status, answer) = fresh.request("POST", "/_bulk_docs", &body.to_string());
    assert_eq!(status, 201, "{answer}");
    for n in (0..2_500).filter(|n| n % 5 != 0) {
        assert_eq!(next(&mut events).await.1, key(&format!("in:{n}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_about_the_sequence_ends_a_watch_with_an_error() {
    let fresh = Fresh::new();
    fresh.store().await;
    for status in [302, 405, 418] {
        let proxy = HttpProxy::start(address()).await;
        let options = fresh.impatient(proxy.address());
        let store = Store::new(CouchDb::open_with(options, TestClock::new()).await.unwrap());
        let (_, mut events) = begin(&store, None).await;
        let requests = proxy.requests();
        proxy.fail_always(NetworkFault::Answer(status));
        store.put(key("a"), put("1")).await.unwrap_err();
        // Wakes the request that waits for a change.
        fresh.store().await.put(key(&format!("b:{status}")), put("1")).await.unwrap();
        let error = loop {
            match events.next().await.expect("the watch says why it ends") {
                Ok(event) => assert!(!matches!(event, Event::TooOld { .. }), "{event:?}"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        assert!(proxy.requests() < requests + 10, "nothing is asked again and again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_gone_ends_its_watches_with_an_error() {
    let fresh = Fresh::new();
    // This server leaves requests that wait for changes without an answer then.
    let engine = CouchDb::open_with(fresh.impatient(address()), TestClock::new());
    let store = Store::new(engine.await.unwrap());
    let (_, mut events) = begin(&store, None).await;
    fresh.request("DELETE", "", "");
    let ended = loop {
        match events.next().await.unwrap() {
            Ok(Event::Reached(_) | Event::Changed { .. }) => {}
            Ok(other @ Event::TooOld { .. }) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(
        ended.message().contains(&fresh.name) || ended.message().contains("CouchDB"),
        "{ended}"
    );
    assert!(events.next().await.is_none());
    fresh.request("PUT", "", "");
}
