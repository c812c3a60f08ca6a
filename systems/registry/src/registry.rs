use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use jiff::Timestamp;
use keyward_engine::{Clock, Entry, Store, Tier};
use keyward_key::Key;
use keyward_locks::{Life, Locks, Who};
use keyward_queue::{DeadLetter, Listing, Queue, QueueStats, Requeued, Retry};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::places::Places;
use crate::settings::{NAME_HINT, is_name};
use crate::source::{self, Source};
use crate::state::State;
use crate::{Error, Metrics, OpenStore, Result, Run, RunStatus, Settings, SyncMetadata};

/// Policies that are kept in git, in a store. Cheap to clone; clones are the same registry.
///
/// Everything may be done by any number of processes at once; every future may be dropped.
#[derive(Clone)]
pub struct Registry {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub name: String,
    pub store: Store,
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub places: Places,
    pub queue: Queue,
    pub locks: Locks,
    pub metrics: Metrics,
    pub source: Source,
    pub open_store: Option<OpenStore>,
    pub fingerprint: String,
    /// What the ids of runs are made of, where chance is left out.
    pub seeded: Option<AtomicU64>,
    /// The time in the id of the last run of this process.
    pub begun: AtomicI64,
}

/// How a process works with registries.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Who this process is, for those who look who runs a sync.
    pub who: Who,
    /// Makes every choice repeatable, for tests. No two registries of one store may have the same.
    pub seed: Option<u64>,
    /// Where it is counted what it does.
    pub metrics: Metrics,
    /// Opens the stores that policies are exported to.
    pub open_store: Option<OpenStore>,
}

/// Some of many, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    /// These.
    pub items: Vec<T>,
    /// What to ask for the next page with; `None` at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How a registry stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// How the last run ended.
    pub last_run: Option<SyncMetadata>,
    /// The commit that the registry is at.
    pub last_commit: Option<String>,
    /// How many policies it has, as the last sync that left nothing undone counted them.
    pub entries: Option<u64>,
    /// The run that is under way.
    pub running: Option<Running>,
    /// What waits for consumers.
    pub queue: QueueStats,
}

/// A run that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Who runs it, for people.
    pub holder: String,
    /// Since when, by their clock.
    pub since: String,
    /// What it says of itself.
    pub run: Option<Run>,
}

impl Registry {
    /// How many items a page has at most.
    pub const PAGE_MAX: usize = 1_000;

    /// The registry of this name. Reads and writes nothing yet. Refused with settings that make no
    /// sense, and where the engine cannot write an entry and its message together. What is fetched is
    /// kept below `cache`, in a folder of the registry's own.
    pub fn open(
        name: &str,
        store: Store,
        settings: Settings,
        cache: &Path,
        clock: impl Clock,
    ) -> Result<Self> {
        Self::open_with(name, store, settings, cache, clock, Options::default())
    }

    /// The same, saying who this process is.
    pub fn open_with(
        name: &str,
        store: Store,
        settings: Settings,
        cache: &Path,
        clock: impl Clock,
        options: Options,
    ) -> Result<Self> {
        if !is_name(name) {
            return Err(Error::Invalid(format!("{name:?} cannot name a registry: {NAME_HINT}")));
        }
        if let Err(problems) = settings.check() {
            return Err(Error::Settings { registry: name.to_owned(), problems });
        }
        let capabilities = store.capabilities();
        if capabilities.tier() != Tier::Atomic {
            let (engine, tier) = (capabilities.engine, capabilities.tier());
            return Err(Error::NeedsAtomic { engine, tier });
        }
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let places = Places::new(name, settings.prefix.as_deref())?;
        let Options { who, seed, metrics, open_store } = options;
        let queue_options = keyward_queue::Options {
            retry: Retry { attempts_max: settings.retries, ..Retry::default() },
            places: Some(places.queue()),
            seed,
            ..keyward_queue::Options::default()
        };
        let queue = Queue::new(store.clone(), name, clock.clone(), queue_options)?;
        let lock_options = keyward_locks::Options {
            who,
            seed: seed.map(|seed| seed.wrapping_add(1)),
            ..keyward_locks::Options::default()
        };
        let locks = Locks::new(store.clone(), clock.clone(), lock_options)?;
        let mut from = source::Options::from(&settings);
        from.authority.clone_from(&settings.authority);
        let source = Source::new(name, from, cache)?;
        let inner = Inner {
            name: name.to_owned(),
            source,
            open_store,
            fingerprint: settings.fingerprint(),
            seeded: seed.map(|seed| AtomicU64::new(seed << 32)),
            begun: AtomicI64::new(0),
            store,
            settings,
            clock,
            places,
            queue,
            locks,
            metrics,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What it is.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The store it is in.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// What waits for consumers: messages by the names of policies.
    pub fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// What this process has counted.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// How it stands.
    pub async fn status(&self) -> Result<Status> {
        let places = &self.inner.places;
        let keys = [places.last_run.clone(), places.last_commit.clone(), places.state()];
        let mut found = self.inner.store.get_many(&keys).await?.into_iter();
        let (last_run, last_commit) = (found.next().flatten(), found.next().flatten());
        let state = found.next().flatten().map(|entry| State::decode(&keys[2], &entry));
        let state = state.transpose()?;
        Ok(Status {
            last_run: last_run.map(|entry| decode(&keys[0], &entry)).transpose()?,
            last_commit: last_commit.map(|entry| decode(&keys[1], &entry)).transpose()?,
            entries: state.filter(|state| state.clean).map(|state| state.entries),
            running: self.running().await?,
            queue: self.inner.queue.stats().await?,
        })
    }

    /// The run that is under way.
    async fn running(&self) -> Result<Option<Running>> {
        let standing = self.inner.locks.root(self.inner.places.lock())?.list().await?;
        let holder = standing.holders.into_iter().find(|holder| holder.life != Life::Dead);
        let Some(holder) = holder else { return Ok(None) };
        let newest = self.runs(None, 1).await?.items.pop();
        let run = newest.filter(|run| run.status == RunStatus::Running);
        Ok(Some(Running { holder: holder.who.to_string(), since: holder.since, run }))
    }

    /// One page of the changes that no consumer could be told of, in the order of names. `after` is the
    /// last name of the page before.
    pub async fn dead_letters(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<DeadLetter>> {
        let limit = limit.clamp(1, Self::PAGE_MAX);
        let listing = Listing { after: after.map(str::to_owned), limit, state: None };
        let items = self.inner.queue.dead_letters(&listing).await?;
        let next = match items.last() {
            Some(last) if items.len() == limit => Some(last.id.clone()),
            _ => None,
        };
        Ok(Page { items, next })
    }

    /// Puts a dead letter back in line.
    pub async fn requeue(&self, policy: &str) -> Result<Requeued> {
        Ok(self.inner.queue.requeue(policy).await?)
    }

    /// Puts all dead letters back in line that can be; how many.
    pub async fn requeue_all(&self) -> Result<u64> {
        let (mut count, mut after) = (0, None);
        loop {
            let page = self.dead_letters(after.as_deref(), Self::PAGE_MAX).await?;
            for letter in &page.items {
                count += u64::from(self.requeue(&letter.id).await? == Requeued::Done);
            }
            after = page.next;
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    /// Removes a dead letter for good; whether there was one.
    pub async fn drop_dead_letter(&self, policy: &str) -> Result<bool> {
        Ok(self.inner.queue.drop_dead_letter(policy).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        let now = self.inner.clock.now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }
}

fn decode<T: DeserializeOwned>(key: &Key, entry: &Entry) -> Result<T> {
    serde_json::from_slice(entry.value.as_bytes()).map_err(|error| Error::damaged(key, error))
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
