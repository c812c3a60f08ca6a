//! Watches that outlive their connection.

use futures_util::StreamExt;
use keyward_engine::{Event, Json, Put, Revision, Store};
use keyward_key::{Key, KeyRange};

use crate::served::{Served, configured};

async fn put(store: &Store, key: &str) {
    store.put(Key::parse(key).unwrap(), Put::new(Json::from_integer(1))).await.unwrap();
}

#[tokio::test]
async fn a_watch_goes_on_after_the_server_was_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}/data", directory.path().display());
    let served = Served::on(&url).await;
    let address = served.url.strip_prefix("http://").unwrap().parse().unwrap();
    let store = served.store().await;
    let mut events = store.watch(KeyRange::all(), None);
    assert!(matches!(events.next().await, Some(Ok(Event::Reached(_)))));
    put(&store, "a").await;
    let mut seen = Vec::new();
    hear(&mut events, &mut seen, 1).await;
    served.stop().await;

    // Somebody writes while nobody can be told.
    let direct = keyward::open(&url).await.unwrap();
    put(&direct, "b").await;
    let config = keyward_server::Config { listen: address, ..configured() };
    let _served = Served::start(&config, &keyward_server::without_schema(&url).unwrap()).await;
    put(&direct, "c").await;
    hear(&mut events, &mut seen, 3).await;
    assert_eq!(seen, ["a", "b", "c"]);
}

async fn hear(
    events: &mut keyward_engine::BoxStream<'static, keyward_engine::Result<Event>>,
    seen: &mut Vec<String>,
    count: usize,
) {
    while seen.len() < count {
        if let Event::Changed { changes, .. } = events.next().await.unwrap().unwrap() {
            seen.extend(changes.iter().map(|change| change.key.to_string()));
        }
    }
}

#[tokio::test]
async fn a_watch_ends_with_an_error_where_no_server_comes_back() {
    let served = Served::on("memory:").await;
    let store = served.store().await;
    let mut events = store.watch(KeyRange::all(), None);
    assert!(matches!(events.next().await, Some(Ok(Event::Reached(_)))));
    served.stop().await;
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), keyward_engine::ErrorKind::Unavailable, "{error}");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_history_that_is_gone_is_told_as_too_old() {
    let served = Served::on("memory:?history=3").await;
    let store = served.store().await;
    for n in 0..20 {
        put(&store, &format!("k:{n}")).await;
    }
    let earliest = store.stats().await.unwrap().earliest_revision.unwrap();
    let mut events = store.watch(KeyRange::all(), Some(Revision(1)));
    assert_eq!(events.next().await.unwrap().unwrap(), Event::TooOld { earliest });
    assert!(events.next().await.is_none());
}
