//! The change feed of one store: one engine watch, shared by all watchers.
//!
//! A watch of an engine reads the log of commits by itself. Thousands of them would read, and hold,
//! the same pages; here one watch reads, and keeps the last commits in a ring of bounded size. A
//! watcher is a revision and a filter: it holds no events while its client does not read. A watcher
//! that is older than the ring reads the log for itself, a small piece at a time, a few watchers at
//! once.

mod ring;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use keyward::{Change, Event, Key, KeyRange, Prefix, Result, Revision, Store};
use tokio::sync::{Semaphore, watch};
use tokio::task::yield_now;
use tokio::time::Instant;

pub use ring::Told;
use ring::{Commit, Next, Ring, weight};

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
pub struct Feed {
    store: Store,
    live: Arc<Mutex<Option<watch::Sender<Ring>>>>,
    readers: Arc<Semaphore>,
}

/// How soon a watcher learns of commits that changed nothing for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// Once in a while.
    Sometimes,
    /// At once, as a watch of an engine does.
    AtOnce,
}

impl Feed {
    /// The feed of a store; it reads nothing until somebody watches.
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
mod tests;
