//! A workspace: the pages of one source, and everything that is made of them in one store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use keyward_cache::{Cache, Presence, Purge, PurgeOptions, Purged, Swept};
use keyward_engine::{Clock, Commit, Expect, Json, Outcome, Put, Store, Tier};
use keyward_extract::Language;
use keyward_key::Key;
use keyward_locks::{Guard, Locks, Mode, Request, Root, Who};
use keyward_models::Models;
use keyward_queue::{Jobs, Metrics, Options as QueueOptions, Retry};
use serde_json::{Value, json};

use crate::issue::Issues;
use crate::source::{Opened, Source, Uploads};
use crate::{Activity, Course, Error, Extractor, Page, PageId, Result, places};

/// How a workspace behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who works here, for those who list locks and jobs.
    pub who: Who,
    /// How long after its death a process is taken over.
    pub lease: Duration,
    /// How long to wait for others who work on the same.
    pub wait_max: Duration,
    /// How long finished jobs are kept.
    pub retention: Duration,
    /// The language in which policies are compared; `None` is the one each was written in.
    pub analysis_language: Option<Language>,
    /// Whether a page with stale issues is analysed again without being asked.
    pub analyze_again: bool,
    /// How many characters of a document are translated at once.
    pub translate_chars_max: usize,
    /// How many characters of a document are compared at once.
    pub analyze_chars_max: usize,
    /// The shortest time between two purges of everything.
    pub purge_interval: Duration,
    /// How often, and how late, a task that failed is tried again.
    pub retry: Retry,
    /// What is counted about its tasks.
    pub metrics: Metrics,
    /// What random choices begin with, for runs that shall be the same; else nobody knows.
    pub seed: Option<u64>,
}

impl Default for Options {
    /// Leases of two minutes, jobs kept for a day, a purge a day.
    fn default() -> Self {
        Self {
            who: Who::default(),
            lease: Duration::from_secs(120),
            wait_max: Duration::from_secs(600),
            retention: Duration::from_secs(86_400),
            analysis_language: None,
            analyze_again: false,
            translate_chars_max: 12_000,
            analyze_chars_max: 40_000,
            purge_interval: PurgeOptions::INTERVAL_DEFAULT,
            retry: Retry::default(),
            metrics: Metrics::default(),
            seed: None,
        }
    }
}

/// The pages of one source, and everything that is made of them. Cheap to clone.
#[derive(Clone)]
pub struct Workspace {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    cache: Cache,
    jobs: Jobs,
    issues: Issues,
    purge: Purge,
    source: Arc<dyn Source>,
    uploads: Option<Arc<Uploads>>,
    is_occupied: AtomicBool,
    extractor: Extractor,
    models: Option<Arc<Models>>,
    options: Options,
}

/// How long a worker is waited for that gives no sign of life, at the most.
const JOB_LEASE_MAX: Duration = Duration::from_secs(30);
/// Who does what nobody asked for.
pub(crate) const KEYWARD: &str = "keyward";

impl Workspace {
    /// A workspace in a store that holds nothing else. Without `models` nothing is translated or
    /// analysed. Refused on engines that cannot write several keys together.
    pub fn new(
        store: Store,
        clock: impl Clock,
        source: Arc<dyn Source>,
        extractor: Extractor,
        models: Option<Arc<Models>>,
        options: Options,
    ) -> Result<Self> {
        let capabilities = store.capabilities();
        if capabilities.tier() != Tier::Atomic {
            let (engine, tier) = (capabilities.engine, capabilities.tier());
            return Err(Error::NeedsAtomic { engine, tier });
        }
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let cache_options = keyward_cache::Options {
            who: options.who.clone(),
            seed: options.seed,
            ..keyward_cache::Options::default()
        };
        let cache = Cache::new(store.clone(), clock.clone(), cache_options)?;
        let queue_options = QueueOptions {
            lease: options.lease.min(JOB_LEASE_MAX),
            retry: options.retry,
            seed: options.seed,
            ..QueueOptions::default()
        };
        let jobs = Jobs::new(store.clone(), clock.clone(), queue_options)?
            .counting(options.metrics.clone());
        let purge_options = PurgeOptions {
            interval: options.purge_interval,
            parts: places::OF_PAGES.map(str::to_owned).to_vec(),
            ..PurgeOptions::default()
        };
        let purge = Purge::new(cache.locks().clone(), clock.clone(), purge_options)?;
        let issues = Issues::new(store.clone(), cache.locks().clone(), clock.clone());
        let inner = Inner {
            store,
            clock,
            cache,
            jobs,
            issues,
            purge,
            source,
            uploads: None,
            is_occupied: AtomicBool::new(false),
            extractor,
            models,
            options,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The workspace of a source that was set up.
    pub fn open(
        store: Store,
        clock: impl Clock,
        source: &Opened,
        extractor: Extractor,
        models: Option<Arc<Models>>,
        options: Options,
    ) -> Result<Self> {
        let opened = Self::new(store, clock, source.source(), extractor, models, options)?;
        let Some(mut inner) = Arc::into_inner(opened.inner) else {
            return Err(Error::Invalid("a workspace that was just made has one owner".to_owned()));
        };
        inner.uploads = source.uploads().cloned();
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Where people put pages, if its pages are uploads.
    pub fn uploads(&self) -> Option<&Uploads> {
        self.inner.uploads.as_deref()
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Where its pages come from.
    pub fn source(&self) -> &dyn Source {
        &*self.inner.source
    }

    /// The issues of its pages.
    pub fn issues(&self) -> &Issues {
        &self.inner.issues
    }

    /// Its jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.inner.jobs
    }

    /// The locks of its pages.
    pub fn locks(&self) -> &Locks {
        self.inner.cache.locks()
    }

    /// How it behaves.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    pub(crate) fn extractor(&self) -> &Extractor {
        &self.inner.extractor
    }

    /// The models, if there are any; else an error that says what to set.
    pub(crate) fn models(&self) -> Result<&Models> {
        Ok(self.inner.models.as_deref().ok_or_else(unset)?)
    }

    /// Whether policies can be translated and analysed.
    pub fn has_models(&self) -> bool {
        self.inner.models.is_some()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    pub(crate) fn root(&self, page: &PageId) -> Result<Root> {
        Ok(self.locks().root(places::page(page)?)?)
    }

    /// Takes a lock of a page.
    pub(crate) async fn hold(
        &self,
        page: &PageId,
        path: &[&str],
        mode: Mode,
        purpose: &str,
    ) -> Result<Guard> {
        let request = Request::default()
            .ttl(self.options().lease)
            .wait_max(self.options().wait_max)
            .purpose(purpose);
        Ok(self.root(page)?.acquire(&[places::lock(path)?], mode, &request).await?)
    }

    /// A page. If its source says for certain that it is gone, what was made of it is removed.
    pub(crate) async fn found(&self, page: &PageId) -> Result<Page> {
        self.occupy().await?;
        match self.source().page(page).await? {
            Some(found) => Ok(found),
            None => {
                self.purge_vanished(page).await?;
                Err(Error::UnknownPage { page: page.to_string() })
            }
        }
    }

    /// A page, for who only reads: nothing is written, also if the page is gone.
    pub(crate) async fn seen(&self, page: &PageId) -> Result<Page> {
        if !self.inner.is_occupied.load(Ordering::Acquire) {
            self.check_occupant().await?;
        }
        self.found_locked(page).await
    }

    /// A page, for who holds a lock of it: if it is gone, it is left to whoever asks next.
    pub(crate) async fn found_locked(&self, page: &PageId) -> Result<Page> {
        let found = self.source().page(page).await?;
        found.ok_or_else(|| Error::UnknownPage { page: page.to_string() })
    }

    /// Makes sure that the store has pages of this source and of no other: what another source has would
    /// be taken for gone.
    pub async fn occupy(&self) -> Result<()> {
        if self.inner.is_occupied.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.check_occupant().await? {
            let key = places::occupied()?;
            let put = Json::from_value(&self.occupant())
                .map_err(|error| Error::Invalid(error.to_string()))?;
            let commit = Commit::new().check(key.clone(), Expect::Absent).put(key, Put::new(put));
            // Whoever was quicker may have pages of another source.
            let _: Outcome = self.store().commit(commit).await?;
            self.check_occupant().await?;
        }
        self.inner.is_occupied.store(true, Ordering::Release);
        Ok(())
    }

    /// What the store says where its pages come from, if they come from here.
    fn occupant(&self) -> Value {
        json!({ "source": self.source().identity() })
    }

    /// Whether the store says that it has pages of this source. Refused if it has those of another.
    async fn check_occupant(&self) -> Result<bool> {
        let Some(entry) = self.store().get(&places::occupied()?).await? else { return Ok(false) };
        let kept: Value = serde_json::from_str(entry.value.as_str()).unwrap_or_default();
        if kept == self.occupant() {
            return Ok(true);
        }
        let other = kept["source"].as_str().unwrap_or("something else").to_owned();
        Err(Error::Occupied { other })
    }

    async fn purge_vanished(&self, page: &PageId) -> Result<()> {
        let root = places::page(page)?;
        // A page that never was has no locks either, gets none, and has nothing to be removed.
        if self.store().get(&root).await?.is_some() {
            self.inner.purge.purge_if(&root, async |root| self.presence(&root).await).await?;
        }
        Ok(())
    }

    /// Removes everything that was made of a page, issues included, under the lock of the page, and
    /// nothing of another one. Says how many entries there were.
    pub async fn clear(&self, page: &PageId, course: &Course) -> Result<u64> {
        course.enter(Activity::Locking, page.as_str()).await?;
        self.occupy().await?;
        Ok(self.inner.purge.clear(&places::page(page)?).await?)
    }

    /// Asks the source about every page, and removes what was made of those that are gone; at most
    /// once in [`Options::purge_interval`] over all processes, unless it is done `now`. `None` if it
    /// was done before.
    pub async fn purge(&self, now: bool, course: &Course) -> Result<Option<Swept>> {
        course.enter(Activity::Purging, "").await?;
        self.occupy().await?;
        let look = async |root: Key| self.presence(&root).await;
        Ok(match now {
            true => Some(self.inner.purge.sweep_now(look).await?),
            false => self.inner.purge.sweep(look).await?,
        })
    }

    /// Whether what lies below a key belongs to a page that is certainly gone.
    async fn presence(&self, root: &Key) -> Presence {
        // Everything that is made of a page is made under its lock: what has no catalog of locks is
        // no page of ours, whatever it is called.
        let page = match self.store().get(root).await {
            Ok(Some(_)) => PageId::new(&root.first()),
            Ok(None) => return Presence::Present,
            Err(error) => return Presence::Unknown(error.to_string()),
        };
        let Ok(page) = page else { return Presence::Present };
        match self.source().page(&page).await {
            Ok(Some(_)) => Presence::Present,
            Ok(None) => Presence::Gone,
            Err(error) => Presence::Unknown(error.to_string()),
        }
    }

    /// Removes what was made of one page, if its source says that it is gone.
    pub async fn purge_page(&self, page: &PageId, course: &Course) -> Result<Purged> {
        course.enter(Activity::Purging, page.as_str()).await?;
        self.occupy().await?;
        let root = places::page(page)?;
        Ok(self.inner.purge.purge_if(&root, async |root| self.presence(&root).await).await?)
    }
}

/// Nobody said which model is asked.
fn unset() -> keyward_models::Error {
    let reason = "one of openai, anthropic, gemini and ollama, with a model; nothing is translated \
                  or analysed without one";
    keyward_models::Error::Unset { setting: "provider", reason: reason.to_owned() }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
