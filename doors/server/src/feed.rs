//! The change feed of one store: one engine watch, shared by all watchers.
//!
//! A watch of an engine reads the log of commits by itself. Thousands of them would read, and hold,
//! the same pages; here one watch reads, and keeps the last commits in a [`Ring`] of bounded size. A
//! watcher is a revision and a filter: it holds no events while its client does not read. A watcher
//! that is older than the ring reads the log for itself, a small piece at a time, a few watchers at
//! once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use keyward::{Change, Event, Key, KeyRange, Prefix, Result, Revision, Store};
use tokio::sync::{Semaphore, watch};
use tokio::task::yield_now;
use tokio::time::Instant;

/// How many commits the ring keeps at most.
const RING_COMMITS_MAX: usize = 1_024;
/// How many bytes the commits of the ring may take, their texts included. One commit is always kept.
const RING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many watchers of a store read the log for themselves at once.
const READERS_MAX: usize = 16;
/// How much a watcher reads for itself before it hands that on; one event may be larger.
const PIECE_BYTES_MAX: usize = 16 * 1024;
/// How many events of its own watch a watcher looks at before others have their turn.
const PIECE_EVENTS_MAX: usize = 1_024;
/// How often a watcher learns of commits that changed nothing for it, so that it can resume from
/// there.
const QUIET_TIME: Duration = Duration::from_secs(10);

/// The changes of one store. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    store: Store,
    live: Arc<Mutex<Option<watch::Sender<Ring>>>>,
    readers: Arc<Semaphore>,
}

/// The last commits of a store, oldest first.
#[derive(Debug)]
struct Ring {
    commits: VecDeque<Arc<Commit>>,
    bytes: usize,
    /// Every commit after this revision that has been read is in the ring.
    after: Revision,
    /// Everything up to here has been read.
    at: Revision,
}

/// One commit of the ring, shared by everybody who watches.
#[derive(Debug)]
pub(crate) struct Commit {
    revision: Revision,
    event: Event,
    text: OnceLock<Bytes>,
}

/// An event for one watcher.
#[derive(Debug)]
pub(crate) enum Told {
    /// A commit of which the watcher sees every change.
    Shared(Arc<Commit>),
    /// An event for this watcher alone.
    Own(Event),
}

impl Told {
    pub fn event(&self) -> &Event {
        match self {
            Self::Shared(commit) => &commit.event,
            Self::Own(event) => event,
        }
    }

    pub fn into_event(self) -> Event {
        match self {
            Self::Shared(commit) => commit.event.clone(),
            Self::Own(event) => event,
        }
    }

    /// The event as text. That of a shared commit is written once: there is one way to write events.
    pub fn text(&self, write: fn(&Event) -> Bytes) -> Bytes {
        match self {
            Self::Shared(commit) => commit.text.get_or_init(|| write(&commit.event)).clone(),
            Self::Own(event) => write(event),
        }
    }
}

impl Ring {
    fn new(at: Revision) -> Self {
        Self { commits: VecDeque::new(), bytes: 0, after: at, at }
    }

    fn push(&mut self, at: Revision, event: Event) {
        self.at = at;
        if let Event::Changed { changes, .. } = &event {
            self.bytes += weight(changes);
            let commit = Commit { revision: at, event, text: OnceLock::new() };
            self.commits.push_back(Arc::new(commit));
        }
        while self.commits.len() > RING_COMMITS_MAX
            || (self.bytes > RING_BYTES_MAX && self.commits.len() > 1)
        {
            let Some(oldest) = self.commits.pop_front() else { return };
            if let Event::Changed { changes, .. } = &oldest.event {
                self.bytes -= weight(changes);
            }
            self.after = oldest.revision;
        }
    }

    /// What comes after a revision.
    fn next(&self, at: Revision) -> Next {
        if at < self.after {
            return Next::Gone(self.after);
        }
        let place = self.commits.partition_point(|commit| commit.revision <= at);
        match self.commits.get(place) {
            Some(commit) => Next::Commit(commit.clone()),
            None => Next::Nothing(self.at.max(at)),
        }
    }
}

enum Next {
    Commit(Arc<Commit>),
    /// No commit up to this revision.
    Nothing(Revision),
    /// The ring begins after this revision.
    Gone(Revision),
}

/// How many bytes the changes of a commit take, about, with their text.
fn weight(changes: &[Change]) -> usize {
    changes.iter().map(|change| 128 + 3 * change.key.as_bytes().len()).sum()
}

/// How soon a watcher learns of commits that changed nothing for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quiet {
    /// Once in a while.
    Sometimes,
    /// At once, as a watch of an engine does.
    AtOnce,
}

impl Feed {
    pub fn new(store: Store) -> Self {
        Self { store, live: Arc::default(), readers: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// The changes in a range after a revision, or from now on, of the keys that are shown.
    pub fn watch<F>(
        &self,
        range: KeyRange,
        since: Option<Revision>,
        quiet: Quiet,
        shown: F,
    ) -> impl Stream<Item = Result<Told>> + Send + use<F>
    where
        F: Fn(&Key) -> bool + Send + 'static,
    {
        let watcher = Watcher {
            feed: self.clone(),
            range,
            shown,
            quiet_time: if quiet == Quiet::AtOnce { Duration::ZERO } else { QUIET_TIME },
            source: Source::Beginning(since),
            read: VecDeque::new(),
            at: since.unwrap_or_default(),
            told: (Revision::default(), Instant::now()),
        };
        stream::unfold(watcher, |mut watcher| async move {
            let event = watcher.next().await?;
            Some((event, watcher))
        })
    }

    /// Joins those who share the ring.
    async fn join(&self) -> Result<watch::Receiver<Ring>> {
        if let Some(live) = &*self.live() {
            return Ok(live.subscribe());
        }
        let everything = KeyRange::under(&Prefix::all());
        let mut events = self.store.watch(everything, None);
        let at = match events.next().await.transpose()? {
            Some(Event::Reached(at)) => at,
            _ => Revision::default(),
        };
        let mut live = self.live();
        // Others may have come at the same time.
        if let Some(live) = &*live {
            return Ok(live.subscribe());
        }
        let (ring, joined) = watch::channel(Ring::new(at));
        *live = Some(ring.clone());
        tokio::spawn(fill(self.clone(), events, ring));
        Ok(joined)
    }

    fn live(&self) -> MutexGuard<'_, Option<watch::Sender<Ring>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills the ring for as long as anybody watches. Whoever is left when the engine's watch ends sees
/// the end, and learns the reason by joining again.
async fn fill(
    feed: Feed,
    mut events: BoxStream<'static, Result<Event>>,
    ring: watch::Sender<Ring>,
) {
    let _ends = Ends(feed);
    loop {
        tokio::select! {
            event = events.next() => {
                let event = event.and_then(Result::ok);
                let Some((at, event)) = event.and_then(|event| Some((revision(&event)?, event)))
                else {
                    return;
                };
                ring.send_modify(|ring| ring.push(at, event));
            }
            () = ring.closed() => {
                // Somebody may have come since.
                if ring.receiver_count() == 0 {
                    return;
                }
            }
        }
    }
}

/// Says that the ring is no longer filled, however that came. Who joins at the last moment sees the
/// end at once, and joins again.
struct Ends(Feed);

impl Drop for Ends {
    fn drop(&mut self) {
        *self.0.live() = None;
    }
}

/// One who watches a range.
struct Watcher<F> {
    feed: Feed,
    range: KeyRange,
    shown: F,
    quiet_time: Duration,
    source: Source,
    /// Events that the watcher read for itself: [`PIECE_BYTES_MAX`], or one event.
    read: VecDeque<Event>,
    /// Everything up to here was told, or changed nothing for this watcher.
    at: Revision,
    /// The last revision that was told, and when.
    told: (Revision, Instant),
}

/// Where events come from.
enum Source {
    /// Nowhere yet: the watch begins after a revision, or now.
    Beginning(Option<Revision>),
    /// The ring.
    Joined(watch::Receiver<Ring>),
    /// Nothing comes any more.
    Ended,
}

/// How reading for oneself ended.
enum Piece {
    Read,
    /// The watch is over, perhaps with a last event.
    Over(Option<Event>),
}

impl<F: Fn(&Key) -> bool> Watcher<F> {
    async fn next(&mut self) -> Option<Result<Told>> {
        let told = self.advance().await;
        match &told {
            Ok(Some(told)) if revision(told.event()).is_some() => {
                self.told = (self.at, Instant::now());
            }
            _ => self.source = Source::Ended,
        }
        told.transpose()
    }

    async fn advance(&mut self) -> Result<Option<Told>> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.at = revision(&event).unwrap_or(self.at);
                return Ok(Some(Told::Own(event)));
            }
            // A watch that is given up is not asked again.
            match std::mem::replace(&mut self.source, Source::Ended) {
                Source::Ended => return Ok(None),
                Source::Beginning(since) => {
                    let mut own = self.feed.store.watch(self.range.clone(), since);
                    let Some(event) = own.next().await.transpose()? else { return Ok(None) };
                    if let Some(at) = revision(&event) {
                        self.at = at;
                        self.source = Source::Joined(self.feed.join().await?);
                    }
                    return Ok(Some(Told::Own(event)));
                }
                Source::Joined(mut ring) => {
                    let next = ring.borrow_and_update().next(self.at);
                    match next {
                        Next::Commit(commit) => {
                            self.source = Source::Joined(ring);
                            if let Some(told) = self.own_part(commit) {
                                return Ok(Some(told));
                            }
                        }
                        Next::Nothing(at) => {
                            self.at = at;
                            let (told, when) = self.told;
                            if at > told && when.elapsed() >= self.quiet_time {
                                self.source = Source::Joined(ring);
                                return Ok(Some(Told::Own(Event::Reached(at))));
                            }
                            if ring.changed().await.is_err() {
                                ring = self.feed.join().await?;
                            }
                            self.source = Source::Joined(ring);
                        }
                        Next::Gone(after) => {
                            if let Piece::Over(event) = self.read_piece(after).await? {
                                return Ok(event.map(Told::Own));
                            }
                            self.source = Source::Joined(ring);
                        }
                    }
                }
            }
        }
    }

    /// What a commit says to this watcher, if anything.
    fn own_part(&mut self, commit: Arc<Commit>) -> Option<Told> {
        self.at = commit.revision;
        let Event::Changed { revision, changes } = &commit.event else { return None };
        let is_own =
            |change: &&Change| self.range.contains(&change.key) && (self.shown)(&change.key);
        match changes.iter().filter(is_own).count() {
            0 => None,
            all if all == changes.len() => Some(Told::Shared(commit)),
            _ => {
                let changes = changes.iter().filter(is_own).cloned().collect();
                Some(Told::Own(Event::Changed { revision: *revision, changes }))
            }
        }
    }

    /// Reads a piece of the log that the ring no longer has. The engine's watch, and the page of the
    /// log that it holds, are dropped before anything is handed on: a client that does not read
    /// keeps neither.
    async fn read_piece(&mut self, after: Revision) -> Result<Piece> {
        // The semaphore is never closed.
        let _reader = self.feed.readers.acquire().await.ok();
        yield_now().await;
        let mut own = self.feed.store.watch(self.range.clone(), Some(self.at));
        let (mut at, mut bytes) = (self.at, 0);
        for _ in 0..PIECE_EVENTS_MAX {
            let Some(event) = own.next().await.transpose()? else { return Ok(Piece::Over(None)) };
            match event {
                Event::TooOld { .. } if self.read.is_empty() => {
                    return Ok(Piece::Over(Some(event)));
                }
                // It is told again for the next piece.
                Event::TooOld { .. } => break,
                Event::Reached(reached) => at = reached,
                Event::Changed { revision, mut changes } => {
                    changes.retain(|change| (self.shown)(&change.key));
                    let more = weight(&changes);
                    // What does not fit is read again with the next piece.
                    if !self.read.is_empty() && bytes + more > PIECE_BYTES_MAX {
                        break;
                    }
                    (at, bytes) = (revision, bytes + more);
                    if !changes.is_empty() {
                        self.read.push_back(Event::Changed { revision, changes });
                    }
                }
            }
            if at >= after || bytes >= PIECE_BYTES_MAX {
                break;
            }
        }
        match self.read.back().and_then(revision) {
            None => self.at = at,
            Some(last) if last < at => self.read.push_back(Event::Reached(at)),
            Some(_) => {}
        }
        Ok(Piece::Read)
    }
}

/// Up to where an event tells.
fn revision(event: &Event) -> Option<Revision> {
    match event {
        Event::Reached(revision) | Event::Changed { revision, .. } => Some(*revision),
        Event::TooOld { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use keyward::{Json, Put};

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
}
