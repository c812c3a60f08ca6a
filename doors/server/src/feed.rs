//! What changes in a store, read once for all who watch it.
//!
//! A watch of an engine reads the log of commits by itself, whenever there is one. Thousands of them
//! would read the same; here one does, and hands on what it read. Who comes from an earlier revision,
//! or falls behind, has a watch of the engine for themselves until they have caught up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use keyward::{Event, Key, KeyRange, Prefix, Result, Revision, Store};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::Instant;

/// How many commits a watcher may be behind before it reads for itself.
const BEHIND_MAX: usize = 1_024;
/// How often a watcher is told of commits in which nothing is for it, so that it can resume from
/// there.
const QUIET_TIME: Duration = Duration::from_secs(10);

/// Which keys a watcher is told of.
pub(crate) type Shown = Arc<dyn Fn(&Key) -> bool + Send + Sync>;

/// The changes of one store. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    store: Store,
    live: Arc<Mutex<Option<Live>>>,
}

/// The one watch that is handed on.
#[derive(Debug)]
struct Live {
    /// Everything up to here was handed on.
    at: Revision,
    watchers: broadcast::Sender<Arc<Event>>,
}

impl Feed {
    pub fn new(store: Store) -> Self {
        Self { store, live: Arc::default() }
    }

    /// What changes in a range after a revision, or from now on, of the keys that are shown: as a watch
    /// of the store tells it, except that commits with nothing of that are only told of now and then.
    pub fn watch(
        &self,
        range: KeyRange,
        since: Option<Revision>,
        shown: Shown,
    ) -> impl Stream<Item = Result<Event>> + Send + use<> {
        let own = self.store.watch(range.clone(), since);
        let watcher = Watcher {
            feed: self.clone(),
            range,
            shown,
            source: Source::Beginning(own),
            at: since.unwrap_or_default(),
            told: Instant::now(),
        };
        stream::unfold(watcher, |mut watcher| async move {
            let event = watcher.next().await?;
            Some((event, watcher))
        })
    }

    /// Joins those who are handed what is read, from a revision on.
    async fn join(&self) -> Result<(Revision, broadcast::Receiver<Arc<Event>>)> {
        if let Some(live) = &*self.live() {
            return Ok((live.at, live.watchers.subscribe()));
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
            return Ok((live.at, live.watchers.subscribe()));
        }
        let (watchers, joined) = broadcast::channel(BEHIND_MAX);
        *live = Some(Live { at, watchers: watchers.clone() });
        tokio::spawn(hand_on(self.clone(), events, watchers));
        Ok((at, joined))
    }

    fn live(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands on what is read, as long as somebody wants it. Whoever is left when the engine's watch ends
/// sees the end, and learns the reason by asking again.
async fn hand_on(
    feed: Feed,
    mut events: BoxStream<'static, Result<Event>>,
    watchers: broadcast::Sender<Arc<Event>>,
) {
    let feed = Ends(feed);
    loop {
        tokio::select! {
            event = events.next() => {
                let mut live = feed.0.live();
                let event = event.and_then(Result::ok);
                let (Some(at), Some(event), Some(known)) =
                    (event.as_ref().and_then(revision), event, &mut *live)
                else {
                    return;
                };
                known.at = at;
                // Nobody hears it, if the last one has just left.
                let _ = watchers.send(Arc::new(event));
            }
            () = watchers.closed() => {
                // Somebody may have come since.
                if watchers.receiver_count() == 0 {
                    return;
                }
            }
        }
    }
}

/// Says that nothing is handed on any more, however that came. Who joins at the last moment sees the end
/// at once, and joins again.
struct Ends(Feed);

impl Drop for Ends {
    fn drop(&mut self) {
        *self.0.live() = None;
    }
}

/// One who watches a range.
struct Watcher {
    feed: Feed,
    range: KeyRange,
    shown: Shown,
    source: Source,
    /// Everything up to here was told.
    at: Revision,
    /// When something was told last.
    told: Instant,
}

/// Where events come from.
enum Source {
    /// The engine, which has told nothing yet.
    Beginning(BoxStream<'static, Result<Event>>),
    /// The engine, until it has told what was handed on to the others before.
    CatchingUp {
        own: BoxStream<'static, Result<Event>>,
        handed: Revision,
        joined: broadcast::Receiver<Arc<Event>>,
    },
    /// What is handed on.
    Joined(broadcast::Receiver<Arc<Event>>),
    /// Nothing comes any more.
    Ended,
}

impl Watcher {
    async fn next(&mut self) -> Option<Result<Event>> {
        let event = self.advance().await;
        self.told = Instant::now();
        if !matches!(&event, Ok(Some(event)) if revision(event).is_some()) {
            self.source = Source::Ended;
        }
        event.transpose()
    }

    async fn advance(&mut self) -> Result<Option<Event>> {
        loop {
            // A watch that is given up is not asked again.
            match std::mem::replace(&mut self.source, Source::Ended) {
                Source::Ended => return Ok(None),
                Source::Beginning(mut own) => {
                    let Some(event) = own.next().await.transpose()? else { return Ok(None) };
                    if let Some(at) = revision(&event) {
                        self.at = at;
                        let (handed, joined) = self.feed.join().await?;
                        self.source = Source::CatchingUp { own, handed, joined };
                    }
                    return Ok(Some(event));
                }
                Source::CatchingUp { handed, joined, .. } if self.at >= handed => {
                    self.source = Source::Joined(joined);
                }
                Source::CatchingUp { mut own, handed, joined } => {
                    let Some(event) = own.next().await.transpose()? else { return Ok(None) };
                    self.source = Source::CatchingUp { own, handed, joined };
                    if revision(&event).is_none() {
                        return Ok(Some(event));
                    }
                    if let Some(event) = self.own_part(&event) {
                        return Ok(Some(event));
                    }
                }
                Source::Joined(mut joined) => match joined.recv().await {
                    Ok(event) => {
                        self.source = Source::Joined(joined);
                        if let Some(event) = self.own_part(&event) {
                            return Ok(Some(event));
                        }
                    }
                    Err(RecvError::Lagged(_) | RecvError::Closed) => {
                        let own = self.feed.store.watch(self.range.clone(), Some(self.at));
                        self.source = Source::Beginning(own);
                    }
                },
            }
        }
    }

    /// What an event that was handed on says to this watcher, if anything.
    fn own_part(&mut self, event: &Event) -> Option<Event> {
        let at = revision(event).filter(|at| *at > self.at)?;
        self.at = at;
        if let Event::Changed { revision, changes } = event {
            let changes = changes
                .iter()
                .filter(|change| self.range.contains(&change.key) && (self.shown)(&change.key));
            let changes: Vec<_> = changes.cloned().collect();
            if !changes.is_empty() {
                return Some(Event::Changed { revision: *revision, changes });
            }
        }
        (self.told.elapsed() >= QUIET_TIME).then_some(Event::Reached(at))
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

    type Events = BoxStream<'static, Result<Event>>;

    async fn changed(events: &mut Events) -> Vec<String> {
        loop {
            if let Event::Changed { changes, .. } = events.next().await.unwrap().unwrap() {
                return changes.iter().map(|change| change.key.to_string()).collect();
            }
        }
    }

    #[tokio::test]
    async fn watchers_are_told_their_own_part_from_where_they_began() {
        let store = store().await;
        let feed = Feed::new(store.clone());
        put(&store, "a:before").await;
        let mut first = feed.watch(below("a:"), None, Arc::new(|_: &Key| true)).boxed();
        let began = first.next().await.unwrap().unwrap();
        put(&store, "b:1").await;
        put(&store, "a:1").await;
        let mut second = feed.watch(below(""), None, Arc::new(|_: &Key| true)).boxed();
        assert!(matches!(second.next().await, Some(Ok(Event::Reached(_)))));
        put(&store, "a:2").await;
        assert_eq!(changed(&mut first).await, ["a:1"]);
        assert_eq!(changed(&mut first).await, ["a:2"]);
        assert_eq!(changed(&mut second).await, ["a:2"]);
        let mut late = feed.watch(below("a:"), revision(&began), Arc::new(|_: &Key| true)).boxed();
        assert_eq!(changed(&mut late).await, ["a:1"]);
        assert_eq!(changed(&mut late).await, ["a:2"]);
        put(&store, "a:3").await;
        assert_eq!(changed(&mut late).await, ["a:3"]);
    }

    #[tokio::test]
    async fn a_watcher_that_falls_behind_misses_nothing() {
        let store = store().await;
        let feed = Feed::new(store.clone());
        let mut quick = feed.watch(below("a:"), None, Arc::new(|_: &Key| true)).boxed();
        let mut slow = feed.watch(below("a:"), None, Arc::new(|_: &Key| true)).boxed();
        quick.next().await.unwrap().unwrap();
        slow.next().await.unwrap().unwrap();
        let mut seen = BTreeSet::new();
        let all = BEHIND_MAX + 100;
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
            let mut events = feed.watch(below("a:"), None, Arc::new(|_: &Key| true)).boxed();
            events.next().await.unwrap().unwrap();
            put(&store, "a:1").await;
            assert_eq!(changed(&mut events).await, ["a:1"]);
            drop(events);
            while feed.live().is_some() {
                tokio::task::yield_now().await;
            }
        }
    }
}
