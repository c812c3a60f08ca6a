//! What watchers are told, and what they hold.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use keyward::{Json, Put};

use super::ring::{RING_BYTES_MAX, RING_COMMITS_MAX};
use super::*;

async fn store() -> Store {
    keyward::open("memory:").await.unwrap()
}

async fn put(store: &Store, key: &str) {
    let key = Key::parse(key).unwrap();
    store.put(key, Put::new(Json::from_integer(1))).await.unwrap();
}

fn below(prefix: &str) -> KeyRange {
    KeyRange::under(&Prefix::parse(prefix).unwrap())
}

type Events = BoxStream<'static, Result<Told>>;

async fn changed(events: &mut Events) -> Vec<String> {
    loop {
        let told = events.next().await.unwrap().unwrap();
        if let Event::Changed { changes, .. } = told.event() {
            return changes.iter().map(|change| change.key.to_string()).collect();
        }
    }
}

#[tokio::test]
async fn watchers_are_told_their_own_part_from_where_they_began() {
    let store = store().await;
    let feed = Feed::new(store.clone());
    put(&store, "a:before").await;
    let mut first = feed.watch(below("a:"), None, Quiet::Sometimes, |_| true).boxed();
    let began = first.next().await.unwrap().unwrap();
    put(&store, "b:1").await;
    put(&store, "a:1").await;
    let mut second = feed.watch(below(""), None, Quiet::Sometimes, |_| true).boxed();
    assert!(matches!(second.next().await, Some(Ok(Told::Own(Event::Reached(_))))));
    put(&store, "a:2").await;
    assert_eq!(changed(&mut first).await, ["a:1"]);
    assert_eq!(changed(&mut first).await, ["a:2"]);
    assert_eq!(changed(&mut second).await, ["a:2"]);
    let mut late =
        feed.watch(below("a:"), revision(began.event()), Quiet::Sometimes, |_| true).boxed();
    assert_eq!(changed(&mut late).await, ["a:1"]);
    assert_eq!(changed(&mut late).await, ["a:2"]);
    put(&store, "a:3").await;
    assert_eq!(changed(&mut late).await, ["a:3"]);
}

#[tokio::test]
async fn a_watcher_that_falls_behind_misses_nothing() {
    let store = store().await;
    let feed = Feed::new(store.clone());
    let mut quick = feed.watch(below("a:"), None, Quiet::Sometimes, |_| true).boxed();
    let mut slow = feed.watch(below("a:"), None, Quiet::Sometimes, |_| true).boxed();
    quick.next().await.unwrap().unwrap();
    slow.next().await.unwrap().unwrap();
    let mut seen = BTreeSet::new();
    let all = RING_COMMITS_MAX + 100;
    for n in 0..all {
        put(&store, &format!("a:{n}")).await;
        seen.extend(changed(&mut quick).await);
    }
    assert_eq!(seen.len(), all);
    for n in 0..all {
        assert_eq!(changed(&mut slow).await, [format!("a:{n}")]);
    }
}

#[tokio::test]
async fn the_store_is_not_watched_when_nobody_watches() {
    let store = store().await;
    let feed = Feed::new(store.clone());
    for _ in 0..3 {
        let mut events = feed.watch(below("a:"), None, Quiet::Sometimes, |_| true).boxed();
        events.next().await.unwrap().unwrap();
        put(&store, "a:1").await;
        assert_eq!(changed(&mut events).await, ["a:1"]);
        drop(events);
        while feed.live().is_some() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_commit_is_written_as_text_once_for_all_who_see_all_of_it() {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    fn write(event: &Event) -> Bytes {
        WRITTEN.fetch_add(1, Ordering::Relaxed);
        format!("{event:?}").into()
    }
    let store = store().await;
    let feed = Feed::new(store.clone());
    let mut watchers = Vec::new();
    for _ in 0..100 {
        let mut watcher = feed.watch(below("a:"), None, Quiet::Sometimes, |_| true).boxed();
        watcher.next().await.unwrap().unwrap();
        watchers.push(watcher);
    }
    put(&store, "a:1").await;
    let mut texts = Vec::new();
    for watcher in &mut watchers {
        texts.push(watcher.next().await.unwrap().unwrap().text(write));
    }
    assert_eq!(WRITTEN.load(Ordering::Relaxed), 1);
    assert!(texts.iter().all(|text| text.as_ptr() == texts[0].as_ptr()));
}

#[tokio::test]
async fn who_sees_a_part_of_a_commit_is_told_that_part() {
    let store = store().await;
    let feed = Feed::new(store.clone());
    let hidden = |key: &Key| key.first() != "hidden";
    let mut events = feed.watch(below(""), None, Quiet::Sometimes, hidden).boxed();
    events.next().await.unwrap().unwrap();
    let key = |text| Key::parse(text).unwrap();
    let one = || Put::new(Json::from_integer(1));
    let both = keyward::Commit::new().put(key("hidden:1"), one()).put(key("a:1"), one());
    assert!(store.commit(both).await.unwrap().is_applied());
    assert_eq!(changed(&mut events).await, ["a:1"]);
}

#[test]
fn the_ring_is_bounded_in_bytes() {
    let mut ring = Ring::new(Revision(0));
    let changes: Vec<_> = (0..1_000)
        .map(|n| {
            let key = Key::parse(&format!("a:{n:01000}")).unwrap();
            Change { key, kind: keyward::ChangeKind::Put }
        })
        .collect();
    for n in 1..=50 {
        let (revision, changes) = (Revision(n), changes.clone());
        ring.push(revision, Event::Changed { revision, changes });
        assert!(ring.bytes <= RING_BYTES_MAX, "{} bytes", ring.bytes);
    }
    assert!(matches!(ring.next(Revision(1)), Next::Gone(after) if after == ring.after));
    let next = ring.next(ring.after);
    assert!(matches!(next, Next::Commit(commit) if commit.revision.0 == ring.after.0 + 1));
    assert!(matches!(ring.next(Revision(50)), Next::Nothing(Revision(50))));
}

#[tokio::test]
async fn a_watcher_that_falls_behind_holds_a_small_piece_of_the_log() {
    let store = store().await;
    let feed = Feed::new(store.clone());
    let began = store.stats().await.unwrap().revision.unwrap();
    for n in 0..2_000 {
        put(&store, &format!("a:{n}")).await;
    }
    let watch = feed.watch(below("a:"), Some(began), Quiet::AtOnce, |_| true);
    let mut watch = watch.boxed();
    for n in 0..2_000 {
        assert_eq!(changed(&mut watch).await, [format!("a:{n}")]);
    }
    let mut watcher = Watcher {
        feed: feed.clone(),
        range: below("a:"),
        shown: |_: &Key| true,
        quiet_time: QUIET_TIME,
        source: Source::Ended,
        read: VecDeque::new(),
        at: began,
        told: (began, Instant::now()),
    };
    let latest = store.stats().await.unwrap().revision.unwrap();
    assert!(matches!(watcher.read_piece(latest).await.unwrap(), Piece::Read));
    let held: usize = watcher
        .read
        .iter()
        .map(|event| match event {
            Event::Changed { changes, .. } => weight(changes),
            _ => 0,
        })
        .sum();
    assert!((1..=PIECE_BYTES_MAX).contains(&held), "{held} bytes");
}
