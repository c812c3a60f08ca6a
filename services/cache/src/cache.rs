use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Clock, Error as StoreError, ErrorKind, Json, Store};
use keyward_key::{Key, is_reserved};
use keyward_locks::{LockPath, Locks, Options as LockOptions, Root, Who};
use tokio::time::{self, Instant};

use crate::coalesce::{Lead, Part, UnderWay};
use crate::dependants::{name, spread};
use crate::failure::{Backoff, Failure};
use crate::label::Stored;
use crate::{Cached, Error, Fetch, Metrics, Origin, Result, Source};

/// How a cache behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who computes, for those who list the locks.
    pub who: Who,
    /// How long a key is held back after its computation failed; twice as long after each further
    /// failure.
    pub failure_pause: Duration,
    /// The longest time a key is held back.
    pub failure_pause_max: Duration,
    /// What random choices begin with, for runs that shall be the same; else nobody knows.
    pub seed: Option<u64>,
    /// Where it is counted what the cache does. Caches of several stores may count together.
    pub metrics: Metrics,
    /// Where it is counted what the locks of computations do.
    pub lock_metrics: keyward_locks::Metrics,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            who: Who::default(),
            failure_pause: Duration::from_secs(1),
            failure_pause_max: Duration::from_secs(60),
            seed: None,
            metrics: Metrics::new(),
            lock_metrics: keyward_locks::Metrics::new(),
        }
    }
}

/// Results of expensive work in one store. Cheap to clone; clones share their requests.
#[derive(Clone)]
pub struct Cache {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub store: Store,
    pub locks: Locks,
    pub clock: Box<dyn Clock>,
    pub backoff: Backoff,
    pub metrics: Metrics,
    under_way: UnderWay<Told>,
}

/// What those who waited are told: errors as far as they can be told twice.
type Told = Result<Cached, ToldError>;

#[derive(Debug, Clone)]
enum ToldError {
    Failed {
        message: String,
        at: Timestamp,
        times: u32,
        retry_after: Duration,
    },
    Store {
        kind: ErrorKind,
        message: String,
    },
    /// Something that concerns the one who asked only: the next one asks again.
    Own,
}

/// What a look at the store tells of a key.
pub(crate) enum Look {
    Fresh(Stored),
    Stale(Stored),
    Absent,
}

/// What becomes of a stale value, and of what was made from it, while a new one is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stale {
    /// It is dropped first.
    Dropped,
    /// It is given out until there is a new one.
    Kept,
}

/// Computations of all keys are locked below so many roots: a lock's catalog is never deleted, and one
/// for each cached key would pile up.
const LOCK_ROOTS: u64 = 64;

impl Cache {
    /// A cache in a store. Refused on engines without compare-and-swap: nothing there can be done
    /// only once.
    pub fn new(store: Store, clock: impl Clock, options: Options) -> Result<Self> {
        let Options { who, failure_pause, failure_pause_max, seed, metrics, lock_metrics } =
            options;
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let lock_options =
            LockOptions { who, seed, metrics: lock_metrics, ..LockOptions::default() };
        let locks = Locks::new(store.clone(), clock.clone(), lock_options)?;
        let inner = Inner {
            store,
            locks,
            clock: Box::new(clock),
            backoff: Backoff { first: failure_pause, most: failure_pause_max.max(failure_pause) },
            metrics,
            under_way: UnderWay::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What it has done.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// The locks under which results are computed.
    pub fn locks(&self) -> &Locks {
        &self.inner.locks
    }

    /// What is cached, if it is good for this source. Nothing is computed, and nobody waited for.
    pub async fn get(&self, key: &Key, source: &Source) -> Result<Option<Cached>> {
        match self.peek(key).await? {
            Some(stored) if stored.is_good_for(source) && self.is_whole(&stored).await? => {
                Ok(Some(stored.cached(Origin::Stored)))
            }
            _ => Ok(None),
        }
    }

    /// What is cached, fresh or stale.
    pub async fn show(&self, key: &Key) -> Result<Option<Cached>> {
        Ok(self.peek(key).await?.map(|stored| stored.cached(Origin::Stored)))
    }

    /// What is cached, if it is fresh; else what `compute` makes, or somebody else at the same time.
    ///
    /// Of all callers in all processes that share the store, one runs its function, and the others
    /// wait and get the same. If its process dies, or its future is dropped, another one takes over.
    /// A failure is told to all who wait, and remembered: until a pause has passed, callers get it at
    /// once ([`Error::Failed`]).
    ///
    /// What is stale is dropped before, together with everything that was made from it.
    ///
    /// The function may run in vain: a process that was stopped for longer than the lease is taken
    /// for dead, and what it computed is refused. At most one result is cached for one source.
    pub async fn get_or_compute<F, C, E>(
        &self,
        key: &Key,
        fetch: &Fetch,
        compute: F,
    ) -> Result<Cached>
    where
        F: FnOnce() -> C,
        C: Future<Output = Result<Json, E>>,
        E: Display,
    {
        self.check(key, fetch)?;
        if let Look::Fresh(stored) = self.look(key, &fetch.source).await? {
            self.inner.metrics.hits.inc();
            return Ok(stored.cached(Origin::Stored));
        }
        self.inner.metrics.misses.inc();
        self.compute_once(key, fetch, compute).await
    }

    /// The same, but what is stale is given out at once, while a new result is computed in the
    /// background.
    pub async fn get_or_refresh<F, C, E>(
        &self,
        key: &Key,
        fetch: &Fetch,
        compute: F,
    ) -> Result<Cached>
    where
        F: FnOnce() -> C + Send + 'static,
        C: Future<Output = Result<Json, E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        self.check(key, fetch)?;
        let stale = match self.peek(key).await? {
            Some(stored) if stored.is_good_for(&fetch.source) && self.is_whole(&stored).await? => {
                self.inner.metrics.hits.inc();
                return Ok(stored.cached(Origin::Stored));
            }
            Some(stale) => stale,
            None => return self.get_or_compute(key, fetch, compute).await,
        };
        self.inner.metrics.stale.inc();
        // Whoever leads already computes it for all.
        if let Part::Lead(lead) = self.inner.under_way.join(key, &fetch.source) {
            let (cache, key, fetch) = (self.clone(), key.clone(), fetch.clone());
            tokio::spawn(async move {
                // Failures are counted and remembered; nobody waits for the result.
                let _ = match cache.look(&key, &fetch.source).await {
                    Ok(Look::Fresh(_)) | Err(_) => return,
                    Ok(_) => {
                        let end = deadline(fetch.wait_max);
                        cache.lead_all(lead, &key, &fetch, (Stale::Kept, end), compute).await
                    }
                };
            });
        }
        Ok(stale.cached(Origin::Stale))
    }

    pub(crate) async fn compute_once<F, C, E>(
        &self,
        key: &Key,
        fetch: &Fetch,
        compute: F,
    ) -> Result<Cached>
    where
        F: FnOnce() -> C,
        C: Future<Output = Result<Json, E>>,
        E: Display,
    {
        let end = deadline(fetch.wait_max);
        loop {
            let follow = match self.inner.under_way.join(key, &fetch.source) {
                Part::Lead(lead) => {
                    return self.lead_all(lead, key, fetch, (Stale::Dropped, end), compute).await;
                }
                Part::Follow(follow) => follow,
            };
            let Ok(answer) = time::timeout_at(end, follow.answer()).await else {
                return Err(Error::TimedOut { key: key.clone(), waited: fetch.wait_max });
            };
            match answer {
                Some(Ok(cached)) => {
                    self.inner.metrics.shared.inc();
                    return Ok(Cached { origin: Origin::Shared, ..cached });
                }
                Some(Err(ToldError::Failed { message, at, times, retry_after })) => {
                    let key = key.clone();
                    return Err(Error::Failed { key, message, at, times, retry_after });
                }
                Some(Err(ToldError::Store { kind, message })) => {
                    return Err(StoreError::new(kind, message).into());
                }
                // Whoever led is gone, or failed in a way of its own.
                Some(Err(ToldError::Own)) | None => {}
            }
        }
    }

    /// Asks for everybody who joined.
    async fn lead_all<F, C, E>(
        &self,
        lead: Lead<Told>,
        key: &Key,
        fetch: &Fetch,
        (stale, end): (Stale, Instant),
        compute: F,
    ) -> Result<Cached>
    where
        F: FnOnce() -> C,
        C: Future<Output = Result<Json, E>>,
        E: Display,
    {
        let result = self.lead(key, fetch, (stale, end), compute).await;
        lead.tell(told(&result));
        result
    }

    /// Lets the next who asks for a key compute it at once, although it failed a short while ago. How
    /// often it failed in a row stays known.
    pub async fn retry(&self, key: &Key) -> Result<()> {
        self.inner.store.delete(Failure::hold_key(key)?).await?;
        Ok(())
    }

    /// What the store has for a key; an error while the key is held back.
    pub(crate) async fn look(&self, key: &Key, source: &Source) -> Result<Look> {
        let keys = [key.clone(), Failure::hold_key(key)?];
        let mut found = self.inner.store.get_many(&keys).await?;
        let (hold, entry) = (found.pop().flatten(), found.pop().flatten());
        let stored = Stored::read(key, entry)?;
        if let Some(stored) = &stored
            && stored.is_good_for(source)
            && self.is_whole(stored).await?
        {
            return Ok(Look::Fresh(stored.clone()));
        }
        let failure = hold.as_ref().and_then(Failure::read);
        if let Some(failure) = failure.filter(|failure| failure.source == *source) {
            self.inner.metrics.held_back.inc();
            let ends = hold.and_then(|hold| hold.expires);
            return Err(failure.error(key, self.until(ends)));
        }
        Ok(stored.map_or(Look::Absent, Look::Stale))
    }

    /// What the store has for a key, held back or not.
    pub(crate) async fn peek(&self, key: &Key) -> Result<Option<Stored>> {
        Stored::read(key, self.inner.store.get(key).await?)
    }

    /// Whether what a value was made from is still what it was. Who drops a value drops those made
    /// from it too, but may die in between.
    async fn is_whole(&self, stored: &Stored) -> Result<bool> {
        let made_from = &stored.label.made_from;
        if made_from.is_empty() {
            return Ok(true);
        }
        let keys: Vec<Key> = made_from.keys().filter_map(|key| Key::parse(key).ok()).collect();
        let parents = self.inner.store.get_many(&keys).await?;
        let held =
            parents.into_iter().map(|entry| keyward_locks::present(entry).map(Stored::identity));
        Ok(held.eq(made_from.values().cloned().map(Some)))
    }

    /// How long it is to a moment of the engine's clock, by the caller's.
    fn until(&self, moment: Option<Timestamp>) -> Duration {
        let now = self.inner.clock.now();
        let left = moment.map(|moment| moment.duration_since(now));
        let left = left.and_then(|left| Duration::try_from(left).ok());
        left.unwrap_or_default().min(self.inner.backoff.most)
    }

    pub(crate) fn check(&self, key: &Key, fetch: &Fetch) -> Result<()> {
        let first = key.first();
        if is_reserved(&first) {
            return Err(Error::BadRequest(format!("keys that begin with {first} are reserved")));
        }
        fetch.check(key)
    }

    /// Where the computation of a key is locked.
    pub(crate) fn lock_of(&self, key: &Key, fetch: &Fetch) -> Result<(Root, LockPath)> {
        if let Some((root, path)) = &fetch.lock {
            return Ok((root.clone(), path.clone()));
        }
        let number = format!("{:03}", spread(key.as_bytes(), 0) % LOCK_ROOTS);
        let root = Key::from_segments(["system", "cache", "computing", &number])
            .map_err(|error| Error::BadRequest(error.to_string()))?;
        Ok((self.inner.locks.root(root)?, LockPath::new([name(key)])?))
    }
}

/// When a wait that begins now ends; what is too far off to be counted never comes.
pub(crate) fn deadline(wait_max: Duration) -> Instant {
    const FAR_OFF: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(wait_max.min(FAR_OFF)).unwrap_or(now)
}

fn told(result: &Result<Cached>) -> Told {
    match result {
        Ok(cached) => Ok(cached.clone()),
        Err(Error::Failed { message, at, times, retry_after, .. }) => Err(ToldError::Failed {
            message: message.clone(),
            at: *at,
            times: *times,
            retry_after: *retry_after,
        }),
        Err(Error::Store(error)) => {
            Err(ToldError::Store { kind: error.kind(), message: error.message().to_owned() })
        }
        Err(_) => Err(ToldError::Own),
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("store", &self.inner.store).finish()
    }
}
