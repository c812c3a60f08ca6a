use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use keyward_engine::{BoxStream, Change, ChangeKind, Error, ErrorKind, Event, Result, Revision};
use keyward_key::{Key, KeyRange, Prefix};
use tokio::sync::Notify;

use crate::log::{CHANGES_MAX, Session};
use crate::session::Running;
use crate::{ChangeSource, Changes, Slice, Wait};

/// How many changes a read of the feed gives.
const SLICE: usize = 100;

/// A feed in memory, whose places are numbers.
#[derive(Clone, Default)]
struct Feed(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    changes: Vec<Change>,
    /// The first place that is still known.
    kept: usize,
    fails: bool,
    /// Whether every place is forgotten as soon as it was given.
    forgets: bool,
    reads: usize,
}

impl Feed {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let told = act(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.changed.notify_waiters();
        told
    }

    fn put(&self, key: &str) {
        let change = Change { key: Key::parse(key).unwrap(), kind: ChangeKind::Put };
        self.with(|state| state.changes.push(change));
    }
}

impl ChangeSource for Feed {
    type Position = usize;

    async fn now(&self) -> Result<usize> {
        Ok(self.with(|state| state.changes.len()))
    }

    async fn read(&self, after: &usize, wait: Wait) -> Result<Slice<usize>> {
        loop {
            let changed = self.0.changed.notified();
            {
                let mut state = self.0.state.lock().unwrap();
                state.reads += 1;
                if state.fails {
                    return Err(Error::new(ErrorKind::Unavailable, "the database is away"));
                }
                if state.forgets || *after < state.kept {
                    return Ok(Slice::Lost);
                }
                let rest = &state.changes[*after..];
                if !rest.is_empty() || wait == Wait::No {
                    let changes: Vec<_> = rest.iter().take(SLICE).cloned().collect();
                    let (position, more) = (after + changes.len(), rest.len() > SLICE);
                    return Ok(Slice::Changes { changes, position, more });
                }
            }
            changed.await;
        }
    }
}

type Events = BoxStream<'static, Result<Event>>;

async fn begin(changes: &Changes<Feed>, since: Option<Revision>) -> (Revision, Events) {
    let mut events = changes.watch(KeyRange::all(), since);
    match events.next().await.unwrap().unwrap() {
        Event::Reached(at) => (at, events),
        other => panic!("a watch begins with Reached, not {other:?}"),
    }
}

/// The next change: its revision and its key.
async fn next(events: &mut Events) -> (Revision, String) {
    match events.next().await.unwrap().unwrap() {
        Event::Changed { revision, changes } => (revision, changes[0].key.to_string()),
        other => panic!("{other:?} instead of a change"),
    }
}

async fn ended(changes: &Changes<Feed>) {
    while changes.0.log.receiver_count() > 0
        || !matches!(changes.0.log.borrow().session, crate::log::Session::None)
    {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn watches_of_one_process_agree_on_revisions() {
    let feed = Feed::default();
    feed.put("before");
    let changes = Changes::new(feed.clone());
    let (_, mut first) = begin(&changes, None).await;
    feed.put("a");
    let a = next(&mut first).await;
    let (at, mut second) = begin(&changes, None).await;
    assert_eq!((a.1.as_str(), at), ("a", a.0));
    feed.put("b");
    let b = next(&mut first).await;
    assert_eq!(next(&mut second).await, b);
    assert!(b.0 > a.0);
}

#[tokio::test]
async fn a_watch_resumes_where_another_one_stopped() {
    let feed = Feed::default();
    let changes = Changes::new(feed.clone());
    let (began, mut events) = begin(&changes, None).await;
    feed.put("a");
    let (a, _) = next(&mut events).await;
    drop(events);
    ended(&changes).await;
    // Nobody follows the feed now.
    feed.put("b");
    let (at, mut events) = begin(&changes, Some(a)).await;
    assert_eq!((at, next(&mut events).await.1.as_str()), (a, "b"));
    let (_, mut events) = begin(&changes, Some(began)).await;
    assert_eq!(next(&mut events).await, (a, "a".to_owned()));
    assert_eq!(next(&mut events).await.1, "b");
}

#[tokio::test]
async fn a_watch_from_now_tells_nothing_older() {
    let feed = Feed::default();
    let changes = Changes::new(feed.clone());
    drop(begin(&changes, None).await);
    ended(&changes).await;
    for n in 0..3 * SLICE {
        feed.put(&format!("old:{n}"));
    }
    let (_, mut events) = begin(&changes, None).await;
    feed.put("new");
    assert_eq!(next(&mut events).await.1, "new");
}

#[tokio::test]
async fn only_what_lies_in_the_range_is_told() {
    let feed = Feed::default();
    let changes = Changes::new(feed.clone());
    let mut events = changes.watch(KeyRange::under(&Prefix::parse("in").unwrap()), None);
    assert!(matches!(events.next().await, Some(Ok(Event::Reached(_)))));
    feed.put("out");
    feed.put("in:a");
    loop {
        match events.next().await.unwrap().unwrap() {
            Event::Reached(_) => {}
            Event::Changed { changes, .. } => {
                assert_eq!(changes[0].key.to_string(), "in:a");
                break;
            }
            other @ Event::TooOld { .. } => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn revisions_that_are_gone_or_of_another_process_are_too_old() {
    let feed = Feed::default();
    let (changes, elsewhere) = (Changes::new(feed.clone()), Changes::new(feed.clone()));
    let (began, mut events) = begin(&changes, None).await;
    let (foreign, _held) = begin(&elsewhere, None).await;
    for n in 0..=CHANGES_MAX {
        feed.put(&format!("k:{n}"));
    }
    let mut last = began;
    while last.0 < began.0 + CHANGES_MAX as u64 + 1 {
        match events.next().await.unwrap().unwrap() {
            Event::Changed { revision, .. } => last = revision,
            Event::Reached(_) => {}
            // It read more slowly than the feed.
            Event::TooOld { earliest } => (last, events) = begin(&changes, Some(earliest)).await,
        }
    }
    for gone in [began, foreign, Revision(0), Revision(last.0 + 1), Revision(u64::MAX)] {
        let mut events = changes.watch(KeyRange::all(), Some(gone));
        let told = events.next().await.unwrap().unwrap();
        assert_eq!(told, Event::TooOld { earliest: Revision(began.0 + 1) }, "{gone}");
        assert!(events.next().await.is_none());
    }
}

#[tokio::test]
async fn what_the_database_forgot_is_said_and_not_skipped() {
    let feed = Feed::default();
    let changes = Changes::new(feed.clone());
    let (at, events) = begin(&changes, None).await;
    drop(events);
    ended(&changes).await;
    feed.put("lost");
    feed.with(|state| state.kept = state.changes.len());
    let (_, mut events) = begin(&changes, None).await;
    feed.put("new");
    assert_eq!(next(&mut events).await.1, "new");
    let mut late = changes.watch(KeyRange::all(), Some(at));
    assert!(matches!(late.next().await, Some(Ok(Event::TooOld { .. }))));
}

#[tokio::test]
async fn too_much_to_catch_up_with_is_said_and_not_skipped() {
    let feed = Feed::default();
    let changes = Changes::new(feed.clone());
    let (at, events) = begin(&changes, None).await;
    drop(events);
    ended(&changes).await;
    for n in 0..100 * SLICE {
        feed.put(&format!("k:{n}"));
    }
    let (now, _events) = begin(&changes, None).await;
    assert!(now > at);
    let mut late = changes.watch(KeyRange::all(), Some(at));
    assert!(matches!(late.next().await, Some(Ok(Event::TooOld { .. }))));
}

#[tokio::test]
async fn a_failure_reaches_every_watch_and_the_next_one_goes_on() {
    let feed = Feed::default();
    let changes = Changes::new(feed.clone());
    let (_, mut first) = begin(&changes, None).await;
    let (at, mut second) = begin(&changes, None).await;
    feed.with(|state| state.fails = true);
    for events in [&mut first, &mut second] {
        let failed = events.next().await.unwrap().unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed}");
        assert!(events.next().await.is_none());
    }
    feed.put("meanwhile");
    feed.with(|state| state.fails = false);
    let (_, mut events) = begin(&changes, Some(at)).await;
    assert_eq!(next(&mut events).await.1, "meanwhile");
}

#[tokio::test]
async fn the_feed_is_not_read_when_nobody_watches() {
    let feed = Feed::default();
    let changes = Changes::new(feed.clone());
    for n in 0..3 {
        let (_, mut events) = begin(&changes, None).await;
        feed.put(&format!("a:{n}"));
        assert_eq!(next(&mut events).await.1, format!("a:{n}"));
        drop(events);
        ended(&changes).await;
        let reads = feed.with(|state| state.reads);
        for _ in 0..10 {
            feed.put("unseen");
            tokio::task::yield_now().await;
        }
        assert_eq!(feed.with(|state| state.reads), reads);
    }
}

#[tokio::test]
async fn a_session_that_ends_late_leaves_the_next_one_alone() {
    let changes = Changes::new(Feed::default());
    let is_starting = || matches!(changes.0.log.borrow().session, Session::Starting);
    let old = Running::begin(&changes.0).unwrap();
    assert!(Running::begin(&changes.0).is_none(), "one is enough");
    old.fail(&Error::new(ErrorKind::Unavailable, "the database is away"));
    // A new watch comes before the old session is gone.
    let new = Running::begin(&changes.0).unwrap();
    drop(old);
    assert!(is_starting());
    drop(new);
    assert!(matches!(changes.0.log.borrow().session, Session::Failed(_)));
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_forgets_every_place_is_an_error() {
    let feed = Feed::default();
    let changes = Changes::new(feed.clone());
    drop(begin(&changes, None).await);
    feed.with(|state| state.forgets = true);
    let started = tokio::time::Instant::now();
    let mut failed = None;
    for _ in 0..20 {
        let mut events = changes.watch(KeyRange::all(), None);
        while let Some(event) = events.next().await {
            failed = event.err();
        }
        if failed.is_some() {
            break;
        }
    }
    let failed = failed.expect("the watch does not go on as if nothing was wrong");
    assert_eq!(failed.kind(), ErrorKind::Unavailable);
    assert!(failed.message().contains("in a row"), "{failed}");
    assert!(started.elapsed() > std::time::Duration::from_secs(1), "it pauses in between");
    feed.with(|state| state.forgets = false);
    let (_, mut events) = begin(&changes, None).await;
    feed.put("a");
    assert_eq!(next(&mut events).await.1, "a");
}
