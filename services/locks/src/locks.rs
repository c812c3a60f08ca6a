use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use keyward_engine::{
    Clock, Error as StoreError, ErrorKind, Expiry, ExpirySupport, Json, Put, Store, Tier, Version,
};
use keyward_key::{Key, is_reserved};
use keyward_schema::LockTree;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::catalog::{Catalog, Which};
use crate::look::Sightings;
use crate::{Error, Guard, LockPath, Metrics, Mode, Request, Result, Root, Who};

/// How the locks of a process behave.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Who this process is, for those who list locks.
    pub who: Who,
    /// What can be locked in this store, as its schema and the systems in it say. Below a root of a
    /// tree, only the tree's paths can be locked, and the first tree that has the root counts; other
    /// roots take any path.
    pub trees: Vec<LockTree>,
    /// What random numbers begin with; `None` takes them from the system. For tests. The names of
    /// requests come from it too, so no two [`Locks`] of one store may have the same seed: each
    /// would take the other's claims for its own.
    pub seed: Option<u64>,
    /// Where it is counted what they do. Locks of several stores may count together.
    pub metrics: Metrics,
}

/// The locks of a store. Cheap to clone; clones are the same process.
#[derive(Clone)]
pub struct Locks {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub store: Store,
    pub clock: Box<dyn Clock>,
    pub options: Options,
    pub metrics: Metrics,
    pub sightings: Sightings,
    rng: Mutex<Rng>,
    /// How many releases are under way in the background.
    releases: watch::Sender<usize>,
}

/// Some paths of one root, for [`Locks::acquire_all`].
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The root.
    pub root: Root,
    /// What of it.
    pub paths: Vec<LockPath>,
    /// How.
    pub mode: Mode,
}

impl Locks {
    /// The locks of a store. The clock is only for times that people read. Refused where the engine
    /// cannot compare before it writes: nothing there could keep two holders apart.
    pub fn new(store: Store, clock: impl Clock, options: Options) -> Result<Self> {
        let capabilities = store.capabilities();
        if capabilities.tier() == Tier::Advisory {
            return Err(Error::Unsupported(format!(
                "the {} engine cannot compare before it writes, so it cannot keep locks; name a \
                 coordinator for the store, or use one of another engine",
                capabilities.engine
            )));
        }
        let seed = options.seed.map_or_else(random_seed, Ok)?;
        let shared = Shared {
            store,
            clock: Box::new(clock),
            metrics: options.metrics.clone(),
            options,
            sightings: Sightings::default(),
            rng: Mutex::new(Rng::with_seed(seed)),
            releases: watch::Sender::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The locks below a key. The key belongs to them: it holds their catalog, which is never
    /// deleted. Keys that begin with a [reserved segment](keyward_key::RESERVED_FIRST_SEGMENTS) other
    /// than `system` are refused: locks, jobs and indexes keep their own entries there.
    pub fn root(&self, key: Key) -> Result<Root> {
        let first = key.first();
        if is_reserved(&first) && first != "system" {
            let message =
                format!("{key} cannot be a root: keys that begin with {first} are reserved");
            return Err(Error::BadRequest(message));
        }
        Ok(Root::new(self.shared.clone(), key))
    }

    /// Takes locks of several roots, one root after the other in the order of their keys, so that no
    /// two callers can wait for each other. The request's time to wait is for all together; if it
    /// ends, nothing is held. A root that is named twice is refused.
    pub async fn acquire_all(&self, wanted: &[Wanted], request: &Request) -> Result<Vec<Guard>> {
        let mut order: Vec<&Wanted> = wanted.iter().collect();
        order.sort_by(|one, other| one.root.key().cmp(other.root.key()));
        if let Some(pair) = order.windows(2).find(|pair| pair[0].root.key() == pair[1].root.key()) {
            let root = pair[0].root.key();
            let message = format!("the root {root} is named twice; name all its paths at once");
            return Err(Error::BadRequest(message));
        }
        // A time that no clock can show is for ever.
        let deadline = request.wait_max.and_then(|wait| Instant::now().checked_add(wait));
        let mut guards = Vec::with_capacity(order.len());
        for Wanted { root, paths, mode } in order {
            let mut request = request.clone();
            request.wait_max = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            match root.acquire(paths, *mode, &request).await {
                Ok(guard) => guards.push(guard),
                Err(error) => {
                    for guard in guards {
                        // What cannot be given back now ends with its lease.
                        let _ = guard.release().await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(guards)
    }

    /// Waits until what was dropped, guards and requests that were given up, is out of the store: for
    /// a process that is about to end.
    pub async fn settled(&self) {
        self.shared.settled().await;
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Shared {
    /// A name that nobody else chose: 128 random bits.
    pub fn nonce(&self) -> Result<String> {
        let number = match self.options.seed {
            Some(_) => self.rng().u128(..),
            None => {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes).map_err(no_randomness)?;
                u128::from_ne_bytes(bytes)
            }
        };
        Ok(format!("{number:032x}"))
    }

    /// A part of a time, from half of it to all of it, so that those who wait do not wake together.
    pub fn jittered(&self, time: Duration) -> Duration {
        let half = u64::try_from(time.as_micros() / 2).unwrap_or(u64::MAX);
        Duration::from_micros(half + self.rng().u64(..=half))
    }

    /// The time for people, to the millisecond.
    pub fn now(&self) -> Timestamp {
        let now = self.clock.now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Whether grants have a fence and a lease of their own in the store.
    pub fn is_atomic(&self) -> bool {
        self.store.capabilities().tier() == Tier::Atomic
            && self.store.limits().commit_keys_max >= KEYS_OF_A_GRANT
    }

    /// How many dead claims one commit can take out.
    pub fn reaped_max(&self) -> usize {
        // A dead holder has a fence and a lease.
        let room = self.store.limits().commit_keys_max.saturating_sub(KEYS_OF_A_GRANT);
        if self.is_atomic() { (room / 2).min(REAPED_PER_COMMIT_MAX) } else { REAPED_PER_COMMIT_MAX }
    }

    pub fn can_watch(&self) -> bool {
        self.store.capabilities().watch.is_supported()
    }

    /// The entry that keeps a claim alive. Where entries cannot expire so soon, it stays, and only
    /// that it no longer changes tells that its holder is dead.
    pub fn lease(&self, beat: u64, ttl: Duration) -> Put {
        let put = Put::new(Json::from_integer(i64::try_from(beat).unwrap_or(i64::MAX)));
        match self.store.capabilities().expiry {
            ExpirySupport::Supported { ttl_min, .. } if ttl >= ttl_min => {
                put.expiring(Expiry::After(ttl))
            }
            _ => put,
        }
    }

    /// Takes a claim out of its catalog in the background, if a runtime is there.
    pub fn take_out_later(&self, root: Root, which: Which, known: Option<(Version, Catalog)>) {
        self.later(&root.clone(), async move { root.take_out(&which, known).await });
    }

    /// Takes back a request that was given up, in the background, if a runtime is there.
    pub fn withdraw_later(&self, root: Root, which: Which, unanswered: bool) {
        self.later(&root.clone(), async move { root.withdraw(&which, unanswered).await });
    }

    fn later(&self, root: &Root, release: impl Future<Output = Result<()>> + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        self.releases.send_modify(|count| *count += 1);
        let under_way = UnderWay(root.clone());
        runtime.spawn(async move {
            // What cannot be taken back ends with its lease.
            let _ = release.await;
            drop(under_way);
        });
    }

    pub async fn settled(&self) {
        // Fails only without a sender, and this is one.
        let _ = self.releases.subscribe().wait_for(|count| *count == 0).await;
    }

    fn rng(&self) -> std::sync::MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A release in the background, counted until it is done or its runtime ends.
struct UnderWay(Root);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.shared.releases.send_modify(|count| *count -= 1);
    }
}

/// The catalog and its mark, the fence and lease of the grant, and the lease it had as a waiter.
const KEYS_OF_A_GRANT: usize = 5;
const REAPED_PER_COMMIT_MAX: usize = 16;

fn random_seed() -> Result<u64> {
    getrandom::u64().map_err(no_randomness)
}

fn no_randomness(error: getrandom::Error) -> Error {
    let error = StoreError::new(ErrorKind::Internal, "the system has no random numbers")
        .caused_by(error.to_string());
    Error::Store(error)
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("store", &self.shared.store).finish_non_exhaustive()
    }
}
